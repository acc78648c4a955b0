"""How a run stands -> what the line above it says, and how full its budget is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from memkernel.agent.limits import RunLimits
from memkernel.models import RunKind, RunStatus, Usage
from memkernel.render import RUN_WORDS, dollars_text, duration_text

Level: TypeAlias = Literal["fine", "near", "full"]

NEAR: Final = 0.8
"""From this part of a limit on, a person is warned."""
WAITING: Final = "waiting"
"""The status of a run that goes on and waits for a person's approval."""
ELSEWHERE: Final = "elsewhere"
"""The status of a stored run that goes on in another kernel."""
GOES_ON: Final = ("running", WAITING)

_OUT: Final = ("max_cost", "max_total_tokens")
_OF_VIEWS: Final = {WAITING: "waiting for approval", ELSEWHERE: "still running when this was read"}
_AGAIN: Final = "shown again"
_STOP: Final = ["■ Stop", "Stop the run: what it has said and done stays", "Stopping…"]
_REST: Final = ["Show the rest", "Show at once what is left of this run; nothing is executed", "Showing the rest…"]


class Budget(NamedTuple):
    """How much of a limit is used.

    Attributes:
        part: from 0 to 1.
        level: `near` from 80 % on; `full` at 100 %, and where what is left is too little to go on with.
        words: the same for a person.
    """

    part: float
    level: Level
    words: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands.

    Attributes:
        kind: who answers.
        status: `running`, `waiting`, or how it ended.
        turn: the turn under way.
        used: the tokens so far.
        cost_usd: the same in US dollars; None where the model has no known price.
        max_turns: how many replies there may be; 0 where nobody said.
        limits: what else it may use; None where nobody said.
        again: it is a stored run that is shown again.
    """

    kind: RunKind
    status: str = "running"
    turn: int = 0
    used: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    max_turns: int = 0
    limits: RunLimits | None = None
    again: bool = False

    @property
    def budget(self) -> Budget | None:
        """The one of the cost and of the tokens that is nearer to its limit; None where neither has one."""
        if self.limits is None:
            return None
        limited = (
            (self.cost_usd if self._is_paid else None, self.limits.max_cost_usd, "budget"),
            (self.used.total_tokens, self.limits.max_total_tokens, "tokens"),
        )
        # Rounded: 0.1 + 0.7 US dollars of 1 are 80 % of it.
        parts = [(round(used / limit, 9), name) for used, limit, name in limited if used is not None and limit]
        return _budget(*max(parts), is_out=self.status in _OUT) if parts else None

    def words(self) -> dict[str, Any]:
        """What a person reads.

        Returns:
            `status`, `turn`, `usage`, `cost`, `time` (its limit), and of the button `stop`: its label, its title, and
            its label once it is asked.
        """
        limits = self.limits or RunLimits()
        return {
            "status": self._status,
            "turn": _of(f"turn {self.turn:,}", self.max_turns and f"{self.max_turns:,}"),
            "usage": _of(str(self.used), limits.max_total_tokens and f"{limits.max_total_tokens:,}", joint=", of "),
            "cost": self._cost(limits.max_cost_usd),
            "time": _of("", limits.max_time_s and duration_text(limits.max_time_s)),
            "stop": _REST if self.again else _STOP,
        }

    @property
    def _is_paid(self) -> bool:
        return self.kind == "live"

    @property
    def _status(self) -> str:
        if self.again and self.status in GOES_ON:
            return _AGAIN
        return _OF_VIEWS.get(self.status) or RUN_WORDS[cast("RunStatus", self.status)]

    def _cost(self, limit: float | None) -> str:
        if not self._is_paid:
            return "costs nothing"
        return _of(dollars_text(self.cost_usd) or "cost unknown", limit and dollars_text(limit))


def _budget(part: float, name: str, *, is_out: bool) -> Budget:
    level: Level = "full" if part >= 1 or is_out else "near" if part >= NEAR else "fine"
    share = "All" if part >= 1 else f"{int(part * 100)} %"
    return Budget(min(part, 1.0), level, f"{share} of the {name} used")


def _of(amount: str, limit: object, *, joint: str = " of ") -> str:
    return f"{amount}{joint}{limit}" if limit else amount
