"""How a run stands in words, and when its budget warns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent.limits import RunLimits
from memkernel.jupyter.widgets.run_standing import ELSEWHERE, WAITING, Standing
from memkernel.models import RunStatus, Usage

RUNS = Standing("live")
MONEY = RunLimits(max_cost_usd=0.5)
TOKENS = RunLimits(max_total_tokens=1_000)


@pytest.mark.parametrize(
    ("limits", "cost_usd", "tokens", "budget"),
    [
        (None, 9.0, 9, None),
        (RunLimits(), 9.0, 9, None),
        (MONEY, None, 9, None),
        (MONEY, 0.0, 9, (0.0, "fine", "0 % of the budget used")),
        (MONEY, 0.399, 9, (0.798, "fine", "79 % of the budget used")),
        (RunLimits(max_cost_usd=1), 0.1 + 0.7, 9, (0.8, "near", "80 % of the budget used")),
        (MONEY, 0.499_999, 9, (0.999998, "near", "99 % of the budget used")),
        (MONEY, 0.5, 9, (1.0, "full", "All of the budget used")),
        (MONEY, 0.7, 9, (1.0, "full", "All of the budget used")),
        (TOKENS, None, 800, (0.8, "near", "80 % of the tokens used")),
        (TOKENS, None, 1_001, (1.0, "full", "All of the tokens used")),
        (replace(MONEY, max_total_tokens=1_000), 0.1, 900, (0.9, "near", "90 % of the tokens used")),
        (replace(MONEY, max_total_tokens=1_000), 0.45, 800, (0.9, "near", "90 % of the budget used")),
    ],
)
def test_the_budget_is_the_one_that_is_nearer_to_its_limit(
    limits: RunLimits | None, cost_usd: float | None, tokens: int, budget: Any
) -> None:
    assert replace(RUNS, limits=limits, cost_usd=cost_usd, used=Usage(tokens)).budget == budget


def test_what_costs_nothing_has_no_budget_but_may_have_a_limit_of_tokens() -> None:
    free = Standing("scripted", cost_usd=0.0, limits=MONEY, used=Usage(500))
    assert free.budget is None
    both = replace(MONEY, max_total_tokens=1_000)
    assert replace(free, limits=both).budget == (0.5, "fine", "50 % of the tokens used")


def test_a_budget_that_was_too_small_for_another_request_is_full() -> None:
    ended = replace(RUNS, limits=MONEY, cost_usd=0.45, status="max_cost")
    assert ended.budget == (0.9, "full", "90 % of the budget used")


@given(st.floats(0, 1e6), st.floats(1e-6, 1e6), st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_budget_is_full_where_a_limit_is_reached_and_not_before(
    cost_usd: float, limit_usd: float, tokens: int, limit: int
) -> None:
    limits = RunLimits(max_cost_usd=limit_usd, max_total_tokens=limit)
    budget = replace(RUNS, limits=limits, cost_usd=cost_usd, used=Usage(tokens)).budget
    assert budget is not None
    assert 0 <= budget.part <= 1
    part = max(cost_usd / limit_usd, tokens / limit)
    assert (budget.level == "full") == (part >= 1 - 1e-9)
    assert (budget.level == "fine") == (part < 0.8 - 1e-9)


@pytest.mark.parametrize(
    ("standing", "word", "said"),
    [
        (RUNS, "status", "running"),
        (replace(RUNS, status=WAITING), "status", "waiting for approval"),
        (replace(RUNS, again=True), "status", "shown again"),
        (replace(RUNS, again=True, status="stopped"), "status", "stopped by the user"),
        (replace(RUNS, again=True, status=ELSEWHERE), "status", "still running when this was read"),
        (replace(RUNS, turn=3), "turn", "turn 3"),
        (replace(RUNS, turn=3, max_turns=1_000), "turn", "turn 3 of 1,000"),
        (replace(RUNS, used=Usage(5, 7)), "usage", "5 tokens in, 7 out"),
        (replace(RUNS, used=Usage(5, 7), limits=TOKENS), "usage", "5 tokens in, 7 out, of 1,000"),
        (RUNS, "cost", "cost unknown"),
        (replace(RUNS, cost_usd=0.0042), "cost", "$0.0042"),
        (replace(RUNS, cost_usd=0.41, limits=MONEY), "cost", "$0.41 of $0.50"),
        (Standing("scripted", cost_usd=0.0), "cost", "costs nothing"),
        (Standing("recorded", cost_usd=0.0), "cost", "costs nothing"),
        (RUNS, "time", ""),
        (replace(RUNS, limits=RunLimits(max_time_s=90)), "time", " of 1 min 30 s"),
    ],
)
def test_what_a_person_reads(standing: Standing, word: str, said: object) -> None:
    assert standing.words()[word] == said


def test_what_stop_does_is_said_of_a_run_and_of_one_that_is_shown_again() -> None:
    assert [RUNS.words()["stop"][0], replace(RUNS, again=True).words()["stop"][0]] == ["■ Stop", "Show the rest"]


@pytest.mark.parametrize("status", [*get_args(RunStatus), WAITING, ELSEWHERE])
@pytest.mark.parametrize("again", [False, True])
def test_every_status_has_words(status: str, again: bool) -> None:
    assert replace(RUNS, status=status, again=again).words()["status"]
