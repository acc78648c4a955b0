"""%sandbox … in a shell of this process: start, stop, look around, sync, settle; and what is refused, and how."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.error import UsageError

import memkernel as mk
from memkernel import errors
from memkernel.jupyter.done import Done
from memkernel.jupyter.facts import Facts
from memkernel.models import AttachmentParams, CellResult, SyncReport
from tests.fix_kernel import Shell, kernel_environment
from tests.unit.html_pages import Page

FOLDER = "/mnt/memory/team-notes"


@pytest.fixture(autouse=True)
def _home(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_HOME", str(open_home / "memkernel"))
    monkeypatch.delenv("MEMKERNEL_DEMO", raising=False)


@pytest.fixture
def box(shell: Shell) -> Iterator[mk.Sandbox]:
    """A local sandbox with `Team notes`, started by the magic; it is stopped at the end."""
    yield shell.run("%sandbox start --backend local")
    shell.run("%sandbox stop --all -q")


@pytest.fixture
def notes(shell: Shell, somebody_else: mk.Connection) -> mk.Store:
    """The store in use, as somebody else holds it."""
    return somebody_else.store("Team notes")


def text_of(shell: Shell, thing: object) -> str:
    """What a cell shows of it as text."""
    return shell.ipython.display_formatter.format(thing)[0]["text/plain"]


def html_of(shell: Shell, thing: object) -> str:
    """What a cell shows of it as HTML, which is read strictly."""
    html = shell.ipython.display_formatter.format(thing)[0]["text/html"]
    Page(html)
    return html


def page_text(shell: Shell, thing: object) -> str:
    """The text of what a cell shows of it as HTML."""
    return Page(html_of(shell, thing)).text


# -- start, look around, stop --------------------------------------------------------------------------


def test_a_start_gives_the_sandbox_whose_first_line_says_what_keeps_the_code_in(shell: Shell, box: mk.Sandbox) -> None:
    assert text_of(shell, box).startswith("sandbox main: local, not isolated")
    assert (box.name, box.backend, box.is_open) == ("main", "local", True)
    with pytest.raises(UsageError, match="the sandbox main is running already"):
        shell.run("%sandbox start --backend local")


def test_what_is_asked_of_a_running_one_has_to_be_what_it_is(shell: Shell, box: mk.Sandbox) -> None:
    shell.run("%memory create Handbook")
    for line in (
        "--ro handbook",
        "--store handbook",
        "--ro team-notes",
        "--memory 2g",
        "--backend docker",
    ):
        with pytest.raises(UsageError) as caught:
            shell.run(f"%%sandbox {line}\n1\n")
        message = str(caught.value)
        assert message.startswith("the sandbox main runs already, ")
        if "--ro team-notes" in line:
            assert "with team-notes (writable) and not with team-notes (read-only)" in message
        assert "`%sandbox stop`" in message
        assert "`--name NAME`" in message
    shell.run("%%sandbox --store team-notes --backend local --memory 512m --cpus 2 -q\n1\n")
    shell.run("%memory use handbook")
    shell.run("%%sandbox -q -o r\n1\n")  # the store in use is another one, and none was asked for
    assert shell.value("r").ok


def test_a_second_one_is_reached_by_its_name_and_the_newest_is_the_current_one(
    shell: Shell, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("%memory create Handbook")
    shell.run("%%sandbox --name dev --ro handbook --backend local\nx = 'dev'\n")
    assert "sandbox dev: local, not isolated" in capsys.readouterr().out
    shell.run("%%sandbox --name main -q\nx = 'main'\n")
    shell.run("%%sandbox -q -o r\nprint(x)\n")
    assert shell.value("r").stdout == "dev\n"
    assert [row.sandbox for row in shell.run("%sandbox ls")] == ["dev", "main"]
    assert shell.complete("%%sandbox --name ") == ["dev", "main"]
    assert shell.complete("%sandbox stop m") == ["main"]
    assert shell.run("%sandbox status").values["also running"] == "main"
    shell.run("%sandbox stop")
    shell.run("%%sandbox -q -o r\nprint(x)\n")
    assert shell.value("r").stdout == "main\n"


def test_sandboxes_of_others_are_listed_with_where_they_are(
    shell: Shell, notes: mk.Store, box: mk.Sandbox, open_home: Path
) -> None:
    sessions = notes.connection.database.sessions
    far = sessions.create([AttachmentParams(notes.id)], metadata={"host": "another-machine"}).id
    left = sessions.create([AttachmentParams(notes.id)]).id
    folder = open_home / "memkernel" / "sessions" / box.id
    shutil.copytree(folder, folder.with_name(left))
    note = folder.with_name(left) / "session.json"
    note.write_text(note.read_text().replace(box.id, left))
    states = {row.id: row.state for row in shell.run("%sandbox ls")}
    assert states == {box.id: "running", far: "on another-machine", left: "left behind: `memkernel doctor` ends it"}


def test_a_name_may_also_be_given_as_an_option(shell: Shell) -> None:
    shell.run("%sandbox start --backend local --name dev -q")
    assert [row.sandbox for row in shell.run("%sandbox ls")] == ["dev"]
    with pytest.raises(UsageError, match="a name and --name"):
        shell.run("%sandbox start other --name more --backend local")
    shell.run("%sandbox stop --name dev -q")


def test_status_and_mounts_tell_how_it_stands(shell: Shell, notes: mk.Store, box: mk.Sandbox) -> None:
    status = shell.run("%sandbox")
    assert isinstance(status, Facts)
    assert status.values["state"] == "running"
    assert status.values["stores"] == f"{FOLDER} (read-write)"
    assert status.values["session"] == box.id
    assert "not isolated" in html_of(shell, status)
    notes.write("/a.md", "A\n")
    box._running().backend.run(f"open('{FOLDER}/b.md', 'w').close()")  # pyright: ignore[reportPrivateUsage]  # a cell whose notebook dies
    (mount,) = shell.run("%sandbox mounts")
    assert (mount.store.name, mount.attachment.mount_path) == ("Team notes", FOLDER)
    assert (mount.local, mount.remote) == (1, 1)
    assert notes.read("/b.md") == ""  # for every cell of the notebook, that line too, ends with a sync
    (mount,) = shell.run("%sandbox mounts")
    assert (mount.local, mount.remote) == (0, 0)


def test_a_stop_saves_says_so_and_ends_the_session(
    shell: Shell, notes: mk.Store, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box._running().backend.run(f"_ = open('{FOLDER}/late.md', 'w').write('late\\n')")  # pyright: ignore[reportPrivateUsage]  # as above
    done = shell.run("%sandbox stop -o report")
    assert isinstance(done, Done)
    assert str(done) == "Stopped: main."
    assert "/late.md" in capsys.readouterr().out
    assert isinstance(shell.value("report"), SyncReport)
    assert notes.read("/late.md") == "late\n"
    nothing = shell.run("%sandbox ls")
    assert nothing == []
    for shown in (text_of(shell, nothing), page_text(shell, nothing)):
        assert shown.startswith("No sandbox is running: ")
        assert "(none)" not in shown
    (ended,) = shell.run("%sandbox ls --all")
    assert (ended.state, ended.stores, ended.sandbox) == ("ended", "team-notes", "")
    assert text_of(shell, box).startswith("<memkernel.Sandbox main: closed")


def test_logs_are_text(shell: Shell, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run("%sandbox logs") is None
    assert capsys.readouterr().out.strip()


# -- sync, reset, wipes --------------------------------------------------------------------------------


def test_a_sync_by_hand_reports_and_fills_the_variable(
    shell: Shell, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box._running().backend.run(f"_ = open('{FOLDER}/a.md', 'w').write('A\\n')")  # pyright: ignore[reportPrivateUsage]  # as above
    assert shell.run("%sandbox sync -o report") is None
    shown = capsys.readouterr().out
    assert re.search(r"\+ created +/a\.md +\+1 +@1 +2 B", shown)
    assert shell.value("report").stores[0].created[0].path == "/a.md"
    shell.run("%sandbox sync -q")
    assert capsys.readouterr().out == ""


def test_a_reset_makes_the_folder_equal_to_the_store_and_puts_aside_what_was_not_saved(
    shell: Shell, notes: mk.Store, box: mk.Sandbox
) -> None:
    notes.write("/a.md", "A\n")
    shell.run("%sandbox sync -q")
    box._running().backend.run(f"_ = open('{FOLDER}/a.md', 'w').write('mine\\n')")  # pyright: ignore[reportPrivateUsage]  # as above
    shell.run("%sandbox reset --store team-notes -q -o report")
    assert notes.read("/a.md") == "A\n"
    shell.run(f"%%sandbox -q -o r\nprint(open('{FOLDER}/a.md').read())\n")
    assert shell.value("r").stdout == "A\n\n"
    assert [change.text for change in box.rejected] == ["mine\n"]
    with pytest.raises(errors.InvalidInputError, match="nowhere is not mounted"):
        shell.run("%sandbox reset --store nowhere")


def test_f262_a_wipe_is_held_back_shown_and_carried_out_when_it_is_meant(
    shell: Shell, notes: mk.Store, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    notes.write("/a.md", "A\n")
    notes.write("/b.md", "B\n")
    shell.run(f"%%sandbox --bash\nrm {FOLDER}/*\n")
    shown = capsys.readouterr().out
    assert shown.count("✗ restored") == 2
    assert "`%sandbox sync --allow-wipe` deletes them." in shown
    shell.run("'another cell, which ends with a sync'")
    assert len(notes.ls()) == 2
    shell.run("%sandbox sync --allow-wipe")
    assert capsys.readouterr().out.count("− deleted") == 2
    assert notes.ls() == []
    notes.write("/c.md", "C\n")
    notes.write("/d.md", "D\n")
    shell.run(f"%%sandbox --bash --allow-wipe -q\nrm {FOLDER}/*\n")
    assert notes.ls() == []


# -- what could not be saved -----------------------------------------------------------------------------


def put_aside(shell: Shell, notes: mk.Store, box: mk.Sandbox, *, deleted: bool = False) -> None:
    """Let /plan.md be changed in the sandbox and in the store, so that a sync puts the sandbox's aside."""
    notes.write("/plan.md", "one\ntwo\n")
    shell.run("%sandbox sync -q")
    change = (
        f"__import__('os').remove('{FOLDER}/plan.md')" if deleted else f"open('{FOLDER}/plan.md', 'w').write('MINE\\n')"
    )
    box._running().backend.run(f"_ = {change}")  # pyright: ignore[reportPrivateUsage]  # as above
    notes.write("/plan.md", "THEIRS\n")
    with pytest.raises(errors.SyncConflictError):
        shell.run("%sandbox sync -o report")
    assert not shell.value("report").ok


def test_both_texts_are_shown_and_each_way_of_settling_does_what_it_says(
    shell: Shell, notes: mk.Store, box: mk.Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    for how, path, texts in (
        ("mine", "/plan.md", {"/plan.md": "MINE\n"}),
        ("theirs", f"{FOLDER}/plan.md", {"/plan.md": "THEIRS\n"}),
        ("both", "team-notes:/plan.md", {"/plan.md": "THEIRS\n", "/plan.conflict.md": "MINE\n"}),
    ):
        put_aside(shell, notes, box)
        assert "✗ not saved" in capsys.readouterr().out
        changes = shell.run(f"%sandbox changes {path}")
        for shown in (text_of(shell, changes), page_text(shell, changes)):
            assert "MINE" in shown
            assert "THEIRS" in shown
            assert "%sandbox resolve PATH mine" in shown
        assert "MINE" in html_of(shell, box.rejected[0])
        shell.run(f"%sandbox resolve {path} {how}")
        assert {memory.path: notes.read(memory.path) for memory in notes.ls()} == texts
        assert list(shell.run("%sandbox changes").put_aside) == []


def test_a_store_that_is_archived_meanwhile_is_named_when_its_text_is_settled(
    shell: Shell, notes: mk.Store, box: mk.Sandbox
) -> None:
    put_aside(shell, notes, box)
    notes.archive()
    with pytest.raises(errors.StoreArchivedError, match="memory store Team notes is archived"):
        shell.run("%sandbox resolve /plan.md mine")
    assert len(box.rejected) == 1


def test_of_many_texts_the_newest_are_compared_and_the_others_named(
    shell: Shell, notes: mk.Store, box: mk.Sandbox
) -> None:
    many = "".join(f"open('{FOLDER}/{number:02}.md', 'w').write('mine\\n'); " for number in range(20))
    for number in range(20):
        notes.write(f"/{number:02}.md", "old\n")
    shell.run("%sandbox sync -q")
    box._running().backend.run(many)  # pyright: ignore[reportPrivateUsage]  # as above
    for number in range(20):
        notes.write(f"/{number:02}.md", "theirs\n")
    with pytest.raises(errors.SyncConflictError):
        shell.run("%sandbox sync -q")
    changes = shell.run("%sandbox changes")
    assert (len(changes.put_aside), len(changes.others)) == (3, 17)
    for shown in (text_of(shell, changes), page_text(shell, changes)):
        assert "17 more put aside: team-notes:/" in shown
    assert len(shell.run("%sandbox changes /05.md").put_aside) == 1
    assert shell.complete("%sandbox resolve /1") == [f"/{number}.md" for number in range(10, 20)]


def test_a_deletion_that_could_not_be_saved_is_settled_too(shell: Shell, notes: mk.Store, box: mk.Sandbox) -> None:
    put_aside(shell, notes, box, deleted=True)
    assert "its deletion was put aside" in text_of(shell, shell.run("%sandbox changes"))
    with pytest.raises(errors.InvalidInputError, match="no second text"):
        shell.run("%sandbox resolve /plan.md both")
    assert str(shell.run("%sandbox resolve /plan.md mine")) == "/plan.md is deleted, as it had been in the sandbox."
    assert notes.ls() == []


def test_what_is_settled_already_or_names_a_version_is_told(shell: Shell, box: mk.Sandbox) -> None:
    with pytest.raises(errors.NotFoundError, match="nothing was put aside at /a"):
        shell.run("%sandbox resolve /a.md mine")
    with pytest.raises(UsageError, match="names a version"):
        shell.run("%sandbox resolve /a.md@2 mine")
    assert "Nothing was saved yet." in text_of(shell, shell.run("%sandbox changes"))


# -- what is refused, and how ------------------------------------------------------------------------------


def test_without_an_engine_the_way_out_is_named_in_under_a_second(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("import memkernel.handle.sandbox, docker")  # what is measured is the answer, not the imports
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    shell.run("%memory connect -q")
    begun = time.monotonic()
    with pytest.raises(errors.EngineNotFoundError) as caught:
        shell.run("%%sandbox -o r\n1\n")
    assert time.monotonic() - begun < 1
    assert "`--backend local`" in caught.value.hint
    assert shell.value("r") is None
    assert shell.run("%sandbox ls --all") == []


def test_too_many_stores_one_twice_and_bad_limits_are_refused_before_anything_starts(shell: Shell) -> None:
    for number in range(9):
        shell.run(f"%memory create Store{number}")
    nine = " ".join(f"--store store{number}" for number in range(9))
    for line in (
        nine,
        "--store store1 --ro store1",
        "--memory lots",
        "--memory 1",
        "--cpus -1",
        "--network host",
        "--network container:x",
    ):
        with pytest.raises(errors.MemkernelError) as caught:
            shell.run(f"%%sandbox --backend local {line}\n1\n")
        assert len(caught.value.lines()) <= 2
    shell.run("%memory archive store1 -y")
    with pytest.raises(errors.MemkernelError, match="archived"):
        shell.run("%%sandbox --backend local --store store1\n1\n")
    assert shell.run("%sandbox ls --all") == []


def test_the_results_of_cells_are_shown_well(shell: Shell, box: mk.Sandbox) -> None:
    shell.run(f"%%sandbox -q -o r\nprint('hi')\n_ = open('{FOLDER}/a.md', 'w').write('A\\n')\n")
    result = shell.value("r")
    assert isinstance(result, CellResult)
    assert text_of(shell, result).split("\n")[0] == "hi"
    assert "/a.md" in html_of(shell, result)
    assert "/a.md" in html_of(shell, result.report)


def test_what_a_dead_notebook_left_is_saved_and_told_at_the_next_start(
    shell: Shell, notes: mk.Store, open_home: Path, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "import os, memkernel as mk\n"
        "box = mk.Sandbox(mk.connect().store('Team notes'), backend='local', name='lost').start()\n"
        f"box._running().backend.run(\"_ = open('{FOLDER}/left.md', 'w').write('left\\\\n')\")\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = kernel_environment(open_home, MEMKERNEL_DSN=dsn, MEMKERNEL_HOME=str(open_home / "memkernel"))
    died = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=60, check=False)
    assert died.returncode == -9, died.stderr
    shell.run("%sandbox start --backend local -q")
    assert "sandbox lost, which was left behind, is ended: 1 change saved in team-notes (/left.md)" in (
        capsys.readouterr().out
    )
    assert notes.read("/left.md") == "left\n"
    shell.run("%sandbox stop -q")
