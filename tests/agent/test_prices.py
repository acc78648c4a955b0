"""What replies cost: the table, a person's own prices, and what the API charges beside its sum."""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any, get_args

import pytest
from anthropic.types import ModelParam
from anthropic.types.beta import BetaUsage
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import prices
from memkernel.agent.clients import DEFAULT_MODEL
from memkernel.agent.prices import FREE, Price
from memkernel.errors import InvalidInputError
from memkernel.models import Usage

MILLION = 1_000_000


def counted(input: int = 0, output: int = 0, write: int = 0, read: int = 0, **more: Any) -> BetaUsage:
    """What the API says of a reply."""
    return BetaUsage.model_validate(
        {
            "input_tokens": input,
            "output_tokens": output,
            "cache_creation_input_tokens": write,
            "cache_read_input_tokens": read,
            **more,
        }
    )


def iteration(type: str, **more: Any) -> dict[str, Any]:
    """One request to a model that the API made for a reply."""
    return {"type": type, **counted(**more).model_dump(exclude={"iterations"}), **more}


def known(model: str) -> Price:
    """The price of a model that has one."""
    price = prices.price_of(model)
    assert price is not None
    return price


# -- the table -------------------------------------------------------------------------------------


def test_the_table_has_its_date_and_its_source() -> None:
    assert date.fromisoformat(prices.PRICES_AS_OF).year >= 2026
    assert "platform.claude.com/docs/en/about-claude/pricing" in (prices.__doc__ or "")


def test_the_default_model_has_a_price() -> None:
    assert known(DEFAULT_MODEL) == Price(input=2, output=10, cache_write=2.5, cache_read=0.1)


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-fable-5-1", (10, 50, 12.5, 0.25)),
        ("claude-fable-5", (10, 50, 12.5, 1)),
        ("claude-opus-5-5", (4, 20, 5, 0.2)),
        ("claude-opus-5", (5, 25, 6.25, 0.5)),
        ("claude-opus-4-1", (15, 75, 18.75, 1.5)),
        ("claude-sonnet-4-6", (3, 15, 3.75, 0.3)),
        ("claude-haiku-4-5", (1, 5, 1.25, 0.1)),
    ],
)
def test_a_price_is_that_of_the_page(model: str, price: tuple[float, float, float, float]) -> None:
    found = known(model)
    assert (found.input, found.output, found.cache_write, found.cache_read) == pytest.approx(price)


@pytest.mark.parametrize(
    "spelling",
    [
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5-latest",
        "claude-haiku-4-5@20251001",
        "claude-haiku-4-5@default",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "global.anthropic.claude-haiku-4-5-20251001-v1:0",
        "anthropic.claude-haiku-4-5",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
    ],
)
def test_a_model_is_found_as_every_platform_spells_it(spelling: str) -> None:
    assert prices.plain_name(spelling) == "claude-haiku-4-5"
    assert prices.price_of(spelling) == known("claude-haiku-4-5")


@pytest.mark.parametrize(
    "unknown",
    [
        "gpt-9",
        "claude-opus-9",
        "claude-opus-5-50",
        "my-claude-opus-5-5",
        "claude-opus-5-5-turbo",
        "claude-opus",
        "",
        "claude-opus-5-5\n",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3",
    ],
)
def test_a_model_that_is_not_in_the_table_has_no_price(unknown: str) -> None:
    assert prices.price_of(unknown) is None


def test_no_model_of_the_sdk_is_priced_as_another_one() -> None:
    named: tuple[str, ...] = get_args(get_args(ModelParam)[0])
    assert DEFAULT_MODEL in named
    found = {name: prices.plain_name(name) for name in named}
    assert all(re.sub(r"-\d{8}$", "", name) == plain for name, plain in found.items())


# -- who answers, and how --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["scripted", "recorded"])
def test_a_script_and_a_recording_cost_nothing_whatever_their_name(kind: Any) -> None:
    price = prices.price_of("claude-opus-5-5", kind, prices={"claude-opus-5-5": Price.of(3, 15)})
    assert price is FREE
    assert prices.cost_usd(counted(MILLION, MILLION), FREE) == 0


@pytest.mark.parametrize("options", [{"speed": "fast"}, {"inference_geo": "us"}, {"fallbacks": [{"model": "x"}]}])
def test_what_changes_the_price_leaves_none_but_a_persons_own(options: dict[str, Any]) -> None:
    assert prices.price_of("claude-opus-5-5", options={"extra_body": options}) is None
    assert prices.price_of("claude-opus-5-5", options=options) is None
    own = {"claude-opus-5-5": Price.of(8, 40)}
    assert prices.price_of("claude-opus-5-5", options=options, prices=own) == Price.of(8, 40)
    assert prices.why_unknown("claude-opus-5-5", options) == (
        f"no price of 'claude-opus-5-5' with {next(iter(options))} is known"
    )


def test_ordinary_options_leave_the_price_as_it_is() -> None:
    options = {"speed": "standard", "inference_geo": None, "thinking": {"type": "adaptive"}}
    assert prices.price_of("claude-opus-5-5", options=options) == known("claude-opus-5-5")


def test_why_a_price_is_unknown() -> None:
    assert prices.why_unknown("gpt-9") == "no price of 'gpt-9' is known"
    assert prices.why_unknown("gpt-9", {"speed": "fast"}) == "no price of 'gpt-9' is known"


# -- a person's own --------------------------------------------------------------------------------


def test_a_persons_price_goes_before_the_table_also_for_another_spelling() -> None:
    own = prices.checked({"claude-opus-5-5": (3, 15), "local": [1, 2, 3, 4]})
    assert prices.price_of("claude-opus-5-5", prices=own) == Price.of(3, 15)
    assert prices.price_of("us.anthropic.claude-opus-5-5-v1:0", prices=own) == prices.price_of(
        "claude-opus-5-5", prices=own
    )
    assert prices.price_of("local", prices=own) == Price(1, 2, 3, 4)


def test_what_is_given_goes_before_the_environment() -> None:
    own = prices.checked({"a": (1, 2)}, '{"a": [9, 9], "b": [3, 4]}')
    assert (own["a"].input, own["b"].input) == (1, 3)


def test_without_any_there_are_none() -> None:
    assert prices.checked(None) == prices.checked({}, "") == {}


@pytest.mark.parametrize(
    "bad",
    [
        {"m": 3},
        {"m": (3,)},
        {"m": (1, 2, 3)},
        {"m": (1, 2, 3, 4, 5)},
        {"m": (-1, 2)},
        {"m": (math.nan, 2)},
        {"m": (math.inf, 2)},
        {"m": (10**400, 2)},
        {"m": ("3", "15")},
        {"m": (True, 2)},
        {"m": None},
        {"m": {"input": 1}},
        {"m": "35"},
    ],
)
def test_what_is_no_price_is_refused_by_the_models_name(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"prices\['m'\] is .*, which is no price") as refused:
        prices.checked(bad)
    assert "US dollars per million tokens" in refused.value.hint


@pytest.mark.parametrize("bad", [[("m", (1, 2))], "claude", 3])
def test_prices_that_are_no_dict_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="prices is no dict"):
        prices.checked(bad)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "MEMKERNEL_PRICES is no JSON"),
        ("[1]", "MEMKERNEL_PRICES is no dict"),
        ('{"m": 1}', r"MEMKERNEL_PRICES\['m'\] is 1, which is no price"),
        ('{"m": [NaN, 1]}', r"MEMKERNEL_PRICES\['m'\] is \[nan, 1\], which is no price"),
    ],
)
def test_an_environment_that_holds_no_prices_is_refused_by_its_name(text: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        prices.checked(None, text)


# -- what a reply costs ----------------------------------------------------------------------------


def test_each_kind_of_token_has_its_price() -> None:
    price = Price(input=1, output=10, cache_write=100, cache_read=1000)
    assert prices.cost_usd(counted(MILLION), price) == 1
    assert prices.cost_usd(counted(output=MILLION), price) == 10
    assert prices.cost_usd(counted(write=MILLION), price) == 100
    assert prices.cost_usd(counted(read=MILLION), price) == 1000


def test_what_is_kept_for_an_hour_costs_twice_the_input() -> None:
    split = {"ephemeral_1h_input_tokens": MILLION, "ephemeral_5m_input_tokens": MILLION}
    kept = counted(write=2 * MILLION, cache_creation=split)
    assert prices.cost_usd(kept, Price.of(4, 20)) == pytest.approx(5 + 8)


def test_a_long_prompt_has_its_own_price_for_every_token_of_its_request() -> None:
    price = known("claude-haiku-5-5")
    assert prices.cost_usd(counted(100_000, 1000), price) == pytest.approx(0.0105)
    assert prices.cost_usd(counted(60_000, 1000, read=40_001), price) == pytest.approx(0.03 + 0.0025 + 40_001 * 0.05e-6)


def test_the_length_is_that_of_each_request_that_the_api_made_for_a_reply() -> None:
    price = known("claude-haiku-5-5")
    twice = [iteration("message", input=60_000), iteration("message", input=60_000)]
    assert prices.cost_usd(counted(120_000, iterations=twice), price) == pytest.approx(0.012)
    assert prices.prompt_tokens(counted(120_000, iterations=twice)) == 60_000


def test_a_compaction_is_charged_though_the_sum_leaves_it_out() -> None:
    both = [iteration("compaction", input=1000, output=100), iteration("message", input=10, output=1)]
    reply = counted(10, 1, iterations=both)
    assert prices.usage_of(reply) == Usage(1010, 101)
    assert prices.cost_usd(reply, Price(1, 10, 0, 0)) == pytest.approx((1010 + 1010) / MILLION)
    assert prices.prompt_tokens(reply) == 10


def test_a_compaction_alone_comes_on_top_as_well() -> None:
    reply = counted(10, 1, iterations=[iteration("compaction", input=1000, output=100)])
    assert prices.cost_usd(reply, Price(1, 10, 0, 0)) == pytest.approx((1010 + 1010) / MILLION)
    assert prices.prompt_tokens(reply) == 10


def test_an_advisor_is_charged_at_its_own_price_where_that_is_known() -> None:
    asked = [iteration("message", output=1), iteration("advisor_message", output=100, model="claude-opus-5-5")]
    reply = counted(output=1, iterations=asked)
    assert prices.usage_of(reply) == Usage(output_tokens=101)
    assert prices.cost_usd(reply, Price.of(2, 10)) == pytest.approx((10 + 100 * 20) / MILLION)
    unknown = counted(output=1, iterations=[asked[0], asked[1] | {"model": "new"}])
    assert prices.cost_usd(unknown, Price.of(2, 10)) == pytest.approx((10 + 100 * 10) / MILLION)
    assert prices.cost_usd(reply, FREE) == 0


def test_counts_that_the_api_leaves_out_are_none() -> None:
    bare = BetaUsage.model_validate({"input_tokens": 3, "output_tokens": 4})
    assert prices.usage_of(bare) == Usage(3, 4)
    assert prices.prompt_tokens(bare) == 3


TOKENS = st.integers(0, 10**7)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_no_reply_has_a_negative_cost_and_more_tokens_cost_no_less(a: int, b: int, write: int, read: int) -> None:
    price = known("claude-haiku-5-5")
    less, more = counted(a, b, write, read), counted(a + 1, b + 1, write, read)
    assert 0 <= prices.cost_usd(less, price) <= prices.cost_usd(more, price)
