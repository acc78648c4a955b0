"""How a rule of the scripted stand-in is played: a generator that yields calls, is sent their results, and returns the
answer. The server keeps nothing: for every request the rule is played again on the results that are there already."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from memkernel.agent import asked
from memkernel.agent.conversation import Block


@dataclass(frozen=True)
class Call:
    """A call of a tool, and what the stand-in says before it."""

    input: Mapping[str, Any]
    says: str = ""
    tool: str = "memory"


class Result(NamedTuple):
    """What a call came back with."""

    text: str
    is_error: bool


Rule: TypeAlias = Generator[Call, Result, str]
Found: TypeAlias = Mapping[str, str]
"""The named parts of a sentence; "" for one that is not in it."""


def result(block: Block) -> Result:
    """The API's `tool_result` as a rule sees it."""
    return Result(asked.text_of(block), bool(block.get("is_error")))


def play(rule: Rule, results: Iterable[Result]) -> Call | str:
    """The rule's next call, or its answer."""
    try:
        call = next(rule)
        for came in results:
            call = rule.send(came)
    except StopIteration as end:
        return end.value
    return call


def one_after_another(rules: Iterable[Rule]) -> Rule:
    """The rules of a prompt of several sentences; the answer is all of theirs."""
    said: list[str] = []
    for rule in rules:
        said.append((yield from rule))
    return "\n\n".join(said)
