"""How far a run may go: what is accepted, what a request is cut to, and what is said at the end."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import limits
from memkernel.agent.limits import Allowance, Budget, Reached, RunLimits, Spent
from memkernel.agent.prices import FREE, Price
from memkernel.errors import InvalidInputError
from memkernel.models import Usage

PATIENCE_S = 30.0
ONE = Price(1.0, 1.0, 1.0, 1.0)
"""A dollar per million tokens, whatever they are."""


def checked(**given: Any) -> RunLimits:
    """The limits, of a model whose price is known unless told otherwise."""
    known: dict[str, Any] = {"model": "claude-sonnet-5-5", "price": ONE}
    return limits.checked(**(known | given))


# -- what a person asks for ------------------------------------------------------------------------


def test_without_a_word_there_are_fifty_turns_and_no_other_limit() -> None:
    assert checked() == RunLimits(max_turns=50, max_total_tokens=None, max_cost_usd=None, max_time_s=None)


def test_limits_are_taken_as_they_are() -> None:
    given = checked(max_turns=3, max_total_tokens=10_000, max_cost_usd=1, max_time_s=2.5)
    assert given == RunLimits(3, 10_000, 1.0, 2.5)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", True, None])
def test_max_turns_is_a_whole_number(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"max_turns is .*, not a whole number of 1 or more"):
        checked(max_turns=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", True])
def test_max_total_tokens_is_a_whole_number_or_none(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"max_total_tokens is .*, not a whole number of 1 or more"):
        checked(max_total_tokens=bad)


@pytest.mark.parametrize("name", ["max_cost_usd", "max_time_s"])
@pytest.mark.parametrize("bad", [0, -0.5, math.nan, math.inf, 10**400, "1", True, 1j])
def test_cost_and_time_are_numbers_above_zero_or_none(name: str, bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} is .*, not a number above 0") as refused:
        checked(**{name: bad})
    assert refused.value.hint == "None is no limit."


def test_a_time_that_no_clock_can_wait_for_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_time_s"):
        checked(max_time_s=threading.TIMEOUT_MAX * 2)


def test_a_cost_without_a_price_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidInputError) as refused:
        checked(model="my-model", price=None, max_cost_usd=0.5)
    assert str(refused.value) == "max_cost_usd needs a price, and no price of 'my-model' is known"
    assert "prices={'my-model': (3, 15)}" in refused.value.hint
    assert "MEMKERNEL_PRICES" in refused.value.hint
    assert checked(model="my-model", price=None, max_total_tokens=5).max_total_tokens == 5


def test_a_price_that_an_option_changes_is_said_by_the_options_name() -> None:
    with pytest.raises(InvalidInputError, match="no price of 'claude-opus-5-5' with speed is known"):
        checked(model="claude-opus-5-5", price=None, max_cost_usd=1, options={"speed": "fast"})


# -- turns -----------------------------------------------------------------------------------------


def test_turns_are_counted_exactly() -> None:
    budget = Budget(RunLimits(max_turns=2), None)
    assert budget.allow(Spent(turns=1), 10, 100) == Allowance(100)
    reached = Reached("max_turns", "Stopped after 2 turns (max_turns). The next prompt goes on.")
    assert budget.allow(Spent(turns=2), 10, 100) == Allowance(0, reached)


def test_without_further_limits_a_request_is_sent_as_it_is() -> None:
    assert Budget(RunLimits(), None).allow(Spent(Usage(10**9, 10**9)), 10**9, 32_000) == Allowance(32_000)


# -- tokens ----------------------------------------------------------------------------------------


def test_a_reply_is_cut_to_what_is_left_and_its_end_says_why() -> None:
    budget = Budget(RunLimits(max_total_tokens=1_000), None)
    allowed = budget.allow(Spent(Usage(300, 200), turns=1), 400, 32_000)
    assert allowed.max_tokens == 100
    assert allowed.reached == Reached(
        "max_total_tokens",
        "The reply was cut off where max_total_tokens (1,000) was reached. The next prompt goes on.",
    )


def test_a_request_that_would_pass_the_limit_is_not_sent() -> None:
    budget = Budget(RunLimits(max_total_tokens=1_000), None)
    reached = Reached(
        "max_total_tokens",
        "Stopped at 800 of 1,000 (max_total_tokens): no further reply fits. The next prompt goes on.",
    )
    assert budget.allow(Spent(Usage(800), turns=1), 200, 32_000) == Allowance(0, reached)
    assert budget.allow(Spent(Usage(800), turns=1), 10**6, 32_000) == Allowance(0, reached)


def test_what_the_cache_took_in_and_gave_back_counts() -> None:
    budget = Budget(RunLimits(max_total_tokens=1_000), None)
    assert budget.allow(Spent(Usage(100, 100, 400, 400), turns=1), 0, 10).max_tokens == 0


def test_a_reply_too_short_to_be_worth_its_request_is_not_asked_for() -> None:
    budget = Budget(RunLimits(max_total_tokens=1_000), None)
    assert budget.allow(Spent(turns=1), 900, 32_000, smallest=100).max_tokens == 100
    assert budget.allow(Spent(turns=1), 901, 32_000, smallest=100).max_tokens == 0


def test_a_conversation_that_is_too_long_by_itself_is_said_so() -> None:
    allowed = Budget(RunLimits(max_total_tokens=1_000), None).allow(Spent(), 5_000, 32_000)
    assert allowed.reached is not None
    assert allowed.reached.sentence == (
        "Nothing was asked: the conversation alone takes 5,000 tokens or more, which leaves no room for a reply: "
        "max_total_tokens is 1,000."
    )


# -- cost ------------------------------------------------------------------------------------------


def test_a_reply_is_cut_to_what_the_money_buys() -> None:
    budget = Budget(RunLimits(max_cost_usd=1.0), Price(1.0, 10.0, 1.25, 0.1))
    allowed = budget.allow(Spent(cost_usd=0.5, turns=1), 1_000_000, 32_000_000)
    assert allowed.max_tokens == 40_000  # 40 cents, since the prompt costs a tenth of a dollar at least
    assert allowed.reached == Reached(
        "max_cost", "The reply was cut off where max_cost_usd ($1.00) was reached. The next prompt goes on."
    )


def test_no_request_is_sent_once_the_money_is_spent() -> None:
    budget = Budget(RunLimits(max_cost_usd=0.5), ONE)
    allowed = budget.allow(Spent(cost_usd=0.5, turns=3), 0, 100)
    assert allowed == Allowance(
        0,
        Reached(
            "max_cost",
            "Stopped at $0.50 of $0.50 (max_cost_usd): no further reply fits. The next prompt goes on.",
        ),
    )


def test_a_prompt_that_costs_very_little_is_told_with_its_price() -> None:
    reached = Budget(RunLimits(max_cost_usd=0.000_04), ONE).allow(Spent(), 45, 100).reached
    assert reached is not None
    assert reached.sentence == (
        "Nothing was asked: the conversation alone takes $0.000045 or more, which leaves no room for a reply: "
        "max_cost_usd is $0.000040."
    )


def test_a_prompt_that_costs_too_much_by_itself_is_not_sent() -> None:
    allowed = Budget(RunLimits(max_cost_usd=0.5), ONE).allow(Spent(), 1_000_000, 100)
    assert allowed.max_tokens == 0
    assert allowed.reached is not None
    assert allowed.reached.sentence == (
        "Nothing was asked: the conversation alone takes $1.00 or more, which leaves no room for a reply: "
        "max_cost_usd is $0.50."
    )


def test_what_costs_nothing_reaches_no_limit_of_cost() -> None:
    assert Budget(RunLimits(max_cost_usd=1e-9), FREE).allow(Spent(turns=9), 10**9, 32_000) == Allowance(32_000)


def test_a_long_prompt_is_priced_as_one() -> None:
    price = Price(1.0, 1.0, 1.0, 1.0, long=Price(5.0, 5.0, 5.0, 5.0))
    budget = Budget(RunLimits(max_cost_usd=1.0), price)
    assert budget.allow(Spent(), 100_000, 10**9).max_tokens == 900_000
    assert budget.allow(Spent(), 100_001, 10**9).max_tokens == pytest.approx(99_999, abs=1)


def test_no_amount_of_money_is_too_much() -> None:
    assert Budget(RunLimits(max_cost_usd=sys.float_info.max), ONE).allow(Spent(), 10, 32_000) == Allowance(32_000)


def test_the_tighter_limit_counts() -> None:
    budget = Budget(RunLimits(max_total_tokens=500, max_cost_usd=0.0001), ONE)
    allowed = budget.allow(Spent(turns=1), 0, 1_000)
    assert allowed.max_tokens == 100
    assert allowed.reached is not None
    assert allowed.reached.status == "max_cost"


SMALL = st.integers(0, 3_000)


@given(
    limit=st.integers(1, 20_000),
    max_tokens=st.integers(1, 5_000),
    smallest=st.integers(1, 64),
    turns=st.lists(st.tuples(SMALL, SMALL, st.floats(0, 1)), max_size=20),
)
def test_a_run_passes_its_limits_by_no_more_than_the_words_that_nobody_could_know(
    limit: int, max_tokens: int, smallest: int, turns: list[tuple[int, int, float]]
) -> None:
    budget = Budget(RunLimits(max_total_tokens=limit, max_cost_usd=limit / 1_000_000), ONE)
    spent, unknown = Spent(), 0
    for known, more, part in turns:
        allowed = budget.allow(spent, known, max_tokens, smallest)
        assert 0 <= allowed.max_tokens <= max_tokens
        assert (allowed.max_tokens < max_tokens) == (allowed.reached is not None)
        if allowed.max_tokens == 0:
            break
        assert allowed.max_tokens >= min(smallest, max_tokens)
        unknown = more
        usage = spent.usage + Usage(known + more, int(part * allowed.max_tokens))
        spent = Spent(usage, usage.total_tokens / 1_000_000, spent.turns + 1)
        if usage.total_tokens > limit:
            assert budget.allow(spent, 0, max_tokens, smallest).max_tokens == 0
            break
    assert spent.usage.total_tokens <= limit + unknown


# -- the smallest reply ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_tokens", "options", "least"),
    [
        (32_000, {}, 64),
        (10, {}, 10),
        (32_000, {"thinking": {"type": "adaptive"}}, 64),
        (32_000, {"thinking": {"type": "enabled", "budget_tokens": 4_000}}, 4_001),
        (2_000, {"thinking": {"type": "enabled", "budget_tokens": 4_000}}, 2_000),
        (32_000, {"thinking": None}, 64),
    ],
)
def test_a_reply_must_have_room_for_its_thinking(max_tokens: int, options: dict[str, Any], least: int) -> None:
    assert limits.smallest_reply(max_tokens, options) == least


# -- what messages take ----------------------------------------------------------------------------


def message(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def test_an_eighth_of_the_characters_is_the_least() -> None:
    call = {"type": "tool_use", "id": "a", "name": "memory", "input": {"path": "/" + "x" * 58}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "y" * 80}
    parts = {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "z" * 80}]}
    told = [{"role": "user", "content": "w" * 80}, message(call, role="assistant"), message(result, parts)]
    assert limits.least_tokens(told) == (80 + 71 + 80 + 80) // 8


@pytest.mark.parametrize(
    "unknown",
    [
        {"type": "thinking", "thinking": "t" * 800, "signature": "s"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 8_000}},
        {"type": "tool_result", "tool_use_id": "a"},
        {"type": "redacted_thinking", "data": "A" * 800},
    ],
)
def test_pictures_and_thoughts_count_as_nothing(unknown: dict[str, Any]) -> None:
    assert limits.least_tokens([message(unknown)]) == 0


def test_what_is_before_a_compaction_is_not_sent_any_more_and_not_counted() -> None:
    compacted = {"type": "compaction", "content": "c" * 80}
    before, after = {"type": "text", "text": "b" * 8_000}, {"type": "text", "text": "a" * 80}
    assert limits.least_tokens([message(before), message(compacted, after)]) == 20


def test_nothing_takes_nothing() -> None:
    assert limits.least_tokens([]) == 0


# -- time ------------------------------------------------------------------------------------------


def test_the_clock_rings_in_a_thread_of_its_own() -> None:
    rung, threads = threading.Event(), list[threading.Thread]()

    def ring() -> None:
        threads.append(threading.current_thread())
        rung.set()

    with limits.clock(0.001, ring):
        assert rung.wait(PATIENCE_S)
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


def test_a_clock_that_is_left_never_rings() -> None:
    timers = set(threading.enumerate())
    with limits.clock(PATIENCE_S, lambda: pytest.fail("it rang")):
        (timer,) = set(threading.enumerate()) - timers
    timer.join(PATIENCE_S)
    assert not timer.is_alive()


def test_a_clock_is_stopped_also_by_an_error() -> None:
    timers = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), limits.clock(PATIENCE_S, lambda: None):
        raise KeyboardInterrupt
    for timer in set(threading.enumerate()) - timers:
        timer.join(PATIENCE_S)
    assert set(threading.enumerate()) <= timers


def test_no_time_limit_is_no_clock() -> None:
    before = set(threading.enumerate())
    with limits.clock(None, lambda: None):
        assert set(threading.enumerate()) <= before


def test_the_end_by_time_is_said() -> None:
    assert limits.out_of_time(1.5) == Reached("max_time", "Stopped after 1.5 s (max_time_s). The next prompt goes on.")
