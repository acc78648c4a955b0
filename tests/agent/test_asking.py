"""Approval asked in text."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import StdinNotImplementedError

from memkernel.agent.approval import Answer
from memkernel.agent.asking import NOBODY, ask, request_text
from memkernel.agent.events import ApprovalAsked

BASH = ApprovalAsked("toolu_1", "bash", {"command": "rm -r /tmp/x\necho done", "timeout_ms": 500})

Says = Callable[..., list[str]]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """What a person answers, or how they cannot; the questions."""

    def _says(*answers: str | BaseException) -> list[str]:
        left: Iterator[str | BaseException] = iter(answers)
        questions: list[str] = []

        def reply(question: str) -> str:
            questions.append(question)
            answer = next(left)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(builtins, "input", reply)
        return questions

    return _says


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("y", Answer("approved")),
        (" Yes ", Answer("approved")),
        ("a", Answer("approved", whole_tool=True)),
        ("all", Answer("approved", whole_tool=True)),
        ("n", Answer("denied")),
        ("No  not that folder ", Answer("denied", reason="not that folder")),
    ],
)
def test_an_answer_is_a_word_and_of_a_denial_its_reason(said: str, answer: Answer, says: Says) -> None:
    says(said)
    assert ask(BASH) == answer


def test_it_asks_until_it_has_an_answer(says: Says) -> None:
    questions = says("", "maybe", "y please", "y")
    assert ask(BASH) == Answer("approved")
    assert len(questions) == 4


def test_all_that_would_run_is_seen_with_the_first_question(says: Says) -> None:
    questions = says("what?", "y")
    ask(BASH)
    first, second = questions
    assert first == f"bash would run:\n  command: rm -r /tmp/x\n    echo done\n  timeout_ms: 500\n{second}"
    assert second.startswith("Let it run?")


@pytest.mark.parametrize("error", [EOFError(), OSError("no stdin"), StdinNotImplementedError("no stdin here")])
def test_where_nobody_can_be_asked_it_is_denied_in_one_line(
    error: Exception, says: Says, capsys: pytest.CaptureFixture[str]
) -> None:
    says(error)
    assert ask(BASH) is NOBODY
    (last,) = capsys.readouterr().out.splitlines()
    assert last.startswith("Denied: bash rm -r /tmp/x echo done.")
    assert "--approve auto" in last


def test_an_interrupt_is_no_answer(says: Says) -> None:
    says(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        ask(BASH)


def test_another_thread_than_the_main_one_leaves_the_answer_to_others(says: Says) -> None:
    questions = says("y")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(ask(BASH)))
    thread.start()
    thread.join()
    assert (answers, questions) == ([None], [])


@given(st.dictionaries(st.text(max_size=80), st.one_of(st.text(max_size=5_000), st.integers(), st.none()), max_size=40))
def test_whatever_is_asked_fits_a_screen_and_cannot_steer_it(given_input: dict[str, Any]) -> None:
    text = request_text(ApprovalAsked("toolu_1", "bash\x1b[2J", given_input))
    lines = text.split("\n")
    assert len(lines) <= 22
    assert "\x1b" not in text
    assert all(len(line) < 20_000 for line in lines)
