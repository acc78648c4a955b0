"""What a sandbox tells of itself: cells, syncs, its own life; and how its mounts stand without waiting for it."""

from __future__ import annotations

import threading

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.runtime import CellBegan, CellEnded, LifeChanged, SandboxEvent, Synced
from tests.fix_sandbox import MakeBox

MOUNT = "/mnt/memory/team-notes"


@pytest.fixture
def box(notes: mk.Store, boxes: MakeBox) -> mk.Sandbox:
    """A started local sandbox."""
    return boxes(notes, backend="local")


@pytest.fixture
def told(box: mk.Sandbox) -> list[SandboxEvent]:
    """What it tells from now on."""
    events: list[SandboxEvent] = []
    box.subscribe(events.append)
    return events


def ended(events: list[SandboxEvent]) -> list[CellEnded]:
    return [event for event in events if isinstance(event, CellEnded)]


def test_a_cell_is_told_when_it_begins_and_when_it_has_ended(box: mk.Sandbox, told: list[SandboxEvent]) -> None:
    box.run(f"\n\nopen('{MOUNT}/a.md', 'w').write('x')\nprint('much output')")
    began, end = told
    assert isinstance(began, CellBegan)
    assert (began.number, began.language, began.code) == (1, "python", f"open('{MOUNT}/a.md', 'w').write('x')")
    assert isinstance(end, CellEnded)
    assert end.result is not None
    assert end.report is not None
    assert (end.number, end.result.status, end.error) == (1, "ok", "")
    assert (end.result.stdout, end.result.outputs) == ("", ())  # outputs may have megabytes
    assert [version.path for version in end.report.stores[0].created] == ["/a.md"]


def test_cells_are_counted_and_a_script_has_its_exit_status(box: mk.Sandbox, told: list[SandboxEvent]) -> None:
    box.run("1 / 0")
    box.bash("exit 3")
    first, second = ended(told)
    assert first.result is not None
    assert second.result is not None
    assert (first.number, first.result.status, first.result.exit_code) == (1, "error", None)
    assert (second.number, second.result.status, second.result.exit_code) == (2, "error", 3)


def test_a_cell_that_was_not_run_says_why(
    box: mk.Sandbox, told: list[SandboxEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object, **options: object) -> None:
        raise errors.EngineError("the Docker engine went away")

    running = box._running()  # pyright: ignore[reportPrivateUsage]  # no backend that is really there goes away at will
    monkeypatch.setattr(running.backend, "run", away)
    with pytest.raises(errors.EngineError):
        box.run("1")
    (end,) = ended(told)
    assert (end.result, end.error.splitlines()[0]) == (None, "the Docker engine went away")


def test_syncs_between_cells_are_told_if_they_did_something(
    box: mk.Sandbox, told: list[SandboxEvent], notes: mk.Store
) -> None:
    box.sync()
    assert told == []
    notes.write("/b.md", "from elsewhere\n")
    box.sync()
    (event,) = told
    assert isinstance(event, Synced)
    assert event.report.stores[0].pulled == ("/b.md",)


def test_a_new_kernel_and_the_end_are_told(box: mk.Sandbox, told: list[SandboxEvent]) -> None:
    box.restart()
    box.stop()
    assert [event.what for event in told if isinstance(event, LifeChanged)] == ["restarted", "stopped"]
    assert box.events[-len(told) :] == told


def test_a_sink_that_fails_gets_no_more_and_one_that_leaves_neither(box: mk.Sandbox, told: list[SandboxEvent]) -> None:
    calls: list[str] = []

    def failing(event: SandboxEvent) -> None:
        calls.append("failing")
        raise ValueError

    box.subscribe(failing)
    leave = box.subscribe(lambda event: calls.append("leaving"))
    box.run("1")
    leave()
    box.run("2")
    assert calls == ["failing", "leaving", "leaving"]
    assert len(ended(told)) == 2


def test_how_the_mounts_stand_is_told_without_waiting_for_a_cell(box: mk.Sandbox, notes: mk.Store) -> None:
    states: list[object] = []
    box.subscribe(lambda event: states.append(box.mounts_if_free()))
    box.run("1")
    assert states == [None, None]
    notes.write("/b.md", "from elsewhere\n")
    free = box.mounts_if_free()
    assert free is not None
    assert [(one.local, one.remote, one.held_back) for one in free] == [(0, 1, ())]
    box.stop()
    assert box.mounts_if_free() is None


def test_looking_at_the_mounts_keeps_the_next_sync_from_nothing(box: mk.Sandbox, notes: mk.Store) -> None:
    notes.write("/b.md", "from elsewhere\n")
    assert box.mounts[0].remote == 1
    result = box.run(f"print(open('{MOUNT}/b.md').read())")
    assert result.stdout == "from elsewhere\n\n"
    assert box.mounts[0].remote == 0


def test_held_back_deletions_are_a_part_of_how_a_mount_stands(box: mk.Sandbox, notes: mk.Store) -> None:
    notes.write("/a.md", "a\n")
    notes.write("/b.md", "b\n")
    box.bash(f"rm {MOUNT}/*")
    (state,) = box.mounts
    assert state.held_back == ("/a.md", "/b.md")
    box.apply_held_back()
    (state,) = box.mounts
    assert state.held_back == ()


def test_events_come_from_whichever_thread_runs_the_cell(box: mk.Sandbox) -> None:
    names: set[str] = set()
    box.subscribe(lambda event: names.add(threading.current_thread().name))
    thread = threading.Thread(target=box.run, args=["1"], name="the-worker")
    thread.start()
    thread.join()
    assert names == {"the-worker"}
