"""What keeps a long conversation going: the edits that the API makes of it, and their headers."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import long_runs
from memkernel.errors import InvalidInputError

CLEARING, COMPACTING = "context-management-2025-06-27", "compact-2026-01-12"


def checked(clear: object = False, compact: object = False, tools: tuple[str, ...] = (), **options: Any) -> Any:
    return long_runs.checked(clear, compact, options, tools)


def edits(options: Any) -> list[Any]:
    return options["context_management"]["edits"]


# -- what a person asks for ------------------------------------------------------------------------


@pytest.mark.parametrize("off", [False, None])
def test_off_nothing_is_added_and_no_header_sent(off: object) -> None:
    assert checked(off, off) == {}
    own: dict[str, Any] = {"thinking": {"type": "adaptive"}, "betas": ["mine"]}
    assert checked(off, off, **own) == own


def test_clearing_keeps_the_calls_of_the_memory_tool() -> None:
    assert checked(True, tools=("memory", "bash")) == {
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"]}]},
        "betas": [CLEARING],
    }


def test_without_a_memory_there_is_nothing_to_keep() -> None:
    assert edits(checked(True, tools=("bash",))) == [{"type": "clear_tool_uses_20250919"}]


def test_memory_is_kept_beside_the_tools_that_a_person_names() -> None:
    (edit,) = edits(checked({"exclude_tools": ["bash"]}, tools=("memory", "bash")))
    assert edit["exclude_tools"] == ["bash", "memory"]
    (edit,) = edits(checked({"exclude_tools": ["memory"]}, tools=("memory",)))
    assert edit["exclude_tools"] == ["memory"]


def test_bare_numbers_are_counted_in_what_the_field_is_of() -> None:
    (edit,) = edits(checked({"trigger": 30_000, "keep": 5, "clear_at_least": 5_000, "clear_tool_inputs": True}))
    assert edit == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 30_000},
        "keep": {"type": "tool_uses", "value": 5},
        "clear_at_least": {"type": "input_tokens", "value": 5_000},
        "clear_tool_inputs": True,
    }
    trigger = {"type": "tool_uses", "value": 9}
    assert edits(checked({"trigger": trigger}))[0]["trigger"] == trigger


def test_compaction_has_a_header_of_its_own() -> None:
    assert checked(False, True) == {
        "context_management": {"edits": [{"type": "compact_20260112"}]},
        "betas": [COMPACTING],
    }
    (edit,) = edits(checked(False, {"trigger": 60_000, "instructions": "Keep the paths."}))
    assert edit == {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 60_000},
        "instructions": "Keep the paths.",
    }


def test_both_go_together_and_beside_a_persons_own() -> None:
    thinking = {"type": "clear_thinking_20251015", "keep": "all"}
    options = checked(
        True, True, ("memory",), context_management={"edits": [thinking], "more": 1}, betas=["mine", COMPACTING]
    )
    assert options["betas"] == ["mine", COMPACTING, CLEARING]
    assert options["context_management"]["more"] == 1
    assert [edit["type"] for edit in edits(options)] == [
        "clear_thinking_20251015",  # the API wants it first
        "clear_tool_uses_20250919",
        "compact_20260112",
    ]


def test_a_persons_own_options_are_left_as_they_are() -> None:
    own: dict[str, Any] = {"context_management": {"edits": [{"type": "compact_20260112"}]}, "betas": ["mine"]}
    long_runs.checked(True, False, own, ["memory"])
    assert own == {"context_management": {"edits": [{"type": "compact_20260112"}]}, "betas": ["mine"]}


@pytest.mark.parametrize(
    ("clear", "compact", "why"),
    [
        ("yes", False, "clear_tool_results is 'yes'"),
        (1, False, "clear_tool_results is 1"),
        (False, [], r"compaction is \[\]"),
        ({"type": "x"}, False, "clear_tool_results has no field 'type'"),
        (False, {"keep": 3}, "compaction has no field 'keep'"),
        (False, {"pause_after_compaction": True}, "compaction has no field 'pause_after_compaction'"),
        ({"keep": -1}, False, r"clear_tool_results\['keep'\] is -1"),
        ({"keep": "3"}, False, r"clear_tool_results\['keep'\] is '3'"),
        (False, {"trigger": True}, r"compaction\['trigger'\] is True"),
        ({"exclude_tools": "memory"}, False, "no list of names of tools"),
        ({"exclude_tools": [1]}, False, "no list of names of tools"),
    ],
)
def test_what_the_api_would_refuse_is_refused_by_its_name(clear: Any, compact: Any, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        checked(clear, compact)


def test_the_same_edit_in_both_places_is_refused() -> None:
    given: dict[str, Any] = {"context_management": {"edits": [{"type": "compact_20260112"}]}}
    with pytest.raises(InvalidInputError, match="compact_20260112 is asked for twice"):
        checked(False, True, **given)


@pytest.mark.parametrize("bad", [3, "x", [1], {"type": "compact_20260112"}])
def test_edits_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="no list of edits"):
        checked(True, context_management={"edits": bad})


def test_headers_that_are_no_list_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="is a list of names"):
        checked(True, betas="mine")


# -- what goes out with a request ------------------------------------------------------------------

COMPACTED = [{"role": "assistant", "content": [{"type": "compaction", "content": "So far: …"}]}]


def test_a_conversation_that_was_compacted_needs_the_header_also_without_the_edit() -> None:
    assert long_runs.for_request({}, COMPACTED) == {"betas": [COMPACTING]}
    assert long_runs.for_request({"betas": ["mine"]}, COMPACTED) == {"betas": ["mine", COMPACTING]}
    assert long_runs.for_request({}, [{"role": "user", "content": "Go"}]) == {}


def test_whether_the_api_may_shorten_the_conversation() -> None:
    assert not long_runs.shortens(checked())
    assert long_runs.shortens(checked(True))
    assert long_runs.shortens(checked(False, True))


def bad_request(message: str, status: int = 400) -> anthropic.APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://127.0.0.1/v1/messages"))
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return anthropic.APIStatusError(message, response=response, body=body)


SAID = "context_management.edits.0: compact_20260112 is not supported by this model."


def test_a_refused_compaction_is_said_with_the_apis_reason() -> None:
    assert long_runs.compaction_refused(bad_request(SAID), checked(False, True)) == (
        "The API refused to compact the conversation (context_management.edits.0: compact_20260112 is not supported "
        "by this model): the run goes on without it."
    )


@pytest.mark.parametrize(
    ("error", "compact"),
    [
        (bad_request(SAID), False),
        (bad_request(SAID, status=500), True),
        (bad_request("messages: text is empty"), True),
        (ConnectionError("compact"), True),
    ],
)
def test_no_other_error_is_taken_for_it(error: Exception, compact: bool) -> None:
    assert long_runs.compaction_refused(error, checked(False, compact)) is None


def test_without_compaction_the_rest_stays() -> None:
    both = checked(True, True, ("memory",), thinking={"type": "adaptive"}, betas=["mine"])
    assert long_runs.without_compaction(both) == checked(
        True, False, ("memory",), thinking={"type": "adaptive"}, betas=["mine"]
    )
    assert long_runs.without_compaction(checked(False, True)) == {}


@given(st.booleans(), st.booleans(), st.lists(st.sampled_from([CLEARING, COMPACTING, "mine"]), unique=True))
def test_a_header_is_sent_once_and_only_with_its_edit(clear: bool, compact: bool, own: list[str]) -> None:
    sent = checked(clear, compact, betas=own).get("betas", [])
    assert len(sent) == len(set(sent))
    assert set(sent) == {*own, *([CLEARING] if clear else []), *([COMPACTING] if compact else [])}
