"""Marks for the API's cache: never more than it takes, never in an order that it refuses, a person's own first."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import cache_marks
from memkernel.agent.cache_marks import Marks
from memkernel.errors import InvalidInputError

FIVE: dict[str, Any] = {"type": "ephemeral"}
HOUR: dict[str, Any] = {"type": "ephemeral", "ttl": "1h"}
TOOLS: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(words: str = "Go", mark: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"cache_control": mark} if mark else {})


def result(*parts: dict[str, Any], mark: dict[str, Any] | None = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t", "content": list(parts)}
    return block | ({"cache_control": mark} if mark else {})


def marks(
    messages: list[dict[str, Any]] | None = None,
    tools: list[dict[str, Any]] | None = None,
    system: str | None = "Be brief.",
    automatic: bool = True,
    **options: Any,
) -> Marks:
    said = [user(text())] if messages is None else messages
    return cache_marks.marks(system, TOOLS if tools is None else tools, said, options, automatic=automatic)


def in_order(
    found: Marks, tools: list[dict[str, Any]], options: Mapping[str, Any]
) -> list[tuple[str, Mapping[str, Any]]]:
    """All marks of a request, in the order in which the API reads them."""
    declared = [dict(tool) for tool in tools]
    if found.tool is not None:
        declared[found.tool[0]]["cache_control"] = found.tool[1]
    ordered = [("tool", tool["cache_control"]) for tool in declared if "cache_control" in tool]
    ordered += [("system", found.system)] if found.system else []
    ordered += [("block", mark) for message in found.messages for mark in block_marks(message["content"])]
    end = found.conversation or options.get("cache_control")
    return [*ordered, *([("end", end)] if end else [])]


def block_marks(content: str | list[dict[str, Any]] | None) -> Iterator[Mapping[str, Any]]:
    for block in [] if isinstance(content, str | None) else content:
        yield from block_marks(block.get("content"))
        if "cache_control" in block:
            yield block["cache_control"]


# -- ours ------------------------------------------------------------------------------------------


def test_the_tools_the_system_prompt_and_the_end_of_the_conversation_are_marked() -> None:
    assert marks() == Marks(tool=(1, FIVE), system=FIVE, conversation=FIVE, messages=[user(text())])


def test_what_is_not_there_is_not_marked() -> None:
    assert marks(tools=[], system=None) == Marks(None, None, FIVE, [user(text())])


def test_where_the_request_takes_no_mark_its_last_block_gets_it() -> None:
    found = marks([{"role": "user", "content": "Go"}], automatic=False)
    assert found.conversation is None
    assert found.messages == [user(text("Go", FIVE))]


def test_a_thought_takes_no_mark() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    spoken = {"role": "assistant", "content": [text("I look."), thought]}
    found = marks([user(text()), spoken], automatic=False)
    assert found.messages[1]["content"] == [text("I look.", FIVE), thought]
    alone = {"role": "assistant", "content": [thought]}
    assert marks([user(text()), alone], automatic=False).messages == [user(text()), alone]


def test_a_tool_that_is_loaded_later_and_a_toolset_take_no_mark() -> None:
    tools = [{"name": "a"}, {"name": "later", "defer_loading": True}, {"type": "browser_20260801"}]
    assert marks(tools=tools).tool == (0, FIVE)
    assert marks(tools=tools[1:]).tool is None


# -- a person's own --------------------------------------------------------------------------------


def test_a_persons_own_end_goes_before_ours() -> None:
    found = marks(cache_control=HOUR)
    assert (found.conversation, found.system, found.tool) == (None, HOUR, (1, HOUR))
    assert marks(extra_body={"cache_control": FIVE}).conversation is None


def test_the_end_is_not_marked_twice() -> None:
    said = [user(text(mark=FIVE))]
    assert marks(said).conversation is None
    assert marks([user(result(text(mark=HOUR)))]).conversation is None
    assert marks(said, cache_control=HOUR).messages == [user(text())]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    for automatic in (True, False):  # the thought takes none: the end is before it
        found = marks([user(text(mark=HOUR), thought)], automatic=automatic)
        assert (found.conversation, found.messages) == (None, [user(text(mark=HOUR), thought)])


def test_a_tool_that_is_marked_already_keeps_its_mark() -> None:
    tools = [{"name": "a"}, {"name": "b", "cache_control": HOUR}]
    assert marks(tools=tools).tool is None


def test_a_mark_of_an_hour_has_none_of_five_minutes_before_it() -> None:
    found = marks([user(text(mark=HOUR)), user(text())])
    assert (found.tool, found.system, found.conversation) == ((1, HOUR), HOUR, FIVE)
    assert marks(tools=[{"name": "a", "cache_control": HOUR}, {"name": "b"}]).tool == (1, FIVE)


def test_a_persons_marks_leave_room_for_fewer_of_ours() -> None:
    one, two, three, four = ([user(text(mark=FIVE))] * n + [user(text())] for n in (1, 2, 3, 4))
    assert marks(one).tool is not None
    assert (marks(two).tool, marks(two).system) == (None, FIVE)
    assert (marks(three).system, marks(three).conversation) == (None, FIVE)
    assert marks(four) == Marks(None, None, None, four)


def test_of_too_many_in_the_conversation_the_newest_stay_and_the_conversation_itself_is_not_changed() -> None:
    said = [user(result(text(str(n), FIVE), mark=FIVE)) for n in range(4)]
    before = copy.deepcopy(said)
    found = marks(said)
    assert [len(list(block_marks(message["content"]))) for message in found.messages] == [0, 0, 2, 2]
    assert said == before


def test_more_than_four_that_stay_over_all_turns_are_refused_at_entry() -> None:
    tools = [{"name": str(n), "cache_control": FIVE} for n in range(4)]
    cache_marks.refuse_too_many(tools, {})
    with pytest.raises(InvalidInputError, match="have 5 cache_control marks, and the API takes 4"):
        cache_marks.refuse_too_many(tools, {"cache_control": FIVE})
    deep = {"extra_body": {"system": [{"cache_control": FIVE}, {"cache_control": FIVE}]}}
    with pytest.raises(InvalidInputError, match="have 6 cache_control"):
        cache_marks.refuse_too_many(tools, deep)


def test_an_option_that_is_none_is_no_mark() -> None:
    assert marks(cache_control=None).conversation == FIVE


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"messages": [user(text(mark=FIVE))] * 5}, "A maximum of 4 blocks with cache_control"),
        ({"tools": [{"cache_control": FIVE}], "system": [text(mark=HOUR)], "messages": []}, "must not come after"),
        ({"messages": [user(result(text(mark=FIVE), mark=HOUR))]}, "must not come after"),
        ({"messages": [user(text(mark=FIVE))], "cache_control": HOUR}, "must not come after"),
    ],
)
def test_what_the_api_refuses_the_stand_in_refuses_too(body: dict[str, Any], why: str) -> None:
    assert why in str(cache_marks.complaint(body))


def test_what_the_api_takes_is_no_complaint() -> None:
    assert cache_marks.complaint({"messages": [user(text())], "system": "S", "tools": []}) is None
    lasting = {"tools": [{"cache_control": HOUR}], "messages": [user(text(mark=FIVE))], "cache_control": FIVE}
    assert cache_marks.complaint(lasting) is None


# -- whatever a person marks -----------------------------------------------------------------------


def result_of(parts: list[dict[str, Any]], mark: dict[str, Any] | None) -> dict[str, Any]:
    return result(*parts, mark=mark)


def user_of(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return user(*blocks)


def tool(mark: dict[str, Any] | None) -> dict[str, Any]:
    return {"name": "t"} | ({"cache_control": mark} if mark else {})


MARK = st.sampled_from([None, None, FIVE, HOUR])
TEXT = st.builds(text, st.just("Go"), MARK)
BLOCK = st.one_of(
    TEXT,
    st.builds(result_of, st.lists(TEXT, max_size=3), MARK),
    st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
)
MESSAGE = st.one_of(
    st.builds(user_of, st.lists(BLOCK, min_size=1, max_size=4)),
    st.just({"role": "user", "content": "Go"}),
)
TOOL = st.builds(tool, MARK)


def is_ordered(found: list[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether none of five minutes is before one of an hour."""
    lasting = [mark.get("ttl") == "1h" for _, mark in found]
    return lasting == sorted(lasting, reverse=True)


@given(
    tools=st.lists(TOOL, max_size=3),
    system=st.sampled_from([None, "Be brief."]),
    messages=st.lists(MESSAGE, min_size=1, max_size=5),
    end=MARK,
    automatic=st.booleans(),
)
def test_there_are_never_more_than_four_and_our_own_break_no_order(
    tools: list[dict[str, Any]],
    system: str | None,
    messages: list[dict[str, Any]],
    end: dict[str, Any] | None,
    automatic: bool,
) -> None:
    options = {"cache_control": end} if end else {}
    before = copy.deepcopy((tools, messages))
    found = cache_marks.marks(system, tools, messages, options, automatic=automatic)
    ordered = in_order(found, tools, options)
    assert len(ordered) <= 4
    assert (tools, messages) == before
    assert system is not None or found.system is None
    theirs = Marks(None, None, None, found.messages)
    if is_ordered(in_order(theirs, tools, options)):
        assert is_ordered(ordered)
    ends = [place for place, _ in ordered if place == "end"]
    assert len(ends) <= 1
    last = messages[-1]["content"]
    if ends and isinstance(last, list):  # a mark of the last block and one of the request would be two of one place
        assert "cache_control" not in found.messages[-1]["content"][-1]
    unmarked = [strip(message) for message in found.messages]
    assert unmarked == [strip(message) for message in messages]


def strip(message: dict[str, Any]) -> dict[str, Any]:
    """A message without marks, its plain text as a block."""
    content = message["content"]
    return user(*([text(content)] if isinstance(content, str) else [stripped(block) for block in content]))


def stripped(block: dict[str, Any]) -> dict[str, Any]:
    inner = {"content": [stripped(part) for part in block["content"]]} if "content" in block else {}
    return {name: value for name, value in block.items() if name != "cache_control"} | inner
