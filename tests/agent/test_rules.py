"""The stand-in's rules, played by the real SDK on the SDK's own memory tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool

from memkernel.agent import loop, rules
from memkernel.agent.events import ToolCalled
from memkernel.agent.run import Run
from memkernel.agent.scripted import stand_in

Ask = Callable[[str], Run]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memories"


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Ask the stand-in in a new conversation; its memory lasts for the test."""
    tool = BetaLocalFilesystemMemoryTool(str(tmp_path))

    def _ask(prompt: str) -> Run:
        run = Run(prompt, model="scripted", kind="scripted")
        loop.play(run, loop.Request(stand_in(), "scripted", [tool]))
        assert run.status == "done"
        return run

    return _ask


def commands(run: Run) -> list[str]:
    return [event.input["command"] for event in run.events if isinstance(event, ToolCalled)]


def test_it_looks_into_its_memory_before_it_writes(ask: Ask, memory: Path) -> None:
    run = ask("Remember that I prefer SI units")
    assert commands(run) == ["view", "create"]
    assert (memory / "notes.md").read_text() == "- I prefer SI units\n"
    assert run.text == "I noted it in /memories/notes.md: I prefer SI units"


def test_a_second_fact_is_inserted_at_the_end(ask: Ask, memory: Path) -> None:
    ask("Remember that I prefer SI units.")
    run = ask("Remember that the standup is at 9:30")
    assert commands(run) == ["view", "view", "insert"]
    assert (memory / "notes.md").read_text() == "- I prefer SI units\n- the standup is at 9:30\n"


@pytest.mark.parametrize("before", ["", "no newline at the end", "one\n\n\n"])
def test_a_fact_is_inserted_after_whatever_is_there(ask: Ask, memory: Path, before: str) -> None:
    (memory / "notes.md").write_text(before)
    ask("Remember that it rains")
    after = (memory / "notes.md").read_text()
    assert after.endswith("- it rains\n")
    assert after.startswith(before)


def test_a_fact_that_contradicts_an_older_one_takes_its_place(ask: Ask, memory: Path) -> None:
    ask("Remember that I prefer SI units")
    ask("Remember that I prefer dark chocolate")
    run = ask("Remember that I prefer imperial units")
    assert commands(run)[-1] == "str_replace"
    assert (memory / "notes.md").read_text() == "- I prefer imperial units\n- I prefer dark chocolate\n"


def test_a_known_fact_is_not_written_twice(ask: Ask, memory: Path) -> None:
    ask("Remember that it rains")
    run = ask("please remember: it rains!")
    assert commands(run) == ["view", "view"]
    assert run.text == "That is noted already, in /memories/notes.md."


@pytest.mark.parametrize(
    "prompt",
    ["Remember in team/rules.md that tests run", "Note to /memories/team/rules.md: tests run"],
)
def test_a_file_that_is_named_is_used(ask: Ask, memory: Path, prompt: str) -> None:
    ask(prompt)
    assert (memory / "team" / "rules.md").read_text() == "- tests run\n"


def test_it_tells_what_it_knows_about_a_topic(ask: Ask, memory: Path) -> None:
    ask("Remember that I prefer SI units")
    ask("Remember that the standup is at 9:30")
    (memory / "team" / "deep").mkdir(parents=True)
    (memory / "team" / "deep" / "rules.md").write_text("# Rules\n\nEvery number has a unit.\n")
    assert ask("What do you remember about units?").text == (
        "My memory says:\n\n- I prefer SI units (/memories/notes.md)"
        "\n- Every number has a unit. (/memories/team/deep/rules.md)"
    )
    assert ask("When is the standup?").text == "My memory says:\n\n- the standup is at 9:30 (/memories/notes.md)"
    assert ask("What do you know about cats?").text == "My memory holds nothing about cats."


def test_it_tells_everything_it_knows(ask: Ask) -> None:
    assert ask("What do you remember?").text == "My memory is empty."
    ask("Remember that it rains")
    assert ask("What do you know?").text == "My memory says:\n\n- it rains (/memories/notes.md)"


def test_it_changes_a_word(ask: Ask, memory: Path) -> None:
    ask("Remember that the standup is at 9:30")
    assert ask("Change 9:30 to 10:00").text == "I changed it in /memories/notes.md: 9:30 → 10:00"
    assert (memory / "notes.md").read_text() == "- the standup is at 10:00\n"
    assert ask("Change cats to dogs").text == "My memory does not mention cats."


def test_it_forgets_a_line_or_a_file(ask: Ask, memory: Path) -> None:
    ask("Remember that it rains")
    ask("Remember that the wifi password is on the wall")
    run = ask("Forget about the wifi")
    assert run.text == "Forgotten: the wifi password is on the wall"
    assert (memory / "notes.md").read_text() == "- it rains\n"
    assert commands(ask("Forget it rains."))[-1] == "delete"
    assert not (memory / "notes.md").exists()
    assert ask("Forget everything").text == "My memory does not mention it."


def test_it_forgets_everything(ask: Ask, memory: Path) -> None:
    ask("Remember in a.md that it rains")
    ask("Remember in b.md that it snows")
    assert ask("Forget everything").text == "Forgotten: it rains; it snows"
    assert list(memory.iterdir()) == []


def test_it_says_what_it_could_not_do(ask: Ask, memory: Path) -> None:
    (memory / "notes.md").write_text("twice twice")
    assert ask("Change twice to once").text.startswith("I could not change it: No replacement was performed.")


@pytest.mark.parametrize("prompt", ["Write me a poem", "Hello", "👋", "remember"])
def test_what_it_does_not_know_it_answers_honestly(ask: Ask, prompt: str) -> None:
    text = ask(prompt).text
    assert text.startswith("I am a scripted stand-in, not a language model.") or text == "My memory is empty."


def test_without_a_memory_tool_it_says_so() -> None:
    body: Any = {"messages": [{"role": "user", "content": "Remember that it rains"}]}
    (text,) = rules.answer(body).blocks
    assert isinstance(text, str)
    assert text.endswith("I have no memory tool here: give the agent a memory store.")


def test_it_works_on_the_last_prompt_of_a_conversation(tmp_path: Path) -> None:
    tool = BetaLocalFilesystemMemoryTool(str(tmp_path))
    messages: list[Any] = []
    texts: list[str] = []
    for prompt in ("Remember that it rains", "Remember that it snows", "What do you know?"):
        run = Run(prompt, model="scripted", messages=messages)
        loop.play(run, loop.Request(stand_in(), "scripted", [tool]))
        messages = run.messages
        texts.append(run.text)
    assert texts[-1] == "My memory says:\n\n- it rains (/memories/notes.md)\n- it snows (/memories/notes.md)"


def test_the_first_words_of_a_run_are_shown_before_its_first_call(ask: Ask) -> None:
    kinds = [type(event).__name__ for event in ask("Remember that it rains").events]
    assert kinds.index("TextDelta") < kinds.index("ToolCalled")


def test_a_prompt_of_several_sentences_is_done_one_after_another(ask: Ask, memory: Path) -> None:
    run = ask("Remember that it rains. It pours a lot, they say. Then change rains to snows!\nWhat do you remember?")
    assert commands(run) == ["view", "create", "view", "str_replace", "view"]
    assert (memory / "notes.md").read_text() == "- it snows. It pours a lot, they say\n"
    assert run.text.split("\n\n")[0] == "I noted it in /memories/notes.md: it rains. It pours a lot, they say"


def test_it_tidies_its_memory(ask: Ask, memory: Path) -> None:
    (memory / "notes.md").write_text("- a  \n\n\n\n- b\n- a\n")
    (memory / "empty.md").write_text("\n")
    (memory / "tidy.md").write_text("- c\n")
    assert ask("Tidy up, please.").text == "I tidied /memories/empty.md, /memories/notes.md."
    assert {path.name: path.read_text() for path in memory.iterdir()} == {
        "notes.md": "- a\n\n- b\n",
        "tidy.md": "- c\n",
    }
    assert ask("Tidy up your memory").text == "My memory is tidy."


@pytest.mark.parametrize(
    "prompt", ["a. " * 100_000, "“" * 100_000, "know about " * 50_000, "\n" * 9_000, "run `x " * 1_000]
)
def test_a_prompt_of_any_length_is_answered(prompt: str) -> None:
    tools = [{"name": name} for name in ("memory", "bash", "read", "write", "glob", "grep")]
    assert rules.answer({"messages": [{"role": "user", "content": prompt}], "tools": tools}).blocks
