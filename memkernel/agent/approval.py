"""Which calls of an agent's tools a person has to approve of, and how they are waited for."""

from __future__ import annotations

import difflib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from memkernel.agent.events import ApprovalAnswered, ApprovalAsked, Decision, Event
from memkernel.agent.stopping import Stopping
from memkernel.errors import InvalidInputError

Mode = Literal["auto", "ask", "never"]
"""What happens to a tool's calls: they run, wait for a person, or are refused."""

Policy: TypeAlias = Mapping[str, Mode]
"""A tool's name -> its mode; `*` is that of all others."""

AUTO: Final[Policy] = {"*": "auto"}

_log = logging.getLogger(__name__)

_MODES: Final = ("auto", "ask", "never")
_OTHERS: Final = "*"
_HINT: Final = 'It is "auto", "ask" or "never", or a dict of these: {"memory": "ask", "*": "auto"}.'


# -- the policy ------------------------------------------------------------------------------------


def checked_policy(approve: object, names: Collection[str] = (), unasked: Collection[str] = ()) -> Policy:
    """The policy, if it can be kept.

    Args:
        approve: a mode for all tools, or a dict from names to modes, with `*` for all others (`auto` where it is
            left out).
        names: the agent's tools.
        unasked: those among them whose calls nobody can be asked about, since the API or a toolset runs them.

    Raises:
        InvalidInputError: a mode that is none, a tool that the agent does not have, or another mode than `auto` for
            one that cannot be asked about.
    """
    given = cast("Mapping[object, object]", approve) if isinstance(approve, Mapping) else {_OTHERS: approve}
    policy: dict[str, Mode] = {_OTHERS: "auto"}
    for name, mode in given.items():
        policy[_known(name, names)] = _mode(name, mode)
    for name in unasked:
        if _mode_of(policy, name) != "auto":
            raise InvalidInputError(
                f"approve cannot be {_mode_of(policy, name)!r} for {name}, whose calls do not run here",
                hint=f'Say {{"{name}": "auto"}} if they may run unasked, or leave the tool out.',
            )
    return policy


def _known(name: object, names: Collection[str]) -> str:
    if name == _OTHERS or (isinstance(name, str) and name in names):
        return str(name)
    near = difflib.get_close_matches(str(name), names, n=1)
    listed = f"Its tools: {', '.join(names)}." if names else "It has no tools."
    raise InvalidInputError(
        f"approve names {name!r:.80}, which is no tool of this agent",
        hint=f"Did you mean {near[0]}?" if near else listed,
    )


def _mode(name: object, mode: object) -> Mode:
    if mode in _MODES:
        return mode
    where = "approve" if name == _OTHERS else f"approve[{name!r:.80}]"
    raise InvalidInputError(f"{where} is {mode!r:.80}", hint=_HINT)


def _mode_of(policy: Policy, name: str) -> Mode:
    return policy.get(name, policy[_OTHERS])


# -- the waiting -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a call.

    Attributes:
        decision: `approved` or `denied`.
        whole_tool: the same holds for all further calls of this tool in the conversation; of an approval only.
        reason: of a denial; the model is told.
    """

    decision: Decision
    whole_tool: bool = False
    reason: str = ""


class Approvals:
    """The approvals of one agent's conversation. Safe between threads.

    Attributes:
        asker: asks the person in the run's own thread, where somebody shows the run as text; None, also as its
            answer, waits for `approve` or `deny`.
    """

    def __init__(self, policy: Policy = AUTO) -> None:
        self.asker: Callable[[ApprovalAsked], Answer | None] | None = None
        self._policy = policy
        self._lock = threading.Lock()
        self._asked_about: dict[str, _Open] = {}
        self._approved_tools: set[str] = set()

    @property
    def waiting(self) -> tuple[ApprovalAsked, ...]:
        """The calls that wait for a person, oldest first."""
        with self._lock:
            return tuple(waiting.asked for waiting in self._asked_about.values() if waiting.answer is None)

    def approve(self, tool_use_id: str, *, whole_tool: bool = False) -> None:
        """Let a call run; with `whole_tool` all further ones of its tool in this conversation, too.

        Raises:
            InvalidInputError: no call of this id waits.
        """
        self._answer(tool_use_id, Answer("approved", whole_tool))

    def deny(self, tool_use_id: str, reason: str = "") -> None:
        """Answer a call without running it; the model is told the reason.

        Raises:
            InvalidInputError: no call of this id waits.
        """
        if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own value
            raise InvalidInputError(f"the reason is a text, not {type(reason).__name__}")
        self._answer(tool_use_id, Answer("denied", reason=reason))

    def forget(self) -> None:
        """Ask again about every tool: the conversation begins anew."""
        with self._lock:
            self._approved_tools.clear()

    def _answer(self, tool_use_id: str, answer: Answer) -> None:
        with self._lock:
            waiting = self._asked_about.get(tool_use_id)
            if waiting is not None and waiting.take(answer):
                return
            others = _listed(other.asked for other in self._asked_about.values() if other.answer is None)
        raise InvalidInputError(f"{tool_use_id!r:.80} waits for no approval", hint=others)

    # -- the run's side ----------------------------------------------------------------------------

    def decide(self, asked: ApprovalAsked, publish: Callable[[Event], None], stopping: Stopping) -> str | None:
        """Whether a call may run, once that is known: None, or the sentence that the model gets in its place.

        Raises:
            KeyboardInterrupt: the run was stopped while it waited.
        """
        mode = _mode_of(self._policy, asked.name)
        if mode == "never":
            publish(ApprovalAnswered(asked.tool_use_id, "denied", "policy"))
            return f"Not run: {asked.name} is not allowed here."
        if mode == "auto" or asked.name in self._approved_tools:
            return None
        waiting = _Open(asked)
        try:
            with self._lock:
                self._asked_about[asked.tool_use_id] = waiting
            publish(asked)  # a subscriber may answer at once
            return self._tell(asked, self._wait(waiting, stopping), publish)
        except BaseException:
            publish(ApprovalAnswered(asked.tool_use_id, "denied", "stop"))
            raise
        finally:
            with self._lock:
                self._asked_about.pop(asked.tool_use_id, None)
            waiting.is_over.set()  # who waits in a thread that was left behind goes home

    def _wait(self, waiting: _Open, stopping: Stopping) -> Answer:
        stopping.check()
        asker = self.asker
        if asker is not None and waiting.answer is None:
            waiting.take_any(_ask(asker, waiting.asked))
        stopping.wait_for(waiting.is_over.wait)
        return waiting.answer or Answer("denied")

    def _tell(self, asked: ApprovalAsked, answer: Answer, publish: Callable[[Event], None]) -> str | None:
        refusal = None if answer.decision == "approved" else _refusal(answer.reason)
        if refusal is None and answer.whole_tool:
            with self._lock:
                self._approved_tools.add(asked.name)
        # The last call of all: an interrupt before it means that nothing was decided, and one after it that it was.
        publish(ApprovalAnswered(asked.tool_use_id, answer.decision, "person", answer.reason))
        return refusal


def _refusal(reason: str) -> str:
    said = " ".join(reason.split()).rstrip(".")
    return f"Not run: this call was not approved{f': {said}' if said else ''}."


def _ask(asker: Callable[[ApprovalAsked], Answer | None], asked: ApprovalAsked) -> Answer | None:
    try:
        return asker(asked)
    except Exception:  # the run goes on: what nobody can be asked about is not run
        _log.warning("asking for an approval failed", exc_info=True)
        return Answer("denied", reason="nobody can be asked here")


class _Open:
    """A call that waits, and its first answer."""

    def __init__(self, asked: ApprovalAsked) -> None:
        self.asked = asked
        self.answer: Answer | None = None
        self.is_over = threading.Event()
        self._lock = threading.Lock()

    def take_any(self, answer: Answer | None) -> None:
        """Take an answer, if there is one."""
        if answer is not None:
            self.take(answer)

    def take(self, answer: Answer) -> bool:
        """Whether it is the first one."""
        with self._lock:
            if self.answer is not None:
                return False
            self.answer = answer
        self.is_over.set()
        return True


def _listed(waiting: Iterable[ApprovalAsked]) -> str:
    calls = ", ".join(f"{asked.tool_use_id} ({asked.name})" for asked in waiting)
    return f"These wait: {calls}." if calls else "No call waits."
