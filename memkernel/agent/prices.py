"""What a reply costs, by a small table of list prices. Pure.

Source: https://platform.claude.com/docs/en/about-claude/pricing as it stood on `PRICES_AS_OF`, in US dollars per
million tokens. A platform of its own (Bedrock, Vertex, a gateway) may charge others: `prices=` and MEMKERNEL_PRICES
say what holds. What server tools cost beside their tokens (a web search, an hour of a container) is in no price here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast

from memkernel.agent import checks
from memkernel.errors import InvalidInputError
from memkernel.models import RunKind, Usage

if TYPE_CHECKING:
    from anthropic.types.beta import BetaUsage
    from anthropic.types.beta.beta_iterations_usage import BetaIterationsUsageItem

    Counted: TypeAlias = "BetaUsage | BetaIterationsUsageItem"

PRICES_AS_OF: Final = "2026-10-24"

_MILLION: Final = 1_000_000
_LONG_PROMPT_TOKENS: Final = 100_000
_HOUR_WRITE: Final = 1.6
"""What is kept in the cache for an hour is charged twice the input's price, and the usual five minutes 1.25 times."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Attributes:
        input: of a request, where no cache is used.
        output: of a reply.
        cache_write: of a request, kept in the cache for five minutes.
        cache_read: of a request, read from the cache.
        long: the price of a request whose prompt has more than 100,000 tokens, where it differs.
    """

    input: float
    output: float
    cache_write: float
    cache_read: float
    long: Price | None = None

    @classmethod
    def of(cls, input: float, output: float, *, read: float = 0.1, long: Price | None = None) -> Price:
        """A price with the usual ones of the cache; `read` is what a read costs, as a part of the input's price."""
        return cls(input, output, 1.25 * input, read * input, long)


Prices: TypeAlias = Mapping[str, Price]

FREE: Final = Price(0.0, 0.0, 0.0, 0.0)
"""Of a script or a recording in a model's place."""

LIST_PRICES: Final[Prices] = {
    "claude-fable-5-1": Price.of(10, 50, read=0.025),
    "claude-mythos-5-1": Price.of(10, 50, read=0.025),
    "claude-fable-5": Price.of(10, 50),
    "claude-mythos-5": Price.of(10, 50),
    "claude-opus-5-5": Price.of(4, 20, read=0.05),
    "claude-opus-5": Price.of(5, 25),
    "claude-opus-4-8": Price.of(5, 25),
    "claude-opus-4-7": Price.of(5, 25),
    "claude-opus-4-6": Price.of(5, 25),
    "claude-opus-4-5": Price.of(5, 25),
    "claude-opus-4-1": Price.of(15, 75),
    "claude-sonnet-5-5": Price.of(2, 10, read=0.05),
    "claude-sonnet-5": Price.of(2, 10),
    "claude-sonnet-4-6": Price.of(3, 15),
    "claude-sonnet-4-5": Price.of(3, 15),
    "claude-haiku-5-5": Price.of(0.10, 0.50, long=Price.of(0.50, 2.50)),
    "claude-haiku-4-5": Price.of(1, 5),
}

# claude-opus-5-5 · claude-haiku-4-5-20251001 · claude-opus-4-5@20251101 · us.anthropic.claude-sonnet-4-5-20250929-v1:0
# · arn:aws:bedrock:us-east-1:1234:inference-profile/us.anthropic.claude-opus-5-5
_SPELLING: Final = re.compile(
    r"(?:arn:aws[a-z-]*:bedrock:[^/]*/)?(?:[a-z-]+\.)?(?:anthropic\.)?"
    r"(claude-[a-z]+(?:-\d{1,2})+)"
    r"(?:[@-](?:\d{8}|latest|default))?(?:-v\d+(?::\d+)?)?"
)

_PRICED_APART: Final = ("fallbacks", "inference_geo", "speed")
"""Options of a request that change its price, each by a rule of its own."""


def plain_name(model: str) -> str:
    """A model's name without its date, and without the spelling of a platform; another name as it is."""
    spelt = _SPELLING.fullmatch(model)
    return spelt[1] if spelt else model


def checked(given: object, environment: str | None = None) -> Prices:
    """The prices that a person knows better than the table.

    Args:
        given: a dict, from a model's name to US dollars per million tokens: `(input, output)`, or
            `(input, output, cache_write, cache_read)`.
        environment: the same as JSON, from MEMKERNEL_PRICES; `given` goes before it.

    Raises:
        InvalidInputError: it is anything else.
    """
    return {
        **_prices("MEMKERNEL_PRICES", _from_json(environment)),
        **_prices("prices", {} if given is None else given),
    }


def _from_json(text: str | None) -> object:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        raise InvalidInputError("MEMKERNEL_PRICES is no JSON", hint=_HINT) from None


_HINT: Final = 'They are {"model": [3, 15]}: US dollars per million tokens, in and out.'


def _prices(what: str, given: object) -> Prices:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{what} is no dict", hint=_HINT)
    found = cast("Mapping[object, object]", given)
    return {str(model): _price(f"{what}[{str(model)[:80]!r}]", price) for model, price in found.items()}


def _price(what: str, given: object) -> Price:
    if isinstance(given, Price):
        return given
    numbers: list[object] = list(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else []
    known = [float(one) for one in numbers if _is_amount(one)]
    if len(known) not in (2, 4) or len(known) != len(numbers):
        raise InvalidInputError(f"{what} is {given!r:.80}, which is no price", hint=_HINT)
    return Price.of(known[0], known[1]) if len(known) == 2 else Price(known[0], known[1], known[2], known[3])


def _is_amount(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def price_of(
    model: str, kind: RunKind = "live", *, prices: Prices | None = None, options: Mapping[str, object] | None = None
) -> Price | None:
    """What a model's tokens cost, or None where that is not known.

    Args:
        model: its name, with or without a date, also as Bedrock and Vertex spell it.
        kind: who answers; a script and a recording cost nothing.
        prices: a person's own (`checked`); they hold whatever the options are.
        options: further arguments of the request; some have a price that no table here knows.
    """
    if kind != "live":
        return FREE
    own = prices or {}
    known = own.get(model) or own.get(plain_name(model))
    return known or (None if _priced_apart(options or {}) else LIST_PRICES.get(plain_name(model)))


def _priced_apart(options: Mapping[str, object]) -> list[str]:
    sent = {**options, **checks.sent_besides(options)}
    return [name for name in _PRICED_APART if sent.get(name) not in (None, "standard", "global")]


def why_unknown(model: str, options: Mapping[str, object] | None = None) -> str:
    """Why `price_of` knows no price, as a clause."""
    special = ", ".join(_priced_apart(options or {}))
    asked = f"{model!r:.80} with {special}" if special and plain_name(model) in LIST_PRICES else f"{model!r:.80}"
    return f"no price of {asked} is known"


def usage_of(counted: BetaUsage) -> Usage:
    """The tokens that a reply is charged for: those of a compaction and of an advisor come on top of the API's sum."""
    beside = [one for one in counted.iterations or [] if one.type in _BESIDE]
    return sum((_usage(one) for one in beside), _usage(counted))


def cost_usd(counted: BetaUsage, price: Price) -> float:
    """What one reply costs, in US dollars: each request to a model that the API made for it by its own length."""
    asked = counted.iterations or []
    if not [one for one in asked if one.type not in _BESIDE]:
        return _charge(counted, price) + sum(_charge(one, _price_in(one, price)) for one in asked)
    return sum(_charge(one, _price_in(one, price)) for one in asked)


def prompt_tokens(counted: BetaUsage) -> int:
    """How long the prompt was; of a reply for which the API asked more than once, the last one."""
    asked = [one for one in counted.iterations or [] if one.type not in _BESIDE]
    usage = _usage(asked[-1] if asked else counted)
    return usage.total_tokens - usage.output_tokens


_BESIDE: Final = ("advisor_message", "compaction")


def _price_in(asked: BetaIterationsUsageItem, price: Price) -> Price:
    other = None if asked.type == "compaction" else asked.model  # an advisor, or who answered in the model's place
    if price is FREE or asked.type == "message" or other is None:
        return price
    return price_of(other) or price


def _usage(counted: Counted) -> Usage:
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_input_tokens or 0,
        counted.cache_creation_input_tokens or 0,
    )


def _charge(counted: Counted, price: Price) -> float:
    usage = _usage(counted)
    here = _price_for(usage.total_tokens - usage.output_tokens, price)
    hour_tokens = counted.cache_creation.ephemeral_1h_input_tokens if counted.cache_creation else 0
    return (
        usage.input_tokens * here.input
        + usage.output_tokens * here.output
        + usage.cache_read_input_tokens * here.cache_read
        + (usage.cache_creation_input_tokens + (_HOUR_WRITE - 1) * hour_tokens) * here.cache_write
    ) / _MILLION


def least_cost_usd(prompt_tokens: int, price: Price) -> float:
    """What a prompt costs at least: read from the cache as a whole."""
    here = _price_for(prompt_tokens, price)
    return prompt_tokens * min(here.input, here.cache_write, here.cache_read) / _MILLION


def tokens_for(usd: float, prompt_tokens: int, price: Price) -> int:
    """How many tokens of a reply the money buys, after a prompt of this length; what costs nothing has no end."""
    if usd <= 0:
        return 0
    output = _price_for(prompt_tokens, price).output
    return sys.maxsize if output == 0 else int(min(sys.maxsize, usd * _MILLION / output))


def _price_for(prompt_tokens: int, price: Price) -> Price:
    return price.long if price.long and prompt_tokens > _LONG_PROMPT_TOKENS else price
