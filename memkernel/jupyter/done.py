"""What a command did, where there is no record to return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Done:
    """A sentence for a person, a number for a program."""

    count: int
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


def counted(number: int) -> str:
    """`1 memory`, `2,000 memories`."""
    return f"{number:,} {'memory' if number == 1 else 'memories'}"
