"""Calls that a person has to approve of: the policy, the waiting, and the answers from any thread."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import approval
from memkernel.agent.approval import Answer, Approvals, Policy
from memkernel.agent.events import ApprovalAnswered, ApprovalAsked, Event
from memkernel.agent.stopping import Stopping
from memkernel.errors import InvalidInputError

PATIENCE_S = 30.0
ASK: Policy = {"*": "ask"}
CALL = ApprovalAsked("toolu_1", "memory", {"command": "view", "path": "/memories"})
AGAIN = ApprovalAsked("toolu_2", "memory", {"command": "delete", "path": "/memories/a.md"})
OTHER = ApprovalAsked("toolu_3", "bash", {"command": "ls"})


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """The handler that a kernel has while a cell runs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Decided:
    """A decision, made here or in a thread of its own, and what it published."""

    def __init__(
        self,
        approvals: Approvals,
        asked: ApprovalAsked = CALL,
        *,
        on_event: Callable[[Event], None] | None = None,
        stopping: Stopping | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.outcome: str | BaseException | None = "none yet"
        self.stopping = stopping or Stopping()
        self.is_asked = threading.Event()
        self._approvals, self._asked, self._on_event = approvals, asked, on_event

    def _publish(self, event: Event) -> None:
        self.events.append(event)
        if self._on_event:
            self._on_event(event)
        if isinstance(event, ApprovalAsked):
            self.is_asked.set()

    def here(self) -> Decided:
        """Decide in this thread."""
        self.stopping.open()
        try:
            self.outcome = self._approvals.decide(self._asked, self._publish, self.stopping)
        except KeyboardInterrupt as interrupt:
            self.outcome = interrupt
        finally:
            self.stopping.close()
        return self

    def apart(self) -> Decided:
        """Begin to decide in a thread of its own."""
        self._thread = threading.Thread(target=self.here, daemon=True)
        self._thread.start()
        return self

    def wait(self) -> Decided:
        """Wait until it is decided."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self


# -- the policy ------------------------------------------------------------------------------------


def test_everything_runs_where_nobody_said_otherwise() -> None:
    assert approval.checked_policy("auto", ["memory"]) == approval.AUTO


def test_a_word_holds_for_all_tools_and_a_dict_for_those_that_it_names() -> None:
    assert approval.checked_policy("ask", ["memory"]) == {"*": "ask"}
    assert approval.checked_policy({"bash": "never"}, ["memory", "bash"]) == {"*": "auto", "bash": "never"}
    given = {"*": "ask", "memory": "auto"}
    assert approval.checked_policy(given, ["memory"]) == given


@pytest.mark.parametrize("bad", ["yes", "", None, True, 1, ["ask"], "ASK"])
def test_a_word_that_is_none_of_the_three_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="approve is ") as refused:
        approval.checked_policy(bad, ["memory"])
    assert '"auto", "ask" or "never"' in refused.value.hint
    with pytest.raises(InvalidInputError, match=r"approve\['memory'\] is "):
        approval.checked_policy({"memory": bad}, ["memory"])


def test_a_tool_that_the_agent_does_not_have_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidInputError, match="approve names 'memroy', which is no tool of this agent") as refused:
        approval.checked_policy({"memroy": "ask"}, ["memory", "bash"])
    assert refused.value.hint == "Did you mean memory?"
    with pytest.raises(InvalidInputError) as refused:
        approval.checked_policy({"x": "ask"}, ["memory", "bash"])
    assert refused.value.hint == "Its tools: memory, bash."
    with pytest.raises(InvalidInputError) as refused:
        approval.checked_policy({3: "ask"}, [])
    assert refused.value.hint == "It has no tools."


@pytest.mark.parametrize("approve", ["ask", "never", {"web_search": "ask"}, {"*": "ask"}])
def test_what_nobody_can_be_asked_about_is_refused_unless_it_may_run_unasked(approve: Any) -> None:
    with pytest.raises(InvalidInputError, match="for web_search, whose calls do not run here") as refused:
        approval.checked_policy(approve, ["memory", "web_search"], ["web_search"])
    assert '{"web_search": "auto"}' in refused.value.hint
    allowed = {"*": "ask", "web_search": "auto"}
    assert approval.checked_policy(allowed, ["memory", "web_search"], ["web_search"]) == allowed


def test_a_server_tool_disturbs_no_policy_that_lets_everything_run() -> None:
    assert approval.checked_policy("auto", ["web_search"], ["web_search"]) == approval.AUTO


# -- without a question ----------------------------------------------------------------------------


def test_what_may_run_runs_and_nothing_is_told() -> None:
    decided = Decided(Approvals()).here()
    assert (decided.outcome, decided.events) == (None, [])


def test_what_is_never_allowed_is_answered_in_one_sentence() -> None:
    decided = Decided(Approvals({"*": "auto", "memory": "never"})).here()
    assert decided.outcome == "Not run: memory is not allowed here."
    assert decided.events == [ApprovalAnswered("toolu_1", "denied", "policy")]


# -- answers from another thread, or from a subscriber ----------------------------------------------


def test_an_approved_call_runs() -> None:
    approvals = Approvals(ASK)
    decided = Decided(approvals).apart()
    assert decided.is_asked.wait(PATIENCE_S)
    assert approvals.waiting == (CALL,)
    approvals.approve("toolu_1")
    assert decided.wait().outcome is None
    assert decided.events == [CALL, ApprovalAnswered("toolu_1", "approved", "person")]
    assert approvals.waiting == ()


def test_a_denied_call_is_answered_in_one_sentence_with_the_reason() -> None:
    approvals = Approvals(ASK)
    decided = Decided(approvals, on_event=_first(lambda: approvals.deny("toolu_1", " not\nthat file. "))).here()
    assert decided.outcome == "Not run: this call was not approved: not that file."
    assert decided.events[1:] == [ApprovalAnswered("toolu_1", "denied", "person", " not\nthat file. ")]


def _first(act: Callable[[], None]) -> Callable[[Event], None]:
    return lambda event: act() if isinstance(event, ApprovalAsked) else None


def test_a_denied_call_needs_no_reason() -> None:
    approvals = Approvals(ASK)
    decided = Decided(approvals, on_event=_first(lambda: approvals.deny("toolu_1"))).here()
    assert decided.outcome == "Not run: this call was not approved."


def test_the_first_answer_counts_and_a_second_one_is_told_so() -> None:
    approvals = Approvals(ASK)

    def answer_twice() -> None:
        approvals.deny("toolu_1")
        with pytest.raises(InvalidInputError, match="'toolu_1' waits for no approval") as refused:
            approvals.approve("toolu_1")
        assert refused.value.hint == "No call waits."

    assert Decided(approvals, on_event=_first(answer_twice)).here().outcome is not None


def test_of_many_answers_at_once_one_counts() -> None:
    approvals, at_once, refused = Approvals(ASK), threading.Barrier(8), list[InvalidInputError]()

    def answer(n: int) -> None:
        at_once.wait(PATIENCE_S)
        try:
            approvals.approve("toolu_1") if n % 2 else approvals.deny("toolu_1", str(n))
        except InvalidInputError as error:
            refused.append(error)

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(8)]
    decided = Decided(approvals).apart()
    assert decided.is_asked.wait(PATIENCE_S)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(refused) == 7
    (answered,) = [event for event in decided.wait().events if isinstance(event, ApprovalAnswered)]
    assert (decided.outcome is None) == (answered.decision == "approved")


def test_an_answer_to_no_question_names_those_that_wait() -> None:
    approvals = Approvals(ASK)

    def answer_another() -> None:
        with pytest.raises(InvalidInputError, match="'toolu_9' waits for no approval") as refused:
            approvals.approve("toolu_9")
        assert refused.value.hint == "These wait: toolu_1 (memory)."
        approvals.approve("toolu_1")

    assert Decided(approvals, on_event=_first(answer_another)).here().outcome is None


def test_a_reason_is_a_text() -> None:
    reason: Any = 3
    with pytest.raises(InvalidInputError, match="the reason is a text, not int"):
        Approvals(ASK).deny("toolu_1", reason)


def test_a_whole_tool_is_approved_for_the_conversation_and_for_no_other_tool() -> None:
    approvals = Approvals(ASK)
    first = Decided(approvals, on_event=_first(lambda: approvals.approve("toolu_1", whole_tool=True))).here()
    assert first.outcome is None
    assert Decided(approvals, AGAIN).here().events == []
    other = Decided(approvals, OTHER, on_event=_first(lambda: approvals.deny("toolu_3"))).here()
    assert other.outcome is not None
    approvals.forget()
    assert Decided(approvals, AGAIN, on_event=_first(lambda: approvals.deny("toolu_2"))).here().outcome is not None


# -- asked in the run's own thread -----------------------------------------------------------------


def test_whoever_shows_the_run_may_ask_in_its_thread() -> None:
    approvals, threads = Approvals(ASK), list[threading.Thread]()

    def ask(asked: ApprovalAsked) -> Answer:
        threads.append(threading.current_thread())
        return Answer("denied" if asked == CALL else "approved", reason="no")

    approvals.asker = ask
    assert Decided(approvals).here().outcome == "Not run: this call was not approved: no."
    assert Decided(approvals, AGAIN).here().outcome is None
    assert threads == [threading.current_thread()] * 2


def test_one_who_cannot_ask_leaves_the_answer_to_others() -> None:
    approvals = Approvals(ASK)
    approvals.asker = lambda _: None
    decided = Decided(approvals).apart()
    assert decided.is_asked.wait(PATIENCE_S)
    approvals.approve("toolu_1")
    assert decided.wait().outcome is None


def test_where_it_is_answered_before_nobody_is_asked() -> None:
    approvals = Approvals(ASK)
    approvals.asker = lambda _: pytest.fail("it was answered")
    assert Decided(approvals, on_event=_first(lambda: approvals.approve("toolu_1"))).here().outcome is None


def test_asking_that_fails_is_a_denial_and_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    approvals = Approvals(ASK)

    def ask(_: ApprovalAsked) -> Answer:
        raise EOFError

    approvals.asker = ask
    assert Decided(approvals).here().outcome == "Not run: this call was not approved: nobody can be asked here."
    assert "asking for an approval failed" in caplog.text


def test_an_interrupt_while_it_is_asked_stops_the_run() -> None:
    approvals = Approvals(ASK)

    def ask(_: ApprovalAsked) -> Answer:
        raise KeyboardInterrupt

    approvals.asker = ask
    decided = Decided(approvals).here()
    assert isinstance(decided.outcome, KeyboardInterrupt)
    assert decided.events == [CALL, ApprovalAnswered("toolu_1", "denied", "stop")]
    assert approvals.waiting == ()


# -- stopped while it waits ------------------------------------------------------------------------


def test_a_stop_ends_the_waiting_in_a_thread() -> None:
    approvals, before = Approvals(ASK), set(threading.enumerate())
    decided = Decided(approvals).apart()
    assert decided.is_asked.wait(PATIENCE_S)
    decided.stopping.ask()
    assert isinstance(decided.wait().outcome, KeyboardInterrupt)
    assert decided.events == [CALL, ApprovalAnswered("toolu_1", "denied", "stop")]
    assert approvals.waiting == ()
    for thread in set(threading.enumerate()) - before:  # who waited for the answer goes home as well
        thread.join(PATIENCE_S)
    assert set(threading.enumerate()) <= before


def test_a_stop_ends_the_waiting_in_the_main_thread() -> None:
    approvals, stopping = Approvals(ASK), Stopping()
    stop = threading.Thread(target=stopping.ask)
    decided = Decided(approvals, stopping=stopping, on_event=_first(stop.start)).here()
    stop.join(PATIENCE_S)
    assert isinstance(decided.outcome, KeyboardInterrupt)
    assert decided.events[1:] == [ApprovalAnswered("toolu_1", "denied", "stop")]


def test_an_interrupt_ends_the_waiting_in_the_main_thread(interrupt: Callable[[], None]) -> None:
    decided = Decided(Approvals(ASK), on_event=_first(interrupt)).here()
    assert isinstance(decided.outcome, KeyboardInterrupt)


def test_a_stop_that_was_asked_for_before_asks_nobody() -> None:
    approvals = Approvals(ASK)
    approvals.asker = lambda _: pytest.fail("the run is stopped")
    stopping = Stopping()
    decided = Decided(approvals, stopping=stopping, on_event=_first(stopping.ask)).here()
    assert isinstance(decided.outcome, KeyboardInterrupt)


# -- any order of answers --------------------------------------------------------------------------

CALLS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["yes", "all", "no"])), max_size=12)


@given(CALLS)
def test_a_tool_is_asked_about_until_the_whole_of_it_is_approved(calls: list[tuple[str, str]]) -> None:
    approvals, whole = Approvals(ASK), set[str]()
    for n, (name, says) in enumerate(calls):
        answer = Answer("denied" if says == "no" else "approved", whole_tool=says == "all")
        approvals.asker = lambda _, answer=answer: answer
        events: list[Event] = []
        refusal = approvals.decide(ApprovalAsked(f"toolu_{n}", name, {}), events.append, Stopping())
        assert (refusal is None) == (name in whole or says != "no")
        assert len(events) == (0 if name in whole else 2)
        whole |= {name} if says == "all" else set()
    assert approvals.waiting == ()


# -- interrupted anywhere --------------------------------------------------------------------------


class InterruptAtCall:
    """A tracer that interrupts where the n-th function begins: there Python itself takes signals."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_filename == approval.__file__:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("answer", [Answer("approved", whole_tool=True), Answer("denied")])
def test_an_interrupt_at_any_call_leaves_nothing_that_waits_and_no_question_without_an_answer(answer: Answer) -> None:
    interrupted = 0
    for number in range(1, 200):
        approvals = Approvals(ASK)
        approvals.asker = lambda _: answer
        decided, trace = Decided(approvals), InterruptAtCall(number)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            decided.here()
        finally:
            sys.settrace(before)
        kinds = [type(event) for event in decided.events]
        assert kinds in ([], [ApprovalAnswered], [ApprovalAsked, ApprovalAnswered]), f"call {number}"
        assert approvals.waiting == (), f"call {number}"
        with pytest.raises(InvalidInputError, match="waits for no approval"):
            approvals.deny("toolu_1")
        if trace.left > 0:
            break
        interrupted += isinstance(decided.outcome, KeyboardInterrupt)
    assert interrupted >= 5
