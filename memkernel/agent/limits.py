"""How far a run may go: turns, tokens, cost, time. Pure but for its clock.

Turns are counted exactly. Time is looked at by a clock that stops whatever waits; a tool that runs in another thread
than the main one is let finish. Tokens and cost are known for certain only once a reply is there: so each request is
cut to what is left for its reply, and is not sent where what it takes at least leaves nothing. These two can still be
passed, by what one request's new words (the prompt, results of tools) take beyond an eighth of their characters, and by
a compaction. A reply that broke off is not counted, though it may be charged.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from memkernel.agent import checks, conversation, prices
from memkernel.agent.conversation import Block, Message
from memkernel.agent.events import Status
from memkernel.agent.prices import Price
from memkernel.errors import InvalidInputError
from memkernel.models import Usage
from memkernel.render import counted, dollars_text

_CHARS_A_TOKEN: Final = 8
"""More than a token holds in any language's prose, so that a guess by it is no more than what is charged."""

_USEFUL_TOKENS: Final = 64
"""A reply that is cut off within its first sentence is not worth its request."""

_AGAIN: Final = "The next prompt goes on."


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How far one run may go; None is no limit.

    Attributes:
        max_turns: replies of the model.
        max_total_tokens: of all its requests and replies, what the cache took in and gave back included.
        max_cost_usd: US dollars.
        max_time_s: seconds, the waiting for a person included.
    """

    max_turns: int = 50
    max_total_tokens: int | None = None
    max_cost_usd: float | None = None
    max_time_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Reached:
    """Which limit ends a run, and the sentence that says so."""

    status: Status
    sentence: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the next request may take.

    Attributes:
        max_tokens: of its reply; 0 where it is not to be sent.
        reached: the limit that forbids it; or the one that its reply was cut off at, if it is cut off at `max_tokens`.
    """

    max_tokens: int
    reached: Reached | None = None


# -- what a person asks for ------------------------------------------------------------------------


def checked(
    *,
    model: str,
    price: Price | None,
    max_turns: object = 50,
    max_total_tokens: object = None,
    max_cost_usd: object = None,
    max_time_s: object = None,
    options: Mapping[str, Any] | None = None,
) -> RunLimits:
    """The limits, if they can be kept.

    Raises:
        InvalidInputError: one is no number above 0, or the cost is limited and the model's price is not known.
    """
    cost = _number("max_cost_usd", max_cost_usd)
    if cost is not None and price is None:
        raise InvalidInputError(
            f"max_cost_usd needs a price, and {prices.why_unknown(model, options)}",
            hint=f"Say it, in US dollars per million tokens in and out: prices={{{model[:80]!r}: (3, 15)}}. "
            "MEMKERNEL_PRICES holds the same as JSON; max_total_tokens needs no price.",
        )
    return RunLimits(
        checks.count("max_turns", max_turns),
        None if max_total_tokens is None else checks.count("max_total_tokens", max_total_tokens),
        cost,
        _number("max_time_s", max_time_s, at_most=threading.TIMEOUT_MAX),
    )


def _number(what: str, value: object, at_most: float = sys.float_info.max) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= at_most:
        raise InvalidInputError(f"{what} is {value!r:.80}, not a number above 0", hint="None is no limit.")
    return float(value)


def smallest_reply(max_tokens: int, options: Mapping[str, Any]) -> int:
    """How many tokens a reply must be given, where it is to be asked for at all."""
    match options.get("thinking"):
        case {"budget_tokens": int(budget)}:
            # The API refuses a reply that is to be no longer than its thinking.
            return min(max_tokens, max(_USEFUL_TOKENS, budget + 1))
        case _:
            return min(max_tokens, _USEFUL_TOKENS)


# -- what a request takes --------------------------------------------------------------------------


def least_tokens(messages: Sequence[Message]) -> int:
    """How many tokens these messages take at least, guessed from their words; pictures and thoughts count as none."""
    return sum(map(_chars, _since_compaction(messages))) // _CHARS_A_TOKEN


def _since_compaction(messages: Sequence[Message]) -> Iterable[Block]:
    blocks = [block for message in messages for block in conversation.blocks(message)]
    compacted = [n for n, block in enumerate(blocks) if block["type"] == "compaction"]
    return blocks[compacted[-1] :] if compacted else blocks


def _chars(block: Block) -> int:
    match block:
        case {"type": "text", "text": str(text)} | {"type": "compaction", "content": str(text)}:
            return len(text)
        case {"type": "tool_use", "input": given}:
            return len(json.dumps(given, ensure_ascii=False))
        case {"type": "tool_result", "content": str(text)}:
            return len(text)
        case {"type": "tool_result", "content": list()}:
            return sum(map(_chars, block["content"]))
        case _:
            return 0


# -- the budget ------------------------------------------------------------------------------------


class Budget:
    """What is left of a run's limits."""

    def __init__(self, limits: RunLimits, price: Price | None) -> None:
        self._limits = limits
        self._price = price

    def allow(self, spent: Spent, least_tokens: int, max_tokens: int, smallest: int = 1) -> Allowance:
        """What the next request may take.

        Args:
            spent: what the run used so far.
            least_tokens: what the request's prompt takes at least.
            max_tokens: of its reply, as the person asked for.
            smallest: a reply of fewer tokens is not worth asking for (`smallest_reply`).
        """
        if spent.turns >= self._limits.max_turns:
            sentence = f"Stopped after {counted(spent.turns, 'turn')} (max_turns). {_AGAIN}"
            return Allowance(0, Reached("max_turns", sentence))
        rooms = [room for room in (self._tokens(spent, least_tokens), self._cost(spent, least_tokens)) if room]
        tight = min(rooms, key=lambda room: room.tokens, default=None)
        if tight is None or tight.tokens >= max_tokens:
            return Allowance(max_tokens)
        if tight.tokens < smallest:
            return Allowance(0, tight.refused(spent))
        return Allowance(tight.tokens, tight.cut())

    def _tokens(self, spent: Spent, least_tokens: int) -> _Room | None:
        limit = self._limits.max_total_tokens
        if limit is None:
            return None
        used = spent.usage.total_tokens
        return _Room(
            "max_total_tokens", limit - used - least_tokens, f"{used:,}", f"{limit:,}", f"{least_tokens:,} tokens"
        )

    def _cost(self, spent: Spent, least_tokens: int) -> _Room | None:
        limit, price = self._limits.max_cost_usd, self._price
        if limit is None or price is None:
            return None
        prompt_usd = prices.least_cost_usd(least_tokens, price)
        left_usd = limit - spent.cost_usd - prompt_usd
        tokens = prices.tokens_for(left_usd, least_tokens, price)
        return _Room("max_cost", tokens, dollars_text(spent.cost_usd), _dollars(limit), _dollars(prompt_usd))


def _dollars(cost_usd: float) -> str:
    """Also of what is too little for `dollars_text`: a sentence says that it is so much or more."""
    return dollars_text(cost_usd) if cost_usd >= 0.000_05 else f"${cost_usd:.6f}"


@dataclass(frozen=True, slots=True)
class _Room:
    """What one limit leaves for a reply, and how to say it."""

    status: Status
    tokens: int
    used: str
    limit: str
    prompt: str

    @property
    def _name(self) -> str:
        return "max_cost_usd" if self.status == "max_cost" else self.status

    def refused(self, spent: Spent) -> Reached:
        if spent.turns == 0:
            sentence = (
                f"Nothing was asked: the conversation alone takes {self.prompt} or more, which leaves no room for a "
                f"reply: {self._name} is {self.limit}."
            )
        else:
            sentence = f"Stopped at {self.used} of {self.limit} ({self._name}): no further reply fits. {_AGAIN}"
        return Reached(self.status, sentence)

    def cut(self) -> Reached:
        return Reached(self.status, f"The reply was cut off where {self._name} ({self.limit}) was reached. {_AGAIN}")


# -- time ------------------------------------------------------------------------------------------


@contextmanager
def clock(seconds: float | None, ring: Callable[[], object]) -> Generator[None]:
    """Call `ring` from a thread of its own once the seconds are over, unless the block is left before."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def out_of_time(seconds: float | None) -> Reached:
    """A run that its clock ended."""
    return Reached("max_time", f"Stopped after {seconds or 0:,.10g} s (max_time_s). {_AGAIN}")
