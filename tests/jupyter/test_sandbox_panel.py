"""The panel of a sandbox: its state, its requests, its copy, and where a notebook shows it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.handle.panel import Panel
from memkernel.jupyter.widgets.sandbox_panel import SandboxPanel
from tests.fix_kernel import Kernel
from tests.fix_sandbox import MakeBox

MOUNT = "/mnt/memory/team-notes"
PATIENCE_S = 30.0


@pytest.fixture
def box(notes: mk.Store, boxes: MakeBox) -> mk.Sandbox:
    """A started local sandbox, whose cells write two files."""
    notes.write("/a.md", "one\ntwo\n")
    notes.write("/b.md", "b\n")
    return boxes(notes, backend="local")


@pytest.fixture
def panel(box: mk.Sandbox) -> Iterator[SandboxPanel]:
    """Its panel."""
    widget = SandboxPanel(box.panel())
    yield widget
    widget.close()


def settled(panel: SandboxPanel) -> SandboxPanel:
    """Once it has looked after the last event."""
    looker = panel._looker  # pyright: ignore[reportPrivateUsage]  # the thread that a person would wait for by looking
    if looker is not None:
        looker.join(PATIENCE_S)
    return panel


def state_of(panel: Any) -> dict[str, Any]:
    """What is saved with the notebook, the bundle aside."""
    return {name: value for name, value in panel.get_state().items() if not name.startswith("_")}


def files(panel: SandboxPanel) -> list[tuple[str, str]]:
    return [(row[2], row[3]) for row in panel.changes]


def put_aside(box: mk.Sandbox, notes: mk.Store, text: str = "mine\n") -> str:
    """A change of the sandbox that the store does not take; its id."""
    with pytest.raises(errors.SyncConflictError):
        box.run(f"import time; open('{MOUNT}/a.md', 'w').write({text!r})", on_output=None)
    return box.rejected[-1].id


def compared(panel: SandboxPanel, change: str) -> Any:
    """The difference of what was put aside, as the page asks for it."""
    return panel.diff(old=f"head:{change}", new=f"rejected:{change}", ignore_whitespace=False, start=0)


@pytest.fixture
def conflict(box: mk.Sandbox, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """A text that was put aside, as somebody wrote to the store while the cell ran; its id."""
    backend = box._running().backend  # pyright: ignore[reportPrivateUsage]  # to write at the very moment
    run = backend.run

    def run_and_write(*args: Any, **options: Any) -> Any:
        result = run(*args, **options)
        notes.write("/a.md", "theirs\n")
        return result

    with monkeypatch.context() as patch:
        patch.setattr(backend, "run", run_and_write)
        return put_aside(box, notes)


# -- what it shows -------------------------------------------------------------------------------


def test_a_new_panel_shows_the_limits_and_the_stores(panel: SandboxPanel, notes: mk.Store) -> None:
    assert (panel.status, panel.sentence) == ("running", "running: free for the next cell")
    assert dict(panel.limits)["memory"] == "512 MiB"
    assert panel.isolation.startswith("local, not isolated")
    (mount,) = panel.mounts
    assert mount[:4] == ["team-notes", MOUNT, "read-write · in sync", notes.id]
    assert [button[1] for button in panel.buttons] == ["Sync now", "Stop", "⟳"]
    assert (panel.cells, panel.changes, panel.conflicts, panel.held) == ([], [], [], [])


def test_a_cell_is_a_row_with_its_files_and_their_lines(box: mk.Sandbox, panel: SandboxPanel) -> None:
    box.run(f"open('{MOUNT}/a.md', 'a').write('three\\n'); open('{MOUNT}/c.md', 'w').write('c\\n')")
    settled(panel)
    (entry,) = panel.cells
    assert entry[:2] == ["cell-1", "cell 1"]
    assert entry[2].startswith("done · ")
    assert entry[4].startswith("open(")
    rows = [(row[2], row[3], row[5]) for row in panel.changes]
    assert rows == [("~ modified", "/a.md", "+1 · @2 · 14 B"), ("+ created", "/c.md", "+1 · @1 · 2 B")]


def test_while_a_cell_runs_the_panel_says_so(box: mk.Sandbox, panel: SandboxPanel) -> None:
    seen: list[tuple[str, str]] = []
    box.subscribe(lambda event: seen.append((panel.status, panel.cells[0][2][:7])))
    box.run("1")
    assert seen == [("busy", "running"), ("running", "done · ")]


def test_what_a_script_ended_with_and_what_an_error_said_are_there(box: mk.Sandbox, panel: SandboxPanel) -> None:
    box.bash("exit 3")
    box.run("1 / 0")
    newest, oldest = settled(panel).cells
    assert (newest[2][:5], newest[6]) == ("error", ["ZeroDivisionError: division by zero"])
    assert oldest[2].startswith("error · exit status 3 · ")
    assert (newest[3], oldest[3]) == ("mk-bad", "mk-bad")


def test_another_panel_of_the_same_sandbox_shows_earlier_cells(box: mk.Sandbox, panel: SandboxPanel) -> None:
    box.run("1")
    other = SandboxPanel(box.panel())
    assert other.cells == panel.cells
    other.close()


def test_what_the_stores_will_bring_is_counted_when_one_looks(
    box: mk.Sandbox, panel: SandboxPanel, notes: mk.Store
) -> None:
    notes.write("/b.md", "changed\n")
    panel.refresh()
    assert panel.mounts[0][2] == "read-write · 1 to bring"
    assert panel.sync()["said"] == "1 file brought up to team-notes (/b.md)"
    assert settled(panel).mounts[0][2] == "read-write · in sync"
    assert panel.cells[0][1:3] == ["sync", "between cells"]


def test_characters_that_cannot_be_seen_are_marks(box: mk.Sandbox, panel: SandboxPanel) -> None:
    box.run("x = 'a\u202eb'")
    assert settled(panel).cells[0][4] == "x = 'a⟨U+202E⟩b'"


def test_at_most_200_changes_and_64_kilobytes_are_in_the_state(box: mk.Sandbox, panel: SandboxPanel) -> None:
    for number in range(3):
        box.bash(f"mkdir -p {MOUNT}/{'d' * 200}; cd {MOUNT}/d*; for n in $(seq 150); do echo $n > {number}-$n; done")
    settled(panel)
    assert len(panel.changes) <= 200
    assert panel.changes[0][3].endswith("/2-1")  # the newest are there
    left = 150 - sum(row[0] == "cell-3" for row in panel.changes)
    assert [entry[6] for entry in panel.cells] == [[f"{n} more files, not shown here"] for n in (left, 150, 150)]
    assert len(json.dumps(state_of(panel))) < 64_000
    box.bash(f"rm -r {MOUNT}/d*")
    assert len(json.dumps(state_of(settled(panel)))) < 64_000


# -- what was put aside --------------------------------------------------------------------------


def test_a_text_that_was_put_aside_is_there_with_both_texts(
    panel: SandboxPanel, conflict: str, notes: mk.Store
) -> None:
    (row,) = settled(panel).conflicts
    assert row[:2] == [conflict, "team-notes:/a.md"]
    assert row[2].startswith("modified · 5 B · put aside 2")
    assert row[4] == ["mine", "both", "theirs"]
    assert panel.mounts[0][2] == "read-write · 1 put aside"
    assert ("✗ not saved", "/a.md") in files(panel)
    view = compared(panel, conflict)
    assert [row[0] for row in view["rows"]] == ["-", "+"]
    assert view["names"] == ["@2 in the store", "yours, put aside"]


@pytest.mark.parametrize(
    ("how", "texts"),
    [
        ("mine", {"/a.md": "mine\n"}),
        ("both", {"/a.md": "theirs\n", "/a.conflict.md": "mine\n"}),
        ("theirs", {"/a.md": "theirs\n"}),
    ],
)
def test_it_is_settled_in_one_of_three_ways(
    panel: SandboxPanel, conflict: str, notes: mk.Store, how: Any, texts: dict[str, str]
) -> None:
    told: list[Any] = []
    panel.on_event(lambda name, facts: told.append((name, facts.get("how"))))
    compared(panel, conflict)
    panel.resolve(id=conflict, how=how)
    assert {memory.path: notes.read(memory.path) for memory in notes.ls()} == texts | {"/b.md": "b\n"}
    assert settled(panel).conflicts == []
    assert ("resolved", how) in told


def test_mine_over_a_text_that_the_person_has_not_seen_is_refused(
    panel: SandboxPanel, conflict: str, notes: mk.Store
) -> None:
    compared(panel, conflict)
    notes.write("/a.md", "theirs again\n")
    with pytest.raises(errors.ConflictError, match="was changed in the store meanwhile"):
        panel.resolve(id=conflict, how="mine")
    assert notes.read("/a.md") == "theirs again\n"
    compared(panel, conflict)
    panel.resolve(id=conflict, how="mine")
    assert notes.read("/a.md") == "mine\n"


def test_what_somebody_else_has_settled_is_said(panel: SandboxPanel, box: mk.Sandbox, conflict: str) -> None:
    box.resolve("/a.md", "theirs")
    with pytest.raises(errors.NotFoundError, match="settled already"):
        panel.resolve(id=conflict, how="mine")
    assert settled(panel).conflicts == []


def test_texts_can_be_settled_when_the_sandbox_has_ended(
    panel: SandboxPanel, box: mk.Sandbox, conflict: str, notes: mk.Store
) -> None:
    box.stop()
    panel.resolve(id=conflict, how="both")
    assert notes.read("/a.conflict.md") == "mine\n"


def test_a_conflict_is_an_event(panel: SandboxPanel, box: mk.Sandbox, notes: mk.Store, conflict: str) -> None:
    other = SandboxPanel(box.panel())
    told: list[Any] = []
    other.on_event(lambda name, facts: told.append((name, facts.get("path"))))
    box.resolve("/a.md", "theirs")
    other.refresh()
    assert told == []  # what was there is no news
    other.close()


# -- held back, reset, stop, interrupt -----------------------------------------------------------


def test_deletions_that_were_held_back_are_made_after_all(
    panel: SandboxPanel, box: mk.Sandbox, notes: mk.Store
) -> None:
    box.bash(f"rm {MOUNT}/*")
    why = "A cell left no file at all there, so nothing was deleted."
    assert settled(panel).held[0][:2] == [
        f"2 deletions held back in team-notes (/a.md, /b.md). {why}",
        "delete_held_back",
    ]
    assert panel.mounts[0][2] == "read-write · 2 held back"
    panel.delete_held_back()
    assert notes.ls() == []
    assert settled(panel).held == []


def test_a_reset_puts_aside_what_was_not_saved(
    panel: SandboxPanel, box: mk.Sandbox, notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.bash(f"(sleep 0.3; echo later > {MOUNT}/a.md) >/dev/null 2>&1 &")
    deadline = threading.Event()
    while "to save" not in panel.mounts[0][2]:
        deadline.wait(0.05)
        panel.refresh()
    panel.reset(store=notes.id)
    assert [row[1] for row in settled(panel).conflicts] == ["team-notes:/a.md"]
    assert notes.read("/a.md") == "one\ntwo\n"


def test_the_buttons_of_a_busy_sandbox_say_so_at_once(panel: SandboxPanel, box: mk.Sandbox) -> None:
    refused: list[str] = []

    def press(event: object) -> None:
        if panel.status == "busy":
            with pytest.raises(errors.SandboxError) as caught:
                panel.sync()
            refused.append(str(caught.value))

    box.subscribe(press)
    box.run("1")
    assert len(refused) == 1
    assert refused[0].startswith("the sandbox is busy: cell 1 runs since")


def test_interrupt_ends_the_cell_and_stop_saves_all(panel: SandboxPanel, box: mk.Sandbox, notes: mk.Store) -> None:
    code = f"open('{MOUNT}/draft.md', 'w').write('draft\\n')\nprint('go', flush=True)\nimport time\ntime.sleep(60)"

    def press(output: object) -> None:
        panel.interrupt()

    result = box.run(code, on_output=press)
    assert result.status == "interrupted"
    assert settled(panel).cells[0][2].startswith("interrupted")
    panel.stop()
    assert settled(panel).status == "stopped"
    assert panel.sentence.startswith("stopped: since 2")
    assert notes.read("/draft.md") == "draft\n"
    assert panel.cells[0][1] == "the sandbox was stopped"


def test_a_kernel_that_died_and_a_new_one_are_said_in_a_line(panel: SandboxPanel, box: mk.Sandbox) -> None:
    box.run("import os; os._exit(7)")
    assert settled(panel).status == "dead"
    assert "the next cell starts a new kernel" in panel.sentence
    box.restart()
    assert settled(panel).sentence == "running: a new kernel: what the variables of the old one held is gone"


# -- its life ------------------------------------------------------------------------------------


def test_the_copy_of_a_cell_that_has_just_ended_says_so(panel: SandboxPanel, box: mk.Sandbox) -> None:
    class Copy:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            copies.append(bundle["text/plain"])

    copies: list[str] = []
    panel.static_copy = Copy()
    box.run("1")
    assert "cell 1 · done" in copies[-1]


def test_a_panel_for_reading_has_no_buttons(box: mk.Sandbox, conflict: str) -> None:
    panel = SandboxPanel(box.panel(), readonly=True)
    assert (panel.buttons, panel.mounts[0][4], panel.conflicts[0][4]) == ([], None, [])
    panel.close()


def test_a_panel_for_reading_carries_nothing_out(box: mk.Sandbox, notes: mk.Store, conflict: str) -> None:
    panel = SandboxPanel(box.panel(), readonly=True)
    wanted = [
        *(panel.sync, panel.stop, panel.interrupt, panel.delete_held_back),
        *(lambda: panel.reset(store=notes.id), lambda: panel.resolve(id=conflict, how="theirs")),
    ]
    for ask in wanted:
        with pytest.raises(errors.RefusedError, match="read only"):
            ask()
    assert (box.is_open, len(box.rejected)) == (True, 1)
    panel.close()


def test_a_closed_panel_hears_of_nothing_and_an_opened_one_again(panel: SandboxPanel, box: mk.Sandbox) -> None:
    view: Panel = box.panel()
    panel.close()
    assert not view.is_watched
    box.run("1")
    assert panel.cells == []
    panel.open()
    assert view.is_watched
    box.run("2")
    assert [entry[1] for entry in settled(panel).cells] == ["cell 2", "cell 1"]


def test_the_copy_reads_well_without_a_script(panel: SandboxPanel, box: mk.Sandbox, conflict: str) -> None:
    box.run(f"open('{MOUNT}/c.md', 'w').write('c\\n')")
    settled(panel)
    text, html = panel.plain(), panel.static_html()
    for part in ("sandbox team-notes", MOUNT, "cell 2 · done", "+ created", "/c.md", "/a.md", "put aside"):
        assert part in text
    for part in ("sandbox team-notes", MOUNT, "cell 2 · done", "+ created", "/c.md", "/a.md", "Put aside"):
        assert part in html
    assert len(text.split("\n")) <= 60
    assert len(html.encode()) <= 24_000


def test_as_text_it_is_the_same(box: mk.Sandbox) -> None:
    box.run("1")
    assert str(box.panel()).startswith("sandbox team-notes: running")
    assert repr(box.panel()).startswith("<memkernel.Panel of <memkernel.Sandbox team-notes")


# -- in a notebook -------------------------------------------------------------------------------

VIEW = "application/vnd.jupyter.widget-view+json"
START = '%load_ext memkernel\n%memory use "Team notes" --create -q\n%sandbox start --backend local -q'


@pytest.fixture
def notebook(kernel: Kernel) -> Iterator[Kernel]:
    """A kernel with the extension and a sandbox."""
    for line in START.split("\n"):
        assert kernel.run(line).status == "ok"
    yield kernel
    kernel.run("%sandbox stop --all -q")


def test_a_sandbox_cell_shows_the_panel_once(notebook: Kernel) -> None:
    first, second = notebook.run("%%sandbox\n1 + 1"), notebook.run("%%sandbox\n2 + 2")
    assert sum(VIEW in output for output in first.outputs) == 1
    assert "sandbox main: " in first.text
    assert not any(VIEW in output for output in second.outputs)
    assert "nothing changed" in second.text  # each cell keeps its own report


def test_a_cell_that_clears_its_outputs_shows_the_panel_again(notebook: Kernel) -> None:
    cleared = notebook.run("%%sandbox\nfrom IPython.display import clear_output\nclear_output()")
    assert sum(VIEW in output for output in cleared.outputs) == 2


def test_static_or_quiet_there_is_no_panel(notebook: Kernel) -> None:
    quiet = notebook.run("%%sandbox -q\n1")
    assert quiet.outputs == []
    notebook.run("%memory config render static")
    assert not any(VIEW in output for output in notebook.run("%%sandbox\n1").outputs)
    panel = notebook.run("%sandbox panel")
    assert "sandbox main: running" in panel.text
    assert "Cells, newest first" in panel.html


def test_a_panel_is_asked_for_by_name_and_in_python(notebook: Kernel) -> None:
    assert any(VIEW in output for output in notebook.run("%sandbox panel main").outputs)
    notebook.run("%sandbox start other --backend local -o other -q")
    assert any(VIEW in output for output in notebook.run("other.panel()").outputs)
    assert "there is no sandbox 'third'" in notebook.run("%sandbox panel third").stderr


def test_loading_the_extension_and_running_a_quiet_cell_load_no_widget(notebook: Kernel) -> None:
    notebook.run("%%sandbox -q\n1")
    assert notebook.run("import sys; print('anywidget' in sys.modules)").stdout == "False\n"
