"""mk.Sandbox as a person holds it: the same on Docker and on a local sandbox of either level."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.handle.records import Records
from memkernel.handle.sandbox import Sandbox, open_sandboxes
from memkernel.models import CellResult, StoreReport, SyncReport
from memkernel.store.sessions import Sessions
from tests.fix_local import LEVELS
from tests.fix_sandbox import MakeBox

MOUNT = "/mnt/memory/team-notes"
KINDS: dict[str, dict[str, Any]] = {
    "docker": {"backend": "docker"},
    "local-1": {"backend": "local", "level": 1},
    "local-2": {"backend": "local", "level": 2},
}

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of each kind of sandbox."""
    return KINDS[request.param]


@pytest.fixture
def box(kind: dict[str, Any], notes: mk.Store, boxes: MakeBox) -> Sandbox:
    """A started sandbox of each kind."""
    return boxes(notes, **kind)


@pytest.fixture
def local(notes: mk.Store, boxes: MakeBox) -> Sandbox:
    """A started local sandbox, for what does not depend on the kind."""
    return boxes(notes, backend="local")


def ran(result: CellResult) -> str:
    assert result.status == "ok", result.stderr or result.error
    return result.stdout


def of(report: SyncReport | None) -> StoreReport:
    assert report is not None
    (store,) = report.stores
    return store


def texts(store: mk.Store) -> dict[str, str]:
    return {memory.path: store.read(memory.path) for memory in store.ls("/", depth=0) if isinstance(memory, mk.Memory)}


# -- cells -----------------------------------------------------------------------------------------


def test_state_lives_from_cell_to_cell_and_files_become_versions(box: Sandbox, notes: mk.Store) -> None:
    ran(box.run("x = 20"))
    result = box.run(f"open('{MOUNT}/a.md', 'w').write(str(x + 1))\nx + 1")
    assert (result.result, result.ok) == ("21", True)
    assert texts(notes) == {"/a.md": "21"}
    assert [version.path for version in of(result.report).created] == ["/a.md"]
    assert box.report == result.report


def test_a_read_only_store_is_what_the_store_holds_after_each_cell(
    kind: dict[str, Any], notes: mk.Store, boxes: MakeBox
) -> None:
    notes.write("/a.md", "kept")
    box = boxes(mk.read_only(notes), **kind)
    box.bash(f"echo changed > {MOUNT}/a.md; echo new > {MOUNT}/new.md")
    assert ran(box.bash(f"cat {MOUNT}/*")) == "kept"
    assert texts(notes) == {"/a.md": "kept"}
    assert len(notes.log()) == 1


def test_a_local_sandbox_is_of_the_better_level_that_this_machine_has(notes: mk.Store, boxes: MakeBox) -> None:
    notes.write("/a.md", "kept")
    default = boxes(mk.read_only(notes), backend="local")
    assert default.isolation == boxes(notes, backend="local", level=LEVELS[0]).isolation
    computed = default.run("import os\nprint(os.listdir('/'.join(['', 'mnt', 'memory', 'team-notes'])))")
    assert (computed.stdout == "['a.md']\n") == (LEVELS[0] == 1)
    written = default.bash(f"echo changed > {MOUNT}/a.md")
    assert ("Read-only file system" in written.stderr) == (LEVELS[0] == 1)


def test_outputs_come_as_they_are_made(box: Sandbox) -> None:
    heard: list[tuple[float, str]] = []
    box.run(
        "import time\nprint('one', flush=True)\ntime.sleep(0.6)\nprint('two')",
        on_output=lambda output: heard.append((time.monotonic(), output["text"])),
    )
    assert "".join(text for _, text in heard) == "one\ntwo\n"
    assert heard[-1][0] - heard[0][0] > 0.4


def test_a_kernel_that_is_restarted_forgets_and_its_files_stay(box: Sandbox, notes: mk.Store) -> None:
    ran(box.run(f"x = 1; open('{MOUNT}/a.md', 'w').write('a')"))
    box.restart()
    assert box.run("'x' in globals()").result == "False"
    assert ran(box.bash(f"cat {MOUNT}/a.md")) == "a"


def test_files_go_in_and_out(box: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("from here")
    box.put(tmp_path / "in.txt", "/home/sandbox/in.txt")
    assert box.run("open('/home/sandbox/in.txt').read()").result == "'from here'"
    ran(box.run("open('/home/sandbox/out.txt', 'w').write('from there')"))
    box.get("/home/sandbox/out.txt", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "from there"


def test_a_persons_files_are_seen_read_only(notes: mk.Store, boxes: MakeBox, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1,2\n")
    box = boxes(notes, files={"/data": tmp_path / "data"}, environment={"GREETING": "hello"})
    assert ran(box.bash("cat /data/a.csv; echo $GREETING")) == "1,2\nhello\n"
    assert box.bash("echo 3 > /data/a.csv").status == "error"
    assert (tmp_path / "data" / "a.csv").read_text() == "1,2\n"


# -- life ------------------------------------------------------------------------------------------


def test_a_sandbox_starts_with_its_first_cell_and_ends_with_the_with(kind: dict[str, Any], notes: mk.Store) -> None:
    box = mk.Sandbox(notes, **kind)
    assert (box.status().state, box.is_open, box.history) == ("new", False, [])
    with pytest.raises(errors.SandboxClosedError):
        _ = box.id
    assert box.run("1 + 1").result == "2"
    assert open_sandboxes() == [box]
    with box:
        assert box.status().state == "running"
        assert box.isolation in ("", box.isolation)
    assert (box.status().state, box.is_open, open_sandboxes()) == ("closed", False, [])
    box.stop()
    for again in (lambda: box.run("1 + 1"), box.start, box.__enter__, box.sync, box.restart):
        with pytest.raises(errors.SandboxClosedError):
            again()
    assert notes.connection.database.sessions.retrieve(box.id).status == "terminated"


def test_a_sandbox_says_what_it_is(notes: mk.Store, boxes: MakeBox) -> None:
    local, docker = boxes(notes, backend="local", name="mine"), boxes(notes)
    assert repr(local) == "<memkernel.Sandbox mine: running, local, not isolated from this machine>"
    assert repr(docker) == "<memkernel.Sandbox team-notes: running, docker>"
    assert "not isolated" in local.isolation
    assert docker.isolation.startswith("Docker container: no network")
    assert local.options["backend"] == "local"
    assert [record.title for record in notes.connection.database.sessions.list().data] == ["team-notes", "mine"]


def test_a_start_that_is_asked_for_by_many_threads_is_one(notes: mk.Store) -> None:
    box = mk.Sandbox(notes, backend="local")
    with ThreadPoolExecutor(8) as pool:
        cells = [pool.submit(box.run, f"{number} + 1") for number in range(16)]
    assert [cell.result().result for cell in cells] == [str(number + 1) for number in range(16)]
    assert len(notes.connection.database.sessions.list().data) == 1
    box.stop()


def test_the_demo_is_local_and_all_else_is_docker(dsn: str, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mk.Sandbox(notes).backend == "docker"
    monkeypatch.setenv("MEMKERNEL_DEMO", "1")
    with mk.connect(dsn) as connection:
        assert mk.Sandbox(connection.store(notes.id)).backend == "local"
        assert mk.Sandbox(connection.store(notes.id), backend="docker").backend == "docker"


# -- threads and interrupts ------------------------------------------------------------------------


def test_cells_of_many_threads_run_one_after_another_and_all_is_saved(local: Sandbox, notes: mk.Store) -> None:
    code = (
        "import time\nbusy = globals().get('busy', 0) + 1\nassert busy == 1\n"
        "open('{0}/{1}', 'w').write('{1}')\ntime.sleep(0.02)\nbusy -= 1"
    )
    with ThreadPoolExecutor(8) as pool:
        cells = [pool.submit(local.run, code.format(MOUNT, number)) for number in range(24)]
    assert [cell.result().status for cell in cells] == ["ok"] * 24
    assert texts(notes) == {f"/{number}": str(number) for number in range(24)}


def test_a_cell_that_asks_the_sandbox_from_its_own_output_is_told(local: Sandbox) -> None:
    caught: list[BaseException] = []

    def ask(_: object) -> None:
        try:
            local.sync()
        except errors.SandboxError as error:
            caught.append(error)

    local.run("print('x')", on_output=ask, timeout_s=20)
    assert len(caught) <= 1  # from another thread it waits for its turn; from this one it is told
    assert all("busy" in str(error) for error in caught)


def test_a_quiet_sync_does_not_wait_for_a_cell(local: Sandbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(local.bash, "sleep 1")
        time.sleep(0.3)
        begun = time.monotonic()
        assert local.sync_quietly() is None
        assert time.monotonic() - begun < 0.2
        assert cell.result().status == "ok"
    assert local.sync_quietly() == SyncReport(local.sync_quietly().stores)  # pyright: ignore[reportOptionalMemberAccess]  # free now


def test_a_cell_interrupted_from_another_thread_is_written_back(box: Sandbox, notes: mk.Store) -> None:
    threading.Timer(0.7, box.interrupt).start()
    result = box.run(f"open('{MOUNT}/a.md', 'w').write('draft')\nimport time\ntime.sleep(30)")
    assert result.status == "interrupted"
    assert texts(notes) == {"/a.md": "draft"}


def test_a_keyboard_interrupt_in_a_cell_is_its_result(box: Sandbox, notes: mk.Store) -> None:
    timer = threading.Timer(0.7, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    timer.start()
    result = box.run(f"open('{MOUNT}/a.md', 'w').write('draft')\nimport time\ntime.sleep(30)")
    timer.join()
    assert result.status == "interrupted"
    assert texts(notes) == {"/a.md": "draft"}


# Between the making of a connection or listing and its `with` an interrupt leaves it to the collector, which closes it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_keyboard_interrupt_at_any_moment_loses_nothing(local: Sandbox, notes: mk.Store) -> None:
    wanted: dict[str, str] = {}
    for number in range(40):
        wanted |= {f"/{number}/{name}": f"{name}\n" for name in range(20)}
        script = f"mkdir -p {MOUNT}/{number}; cd {MOUNT}/{number}; for n in $(seq 0 19); do echo $n > $n; done"
        with _interrupted_after(0.002 + number * 0.001):
            local.bash(script)
        ran(local.bash(script))
    assert texts(notes) == wanted
    assert len(notes.log()) <= 2 * len(wanted)  # a file caught half-written is a version, too
    assert local.rejected == []


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Generator[None]:
    """A KeyboardInterrupt after this time, unless that is over before."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Between the making of a connection or listing and its `with` an interrupt leaves it to the collector, which closes it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_keyboard_interrupt_at_any_moment_of_the_start_leaves_nothing(notes: mk.Store, sandbox_home: Path) -> None:
    notes.write("/a.md", "kept")
    for number in range(16):
        box = mk.Sandbox(notes, backend="local")
        with _interrupted_after(0.01 + number * 0.03):
            box.start()
        box.stop()
        assert list(sandbox_home.glob("sessions/*")) == []
    open_now = notes.connection.database.sessions.list(statuses=["idle", "running"]).data
    assert open_now == []
    assert open_sandboxes() == []
    assert texts(notes) == {"/a.md": "kept"}


def test_a_stop_does_not_wait_for_an_interrupt_that_is_stuck(
    local: Sandbox, notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    monkeypatch.setattr(local._running().backend, "interrupt", never.wait)  # pyright: ignore[reportPrivateUsage]  # as behind a pipe that is full
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        cell = f"open('{MOUNT}/a.md', 'w').write('a')\nprint('begun', flush=True)\nimport time\ntime.sleep(60)"
        running = pool.submit(local.run, cell, on_output=lambda _: begun.set())
        assert begun.wait(20)
        local.stop()
        assert isinstance(running.exception(), errors.SandboxClosedError)
    never.set()
    assert texts(notes) == {"/a.md": "a"}


def test_a_stop_from_another_thread_ends_the_cell_and_saves_it(box: Sandbox, notes: mk.Store) -> None:
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(box.run, f"open('{MOUNT}/a.md', 'w').write('draft')\nimport time\ntime.sleep(60)")
        time.sleep(0.8)
        begun = time.monotonic()
        box.stop()
        assert time.monotonic() - begun < 10
        with contextlib.suppress(errors.SandboxError):
            assert cell.result(5).status in ("interrupted", "died")
    assert texts(notes) == {"/a.md": "draft"}


def test_two_sandboxes_on_one_store_save_all_of_both(notes: mk.Store, boxes: MakeBox) -> None:
    both = [boxes(notes, backend="local", name=name) for name in ("one", "two")]

    def work(box: Sandbox) -> None:
        for number in range(15):
            ran(box.bash(f"echo {number} > {MOUNT}/{box.name}-{number}.md"))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, both))
    assert texts(notes) == {f"/{name}-{number}.md": f"{number}\n" for name in ("one", "two") for number in range(15)}


# -- conflicts, and what was put aside -------------------------------------------------------------


def put_aside(box: Sandbox, notes: mk.Store, path: str, ours: str, theirs: str) -> None:
    """Let a cell write `ours` while somebody else writes `theirs`."""
    with pytest.raises(errors.SyncConflictError) as caught:
        box.bash(
            f"echo ready; sleep 0.3; printf '{ours}' > {MOUNT}{path}", on_output=lambda _: _written(notes, path, theirs)
        )
    assert caught.value.path == f"{MOUNT}{path}"
    assert caught.value.result.report is caught.value.report


def _written(notes: mk.Store, path: str, text: str) -> None:
    notes.write(path, text)


def test_conflicts_are_settled_as_the_person_says(local: Sandbox, notes: mk.Store) -> None:
    for path in ("/mine.md", "/theirs.md", "/both.md", "/bare"):
        notes.write(path, "base")
        put_aside(local, notes, path, "ours", "theirs")
    assert isinstance(local.rejected, Records)
    assert [change.path for change in local.rejected] == ["/mine.md", "/theirs.md", "/both.md", "/bare"]
    assert set(local.rejected.df().columns) >= {"id", "store", "path", "operation", "reason", "at"}
    assert local.resolve("/mine.md", "mine") == "/mine.md"
    assert local.resolve(f"{MOUNT}/theirs.md", "theirs") is None
    assert local.resolve("/both.md", "both", store="team-notes") == "/both.conflict.md"
    assert local.resolve("/bare", "both", store=notes) == "/bare.conflict"
    assert local.rejected == []
    wanted = {
        "/mine.md": "ours",
        "/theirs.md": "theirs",
        "/both.md": "theirs",
        "/both.conflict.md": "ours",
        "/bare": "theirs",
        "/bare.conflict": "ours",
    }
    assert texts(notes) == wanted
    assert ran(local.bash(f"cd {MOUNT}; for f in *; do echo $f $(cat $f); done")) == "".join(
        sorted(f"{path[1:]} {text}\n" for path, text in wanted.items())
    )
    with pytest.raises(errors.NotFoundError):
        local.resolve("/mine.md", "mine")


def test_settling_by_a_word_or_a_store_that_is_none(local: Sandbox, notes: mk.Store) -> None:
    notes.write("/a.md", "base")
    put_aside(local, notes, "/a.md", "ours", "theirs")
    with pytest.raises(errors.InvalidInputError, match="mine, theirs or both"):
        local.resolve("/a.md", "ours")  # pyright: ignore[reportArgumentType]  # what a person may well type
    with pytest.raises(errors.InvalidInputError, match="not mounted"):
        local.resolve("/a.md", "mine", store="other")
    assert len(local.rejected) == 1


def test_merging_saves_what_both_sides_changed(local: Sandbox, notes: mk.Store) -> None:
    notes.write("/a.md", "one\ntwo\nthree\n")
    result = local.bash(
        f"echo ready; sleep 0.3; sed -i s/three/THREE/ {MOUNT}/a.md; echo new > {MOUNT}/new.md",
        on_output=lambda _: _written(notes, "/a.md", "ONE\ntwo\nthree\n"),
        on_conflict="merge",
    )
    assert [version.path for version in of(result.report).merged] == ["/a.md"]
    assert texts(notes) == {"/a.md": "ONE\ntwo\nTHREE\n", "/new.md": "new\n"}


def test_a_reset_puts_edits_aside_and_shows_the_store(local: Sandbox, notes: mk.Store, sandbox_home: Path) -> None:
    notes.write("/a.md", "a")
    ran(local.bash("true"))
    (sandbox_home / "sessions" / local.id / "mnt/memory/team-notes/a.md").write_text("edit")
    local.reset("team-notes")
    assert ran(local.bash(f"cat {MOUNT}/a.md")) == "a"
    assert [change.content for change in local.rejected] == [b"edit"]
    assert len(notes.log()) == 1


def test_the_mounts_say_what_the_next_sync_would_do(local: Sandbox, notes: mk.Store, sandbox_home: Path) -> None:
    (sandbox_home / "sessions" / local.id / "mnt/memory/team-notes/a.md").write_text("a")
    notes.write("/b.md", "b")
    notes.write("/c.md", "c")
    (mount,) = local.mounts
    assert (mount.store, mount.local, mount.remote) == (notes, 1, 2)
    assert "team-notes" in repr(local.mounts)
    local.sync()
    (mount,) = local.mounts
    assert (mount.local, mount.remote) == (0, 0)


# -- stores and sessions that change under it ------------------------------------------------------


def test_a_store_archived_meanwhile_puts_the_texts_aside_and_the_next_cell_works(
    local: Sandbox, notes: mk.Store
) -> None:
    notes.write("/a.md", "a")
    with pytest.raises(errors.SyncConflictError) as caught:
        local.bash(f"echo ready; sleep 0.3; echo b > {MOUNT}/b.md", on_output=lambda _: notes.archive())
    assert "archived" in of(caught.value.report).conflicts[0].reason
    assert ran(local.bash(f"ls {MOUNT}")) == "a.md\n"
    assert [change.content for change in local.rejected] == [b"b\n"]


def test_a_store_in_use_is_not_dropped_and_after_the_end_it_is(local: Sandbox, notes: mk.Store) -> None:
    with pytest.raises(errors.StoreAttachedError):
        notes.drop()
    local.stop()
    notes.drop()


def _delete(sessions: Sessions, session_id: str) -> None:
    sessions.delete(session_id)


def _end(sessions: Sessions, session_id: str) -> None:
    sessions.update(session_id, status="terminated")


@pytest.mark.parametrize("end", [_delete, _end], ids=["deleted", "ended"])
def test_what_a_session_wrote_after_its_end_is_put_aside(
    local: Sandbox, notes: mk.Store, end: Callable[[Sessions, str], None], sandbox_home: Path
) -> None:
    sessions = notes.connection.database.sessions
    notes.write("/kept.md", "kept")
    with pytest.raises(errors.SyncError) as caught:
        local.bash(f"echo ready; sleep 0.3; echo b > {MOUNT}/b.md", on_output=lambda _: end(sessions, local.id))
    assert caught.value.result.status == "ok"
    with pytest.raises(errors.SyncError):
        local.stop()
    assert [(change.path, change.content) for change in local.rejected] == [("/b.md", b"b\n")]
    assert texts(notes) == {"/kept.md": "kept"}
    assert list((sandbox_home / "sessions").iterdir()) == []
    local.rejected[0].apply()
    assert texts(notes) == {"/kept.md": "kept", "/b.md": "b\n"}


# -- erasure ---------------------------------------------------------------------------------------


def test_a_redaction_reaches_the_texts_put_aside(local: Sandbox, notes: mk.Store, sandbox_home: Path) -> None:
    notes.write("/a.md", "base")
    notes.write("/other.md", "base of another")
    put_aside(local, notes, "/a.md", "secret", "theirs")
    put_aside(local, notes, "/other.md", "no secret", "theirs")
    notes.write("/a.md", "secret")
    notes.write("/a.md", "clean")
    notes.redact("/a.md", 3)
    assert [change.content for change in local.rejected] == [b"no secret"]
    assert not any(b"secret" in content for content in contents(sandbox_home / "sessions")), "no other copy"


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def test_dropping_a_store_erases_what_was_put_aside_of_it(local: Sandbox, notes: mk.Store, sandbox_home: Path) -> None:
    notes.write("/a.md", "base")
    put_aside(local, notes, "/a.md", "secret", "theirs")
    assert any(b"secret" in content for content in contents(sandbox_home / "rejected"))
    local.stop()
    notes.drop()
    assert contents(sandbox_home / "rejected") == []
