"""Tab completion, in a shell of this process (fault 49, fault 27)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.completer import CompletionContext

import memkernel as mk
from memkernel.jupyter.complete import MOST, Completer
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.recollection import Recollection
from tests.fix_kernel import Shell


@pytest.fixture
def notes(shell: Shell, somebody_else: mk.Connection) -> mk.Store:
    """The store in use, with a few memories."""
    store = somebody_else.store("Team notes")
    for path in ("/projects/alpha.md", "/projects/beta.md", "/my notes/it's.md", "/units.md", "/odd@3"):
        store.write(path, "one\n")
    store.write("/units.md", "two\n")
    return store


OFFERS: Final = {
    "%memory re": ["replace", "restore", "redact"],
    "x = %memory gr": ["grep"],
    "%%memory ": ["put", "sql"],
    "%memory help dr": ["drop"],
    "%memory cat /pro": ["/projects/", "/projects/alpha.md", "/projects/beta.md"],
    "%memory cat /projects/": ["/projects/alpha.md", "/projects/beta.md"],
    "%%memory put /un": ["/units.md"],
    "x = %memory cat /un": ["/units.md"],
    "%memory cat -q /un": ["/units.md"],
    "%memory cat /my": [r"/my\ notes/", r"/my\ notes/it's.md"],
    r"%memory cat /my\ notes/i": [r"/my\ notes/it's.md"],
    '%memory cat "/my no': ['"/my notes/', '"/my notes/it\'s.md"'],
    "%memory cat /odd": ["/odd@3@head"],
    "%memory cat /units.md@": ["/units.md@head", "/units.md@2", "/units.md@1"],
    "%memory cat team-notes:/un": ["team-notes:/units.md"],
    '%memory cat "Team notes":/un': ['"Team notes:/units.md"'],
    "%memory cat te": ["team-notes:/"],
    "%memory diff /units.md @": ["@head", "@2", "@1"],
    "%memory diff /units.md@1 @h": ["@head"],
    "%memory diff --since ": ["today", "yesterday"],
    "%memory restore /units.md ": ["@head", "@2", "@1"],
    "%memory mv /units.md /pro": ["/projects/", "/projects/alpha.md", "/projects/beta.md"],
    "%memory use te": ["team-notes"],
    "%memory ls -s te": ["team-notes"],
    "%memory ls --store=te": ["team-notes"],
    "%%agent --store te": ["team-notes"],
    "%%agent --n": ["--new"],
    "%memory ls --re": ["--recursive"],
    "%memory config tr": ["traceback"],
    "%memory config traceback o": ["on", "off"],
    "%memory put /a.md --var te": ["text"],
    "%memory nonsense /un": [],
    "%memory cat /nothing": [],
    "%memory cat -- -": [],
    "%memory use te -s nowhere -- /": [],
}


def test_what_can_stand_there_is_offered(shell: Shell, notes: mk.Store, capsys: pytest.CaptureFixture[str]) -> None:
    shell.ipython.user_ns["text"] = "a text"
    assert {line: shell.complete(line) for line in OFFERS} == OFFERS
    assert capsys.readouterr().err == ""


@given(
    st.sampled_from(
        [
            *("%memory ", "%%memory put ", "%memory diff /a@", "x = %memory cat ", "%%agent ", "%memory config "),
            *("%agent ", "%agent -", "%%agent --resume ", "%%agent --replay ", "%agent stop "),
        ]
    ),
    st.text(alphabet="/a@1-=:'\"\\ \tsho%", max_size=20),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_that_is_being_typed_is_too_odd(bare_shell: Shell, begun: str, rest: str) -> None:
    text = begun + rest
    context = CompletionContext(token="", full_text=text, cursor_position=len(text), cursor_line=0, limit=None)
    found = Completer(Notebook(bare_shell.ipython)).match(context)
    assert text.endswith(found.get("matched_fragment", ""))


def test_paths_come_from_the_store_that_the_line_names(shell: Shell, notes: mk.Store) -> None:
    shell.run("%memory create Other -q")
    shell.run("%memory put other:/elsewhere.md --var __name__ -q")
    assert shell.complete("%memory cat -s other /") == ["/elsewhere.md"]
    assert shell.complete("%memory cat other:/") == ["other:/elsewhere.md"]
    assert shell.complete("%memory cat --store=other /") == ["/elsewhere.md"]
    assert "/elsewhere.md" not in shell.complete("%memory cat /")


def test_what_was_written_is_offered_at_once(shell: Shell) -> None:
    assert shell.complete("%memory cat /new") == []
    shell.run("%%memory put /new.md\ntext\n")
    assert shell.complete("%memory cat /new") == ["/new.md"]


def test_fault_49_many_paths_are_answered_in_time_and_step_by_step(shell: Shell, somebody_else: mk.Connection) -> None:
    store = somebody_else.store("Team notes")
    for folder in range(20):
        for number in range(30):
            store.write(f"/folder-{folder:02}/note-{number:02}.md", "x")
    begun = time.monotonic()
    steps = shell.complete("%memory cat /folder-")
    assert time.monotonic() - begun < 0.3
    assert steps == [f"/folder-{folder:02}/" for folder in range(20)]
    assert len(shell.complete("%memory cat /folder-07/")) == 30
    assert len(shell.complete("%memory cat /")) <= MOST


def test_fault_27_every_one_of_120_stores_can_be_chosen(shell: Shell, somebody_else: mk.Connection) -> None:
    for number in range(120):
        somebody_else.create_store(f"Store {number:03}")
    somebody_else.create_store("Store 007")
    offered = shell.complete("%memory use ")
    assert len(offered) == 122
    assert {"store-000", "store-119", "team-notes"} <= set(offered)
    assert "store-007" not in offered
    for name in (name for name in offered if name.startswith("memstore_")):
        assert shell.run(f"%memory use {name}").name == "Store 007"
    assert len(shell.run("%memory stores")) == 122


def test_a_store_without_a_slug_is_offered_by_its_quoted_name(shell: Shell) -> None:
    shell.run('%memory create "日本 語" -q')
    assert r"日本\ 語" in shell.complete("%memory use ")
    assert shell.run(r"%memory use 日本\ 語").name == "日本 語"


def test_fault_49_with_the_database_away_there_is_nothing_and_no_output(
    bare_shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", "postgresql://127.0.0.1:1/nowhere")
    bare_shell.run("%load_ext memkernel")
    capsys.readouterr()
    begun = time.monotonic()
    assert bare_shell.complete("%memory cat /et") == []
    assert bare_shell.complete("%memory use te") == []
    assert bare_shell.complete("%memory ls -s te") == []
    assert time.monotonic() - begun < 1.0
    assert capsys.readouterr() == ("", "")


def test_other_lines_are_completed_as_ever(shell: Shell) -> None:
    shell.run("numbers = [1]")
    assert shell.complete("numbers.ap") == ["append"]
    assert "%memory" in shell.complete("%mem")


def test_files_are_left_to_ipython(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "plan.md").touch()
    assert shell.complete(f"%memory put /a.md --from {tmp_path}/pl") == [f"{tmp_path}/plan.md"]


# -- the recollection ------------------------------------------------------------------------------


def test_a_slow_answer_is_not_waited_for_and_comes_later() -> None:
    known = Recollection[str](patience_s=0.01, fresh_s=60)

    def slow() -> list[str]:
        time.sleep(0.2)
        return ["late"]

    assert known.get("key", slow) == []
    deadline = time.monotonic() + 10
    while known.get("key", slow) != ["late"]:
        assert time.monotonic() < deadline


def test_an_answer_is_asked_for_once_while_it_is_fresh() -> None:
    known, asked = Recollection[str](fresh_s=60), list[int]()

    def fetch() -> list[str]:
        asked.append(1)
        return ["a"]

    assert [known.get("key", fetch) for _ in range(3)] == [["a"]] * 3
    assert len(asked) == 1
    assert known.get("other", fetch) == ["a"]
    assert len(asked) == 2


def test_a_failure_is_an_empty_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> list[str]:
        raise RuntimeError("the database is away")

    assert Recollection[str]().get("key", fail) == []
    assert capsys.readouterr() == ("", "")
