"""The local sandbox, on both levels: the same face as Docker's, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import InvalidInputError, MountError, SandboxClosedError, SandboxError
from memkernel.models import CellResult
from memkernel.sandbox import private_folder as private_folders
from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits
from memkernel.sandbox.driver import connection_info
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.local_place import Level, LocalPlace
from tests.cluster.people import Person
from tests.fix_local import LEVELS, SPEC

MakeLocal = Callable[..., LocalSandbox]
PATIENCE_S = 20.0


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    """Both are forced."""
    return request.param


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the stores' folders are: a read-write one, `notes`, and a read-only one, `book`."""
    memory = tmp_path / "data of $x & co" / "mnt" / "memory"
    for name in ("notes", "book"):
        (memory / name).mkdir(parents=True)
    (memory / "book" / "a.md").write_text("SI\n")
    return memory


@pytest.fixture
def make(data: Path, level: Level) -> Iterator[MakeLocal]:
    """Makes and starts sandboxes with these folders; their private folders must be gone at the end."""
    made: list[tuple[LocalSandbox, Path]] = []
    mounts = (Mount(data / "notes", "/mnt/memory/notes"), Mount(data / "book", "/mnt/memory/book", read_only=True))

    def start(**changes: Any) -> LocalSandbox:
        box = LocalSandbox(replace(SPEC, **{"mounts": mounts, **changes}), level=level)
        box.start()
        made.append((box, private_folder(box)))
        return box

    yield start
    for box, folder in made:
        box.stop()
        assert not folder.exists()
        assert processes_in(folder) == []


@pytest.fixture
def box(make: MakeLocal) -> LocalSandbox:
    """One of them."""
    return make()


def private_folder(box: LocalSandbox) -> Path:
    """Where its home and its temporary files are."""
    done = box.exec([sys.executable, "-c", "import os; print(os.path.dirname(os.environ['TMPDIR']))"])
    return Path(done.stdout.decode().strip())


def processes_in(folder: Path) -> list[int]:
    """The processes whose environment names the folder."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and os.fsencode(folder) in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def ok(result: CellResult) -> str:
    assert result.status == "ok", (result.stderr, result.error)
    return result.stdout


# -- paths -------------------------------------------------------------------------------------------


def test_python_and_bash_use_the_stores_by_the_paths_that_docker_has(box: LocalSandbox, data: Path) -> None:
    assert box.run("sorted(__import__('os').listdir('/mnt/memory'))").result == "['book', 'notes']"
    assert box.run("open('/mnt/memory/book/a.md').read()").result == "'SI\\n'"
    ok(box.run("name = 'b.md'\nwith open(f'/mnt/memory/notes/{name}', 'w') as file:\n    file.write('kg\\n')"))
    assert ok(box.run("!cat /mnt/memory/notes/b.md")).split() == ["kg"]
    assert ok(box.run("%%bash\ncat '/mnt/memory/notes/b.md'")) == "kg\n"
    assert (
        ok(box.bash('cd /mnt/memory && find . -type f | sort && cat "$PWD"/notes/b.md'))
        == "./book/a.md\n./notes/b.md\nkg\n"
    )
    ok(box.run("%%writefile /mnt/memory/notes/c.md\nabout /mnt/memory/notes/b.md"))
    assert (data / "notes" / "c.md").read_text() == "about /mnt/memory/notes/b.md\n"
    assert (data / "notes" / "b.md").stat().st_uid == box.owner[0] == os.geteuid()


def test_commands_get_their_arguments_and_their_folder_in_the_sandbox(box: LocalSandbox) -> None:
    assert box.exec(["cat", "/mnt/memory/book/a.md"]).stdout == b"SI\n"
    assert box.exec(["cat", "a.md"], cwd="/mnt/memory/book").stdout == b"SI\n"
    assert box.exec(["bash", "-c", "cat /mnt/memory/book/a.md"]).stdout == b"SI\n"
    assert box.exec(["pwd"]).stdout == b"/home/sandbox\n"
    assert b"/mnt/memory/book/none" in box.exec(["cat", "/mnt/memory/book/none"]).stderr


def test_what_is_shown_has_the_sandboxs_paths(box: LocalSandbox, data: Path) -> None:
    shown: list[Any] = []
    failed = box.run("import os\nprint(os.getcwd())\nopen('/mnt/memory/notes/none.md')", on_output=shown.append)
    everything = repr((failed, shown, box.bash("ls /mnt/memory/none; pwd; echo ~")))
    assert "/mnt/memory/notes/none.md" in everything
    assert "/home/sandbox" in everything
    assert str(data) not in everything
    assert str(private_folder(box)) not in everything.replace(str(private_folder(box) / "tmp"), "")


def test_a_traceback_names_the_line_and_shows_the_cell_as_it_was_typed(box: LocalSandbox) -> None:
    error = box.run("x = 1\n\ny = open('/mnt/memory/notes/none.md').read() + str(1 / 0)\n").error
    assert error is not None
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert error.ename == "FileNotFoundError"
    assert error.evalue == "[Errno 2] No such file or directory: '/mnt/memory/notes/none.md'"
    assert "----> 3 y = open('/mnt/memory/notes/none.md').read() + str(1 / 0)" in text


def test_a_cell_that_no_tree_holds_does_not_end_the_mapping(box: LocalSandbox) -> None:
    box.run("(" * 90 + "1" + ")" * 90 + "\n" + "+".join("1" * 900))
    box.run("this is no python")
    assert box.run("open('/mnt/memory/book/a.md').read()").result == "'SI\\n'"
    box.restart()
    assert box.run("open('/mnt/memory/book/a.md').read()").result == "'SI\\n'"


def test_paths_are_mapped_for_tools_both_ways(box: LocalSandbox, data: Path, level: Level) -> None:
    real = "/mnt/memory/notes/x" if level == 1 else str(data / "notes" / "x")
    assert box.mapped("/mnt/memory/notes/x") == real
    assert box.unmapped(real) == "/mnt/memory/notes/x"
    assert box.mapped("/etc/passwd") == box.unmapped("/etc/passwd") == "/etc/passwd"


def test_a_read_only_store_is_read_only_or_said_not_to_be(box: LocalSandbox, data: Path, level: Level) -> None:
    result = box.run("open('/mnt/memory/book/a.md', 'w').write('x')")
    assert box.enforces_read_only == (level == 1)
    if level == 1:
        assert result.error is not None
        assert "Read-only file system" in result.error.evalue
        assert (data / "book" / "a.md").read_text() == "SI\n"
    else:
        assert result.status == "ok"


def test_a_folder_of_the_persons_is_seen_where_they_want_it(make: MakeLocal, data: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "x.csv").write_text("1,2\n")
    box = make(mounts=(Mount(data / "notes", "/mnt/memory/notes"), Mount(files, "/data", read_only=True, memory=False)))
    assert box.run("open('/data/x.csv').read()").result == "'1,2\\n'"
    assert ok(box.bash("cat /data/*.csv > /mnt/memory/notes/y; cat /mnt/memory/notes/y")) == "1,2\n"


def test_without_stores_there_is_an_empty_folder(make: MakeLocal) -> None:
    box = make(mounts=())
    assert box.run("import os; os.listdir('/mnt/memory')").result == "[]"
    assert not Path("/mnt/memory").exists()


def test_stores_that_lie_anywhere_are_together_in_the_sandbox(make: MakeLocal, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "files").mkdir(parents=True)
        (tmp_path / name / "files" / "x").write_text(name)
    box = make(mounts=tuple(Mount(tmp_path / name / "files", f"/mnt/memory/{name}") for name in ("one", "two")))
    code = "import os\n[open(f'/mnt/memory/{name}/x').read() for name in sorted(os.listdir('/mnt/memory'))]"
    assert box.run(code).result == "['one', 'two']"
    assert ok(box.bash("cd /mnt/memory; cat */x; ls /mnt/memory/one")) == "onetwox\n"


# -- home and environment ------------------------------------------------------------------------------


def test_it_has_a_home_of_its_own(box: LocalSandbox) -> None:
    own = Path.home()
    assert ok(box.run("import os, pathlib; print(os.getcwd(), pathlib.Path.home())")) == "/home/sandbox /home/sandbox\n"
    ok(box.run("open('x', 'w').write('here'); import tempfile; kept = tempfile.mkstemp()"))
    assert ok(box.bash("cat ~/x /home/sandbox/x; cd; pwd")) == "herehere/home/sandbox\n"
    assert not (own / "x").exists()
    assert list((private_folder(box) / "tmp").iterdir())
    assert private_folder(box).stat().st_mode & 0o777 == 0o700


SECRETS = {
    "MEMKERNEL_DSN": "postgresql://somebody:hunter2@db/x",
    "ANTHROPIC_API_KEY": "sk-hunter2",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "DATABASE_URL": "postgresql://hunter2@db/x",
    "PGPASSWORD": "hunter2",
    "JPY_API_TOKEN": "hunter2",
    "SSH_AUTH_SOCK": "/tmp/hunter2",
}


def test_no_secret_of_the_host_is_in_its_environment(make: MakeLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    box = make(environment={"MINE": "yes"})
    names = "import os; print(sorted(set(os.environ) - {'PATH', 'PYTHONPATH', 'LD_LIBRARY_PATH', 'TZ', 'VIRTUAL_ENV'}))"
    seen = ok(box.run(names)) + ok(box.bash("env")) + box.exec(["env"]).stdout.decode()
    assert "'MINE'" in seen
    assert "hunter2" not in seen
    assert not [name for name in SECRETS if name in seen]
    assert "CONNECTION" not in seen
    for pid in processes_in(private_folder(box)):
        assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_its_python_is_the_callers_also_by_name(box: LocalSandbox) -> None:
    assert box.run("import sys; sys.executable").result == repr(sys.executable)
    programs = "import sys, shutil; shutil.which('python3') or shutil.which('python')"
    assert Path(str(box.run(programs).result).strip("'")).parent == Path(sys.executable).parent
    assert ok(box.run("import pytest; print(pytest.__version__)")) == f"{pytest.__version__}\n"


# -- processes -----------------------------------------------------------------------------------------


DAEMON = "setsid sh -c '(sleep 1000 & sleep 1000) & sleep 1000' </dev/null >/dev/null 2>&1 & disown"


def test_nothing_outlives_a_stop(box: LocalSandbox) -> None:
    ok(box.bash(DAEMON))
    ok(box.run(f"import subprocess; subprocess.Popen(['sh', '-c', {DAEMON!r}], start_new_session=True)"))
    folder = private_folder(box)
    wait_until(lambda: len(processes_in(folder)) >= 6)
    box.stop()
    assert processes_in(folder) == []
    with pytest.raises(SandboxClosedError):
        box.run("1")


def test_a_helper_that_is_killed_takes_everything_with_it_and_the_next_cell_works(box: LocalSandbox) -> None:
    ok(box.bash(DAEMON))
    folder = private_folder(box)
    before = set(processes_in(folder))
    result = box.run("import os, signal; os.kill(os.getppid(), signal.SIGKILL); import time; time.sleep(60)")
    assert result.status == "died"
    wait_until(lambda: not before & set(processes_in(folder)))
    again = box.run("6 * 7")
    assert (again.result, again.status) == ("42", "ok")


@pytest.mark.parametrize("how", ["os._exit(3)", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"])
def test_a_kernel_that_dies_is_seen_at_once(box: LocalSandbox, how: str) -> None:
    began = time.monotonic()
    assert box.run(f"import os; {how}").status == "died"
    assert time.monotonic() - began < 3
    assert box.run("1 + 1").result == "2"


NOTEBOOK = """
import os, sys, time
from pathlib import Path
from memkernel.sandbox.driver import connection_info
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.base import SandboxSpec
if __name__ == "__main__":
    box = LocalSandbox(SandboxSpec("sesn_x", "tests"), level=int(sys.argv[1]))
    box.start()
    box.bash(sys.argv[2])
    if os.fork() == 0:  # a forked child does not hold the lease
        time.sleep(60)
        os._exit(0)
    done = box.exec([sys.executable, "-c", "import os; print(os.environ['TMPDIR'])"])
    print(done.stdout.decode().strip(), flush=True)
    box.run("import time; time.sleep(60)")
"""


def test_nothing_outlives_a_notebook_that_is_killed(level: Level, make: MakeLocal) -> None:
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK, str(level), DAEMON], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert notebook.stdout is not None
    with notebook.stdout:
        folder = Path(notebook.stdout.readline().strip()).parent
        wait_until(lambda: len(processes_in(folder)) >= 5)
        notebook.kill()
        notebook.wait()
        try:
            wait_until(lambda: not processes_in(folder))
            make()  # what was left on the disk goes with the next one's start
            assert not folder.exists()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(notebook.pid, 9)


def test_what_is_frozen_does_nothing_until_it_goes_on(box: LocalSandbox, data: Path) -> None:
    ok(box.bash("(while :; do echo >> /mnt/memory/notes/count; sleep 0.01; done) </dev/null >/dev/null 2>&1 & disown"))
    count = data / "notes" / "count"
    wait_until(count.exists)
    with box.frozen():
        size = count.stat().st_size
        time.sleep(0.3)
        assert count.stat().st_size == size
    wait_until(lambda: count.stat().st_size > size)


def test_a_restart_keeps_the_mounts_and_loses_the_state(box: LocalSandbox) -> None:
    ok(box.run("x = 1; open('/mnt/memory/notes/b.md', 'w').close()"))
    box.restart()
    assert box.run("x").status == "error"
    assert box.run("import os; os.listdir('/mnt/memory/notes')").result == "['b.md']"


def test_a_cell_is_interrupted_with_what_it_started(box: LocalSandbox) -> None:
    timer = threading.Timer(0.5, box.interrupt)
    timer.start()
    began = time.monotonic()
    assert box.run("import subprocess; subprocess.run(['sleep', '60'])").status == "interrupted"
    assert time.monotonic() - began < 5
    timer.join()


# -- limits --------------------------------------------------------------------------------------------


def test_a_cell_that_takes_too_much_memory_is_out_of_memory(make: MakeLocal) -> None:
    box = make(limits=SandboxLimits(memory_bytes=200 * MEBIBYTE))
    result = box.run("x = []\nwhile True: x.append(bytearray(10_000_000)); __import__('time').sleep(0.02)")
    assert result.status == "out_of_memory"
    assert box.run("1 + 1").result == "2"


def test_a_cell_that_took_too_much_answers_for_it_and_not_a_later_one(make: MakeLocal) -> None:
    box = make(limits=SandboxLimits(memory_bytes=200 * MEBIBYTE))
    for code in ("kept = bytearray(300_000_000)", "kept = bytearray(300_000_000); 1 / 0"):
        began = time.monotonic()
        result = box.run(code)
        assert time.monotonic() - began < 5
        assert result.status == ("error" if result.error else "out_of_memory")
        assert result.notes[-1] == "the kernel was killed: the memory limit was hit"
        assert box.run("1 + 1").result == "2"
        assert box.run("1 + 1").notes == ()


def test_a_child_that_takes_too_much_memory_is_killed_and_the_kernel_lives(make: MakeLocal) -> None:
    box = make(limits=SandboxLimits(memory_bytes=200 * MEBIBYTE))
    ok(box.run("kept = 1"))
    hungry = "x = bytearray(400_000_000); import time; time.sleep(60)"
    result = box.run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}], check=True)")
    assert result.status == "error"
    assert "the memory limit was hit" in " ".join(result.notes)
    assert box.run("kept").result == "1"


def test_too_many_processes_are_killed_and_the_kernel_lives(make: MakeLocal) -> None:
    box = make(limits=SandboxLimits(pids=40))
    ok(box.run("kept = 1"))
    result = box.bash("for i in $(seq 200); do sleep 100 & done; sleep 100")
    assert result.status in ("error", "died")
    assert "more than 40 processes: all but the kernel were killed" in result.notes
    assert box.run("kept").result == "1"
    assert len(processes_in(private_folder(box))) < 10


def test_a_file_cannot_be_larger_than_the_limit(make: MakeLocal) -> None:
    box = make(limits=SandboxLimits(file_bytes=100_000))
    result = box.run("open('/mnt/memory/notes/b.md', 'wb').write(bytes(200_000))")
    assert result.error is not None
    assert "File too large" in result.error.evalue


# -- data in and out -------------------------------------------------------------------------------------


def test_files_and_folders_are_copied_in_and_out(box: LocalSandbox, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "x.txt").write_text("x")
    (source / "link").symlink_to("/etc/passwd")
    assert box.put(source, "here") == ("link",)
    assert ok(box.bash("ls -A here; cat /home/sandbox/here/x.txt")) == "x.txt\nx"
    box.put(source / "x.txt", "/home/sandbox/y.txt")
    box.get("y.txt", tmp_path / "y.txt")
    box.get("/mnt/memory/book", tmp_path / "book")
    assert (tmp_path / "y.txt").read_text() == "x"
    assert (tmp_path / "book" / "a.md").read_text() == "SI\n"
    with pytest.raises(InvalidInputError, match="is not in the sandbox's home or /tmp"):
        box.put(source, "/mnt/memory/notes/x")
    with pytest.raises(InvalidInputError, match="nothing-there"):
        box.get("nothing-there", tmp_path / "z")


# -- what it says, and what it refuses -----------------------------------------------------------------


def test_it_says_that_it_isolates_nothing(level: Level) -> None:
    box = LocalSandbox(SPEC, level=level)
    assert "not isolated" in repr(box)
    assert "not isolated" in box.isolation
    assert ("where the code spells it out" in box.isolation) == (level == 2)
    assert box.kind == "local"


def test_without_a_wish_it_is_the_better_level_that_this_machine_has_also_before_its_folders_are_there(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "mnt" / "memory" / "notes"
    box = LocalSandbox(replace(SPEC, mounts=(Mount(folder, "/mnt/memory/notes", read_only=True),)))
    assert box.owner == (os.geteuid(), os.getegid())
    assert box.enforces_read_only == (LEVELS[0] == 1)
    folder.mkdir(parents=True)
    box.start()
    try:
        assert box.level == LEVELS[0]
        refused = "Read-only file system" in box.bash("echo x > /mnt/memory/notes/a.md").stderr
        assert refused == (LEVELS[0] == 1)
    finally:
        box.stop()


def test_packages_are_refused(level: Level) -> None:
    with pytest.raises(InvalidInputError, match="a local sandbox has what this Python has"):
        LocalSandbox(replace(SPEC, packages=("pandas",)), level=level).check()


def test_mounts_limits_and_variables_are_checked_as_dockers(level: Level, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(MountError, match="link"):
        LocalSandbox(replace(SPEC, mounts=(Mount(tmp_path / "link", "/mnt/memory/x"),)), level=level).check()
    with pytest.raises(InvalidInputError, match="memory=1 bytes is too low"):
        LocalSandbox(replace(SPEC, limits=SandboxLimits(memory_bytes=1)), level=level).check()
    with pytest.raises(InvalidInputError, match="A=B"):
        LocalSandbox(replace(SPEC, environment={"A=B": ""}), level=level).check()


def test_without_ipykernel_it_says_so(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    with pytest.raises(SandboxError, match="ipykernel is not installed for ") as caught:
        LocalSandbox(SPEC, level=level).start()
    assert "pip install ipykernel" in caught.value.hint


@pytest.mark.parametrize("asked", [0, *LEVELS])
def test_it_works_for_an_ordinary_user(ordinary_user: Person, open_ground: Path, asked: int) -> None:
    folder = open_ground / f"tour-{asked}"
    folder.mkdir(mode=0o700)
    ordinary_user.own(folder)
    tour = Path(__file__).with_name("local_tour.py").read_text()
    process = ordinary_user.start(
        "-c",
        tour,
        str(asked),
        folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        environment={"SECRET": "hunter2"},
    )
    said, errors = process.communicate(timeout=90)
    assert errors == ""
    uid, gid = ordinary_user.uid_or_own, os.getegid() if ordinary_user.gid is None else ordinary_user.gid
    level = asked or LEVELS[0]
    assert json.loads(said) == {
        "level": level,
        "uid": f"({uid}, {uid}, {gid})",
        "read": "'SI\\n'",
        "written": "ok",
        "refused": "error" if level == 1 else "ok",
        "bash": "/home/sandbox\nkg",
        "shell": f"SI\n{uid}",
        "kept": "write: /mnt/memory/book/b.md is inside read-only directory /mnt/memory/book",
        "host": "'root:'",
        "state": "True",
        "died": "died",
        "again": "42",
        "owner": [uid, uid, gid],
    }
    assert sorted(os.listdir(folder)) == ["mnt"]


def test_a_folder_that_went_away_is_named_and_nothing_is_left(
    level: Level, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = LocalPlace(replace(SPEC, mounts=(Mount(data / "gone", "/mnt/memory/gone"),)), level)
    if level == 1:
        with pytest.raises(SandboxError, match=r"the local sandbox cannot be started: .*/gone: No such file"):
            place.launch(connection_info())
    else:
        place.launch(connection_info())
    folder = place.folder
    assert folder.exists()
    place.remove()
    assert place.wait().exit_code is not None
    assert not folder.exists()
    assert processes_in(folder) == []


def test_what_a_killed_process_left_is_swept_and_what_lives_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, foreign = tmp_path / "mkl-left", tmp_path / "mkl-link"
    (left / "home" / "deep").mkdir(parents=True)
    foreign.symlink_to(Path(__file__).parent)
    living, lock = private_folders.make()
    other, other_lock = private_folders.make()
    assert not left.exists()
    assert living.exists()
    assert Path(__file__).exists()
    private_folders.let_go(lock)
    third, third_lock = private_folders.make()
    assert (living.exists(), other.exists(), third.exists()) == (False, True, True)
    private_folders.let_go(other_lock)
    private_folders.let_go(third_lock)


FORBIDDEN = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
ASK = """
import sys
from memkernel.errors import SandboxError
from memkernel.sandbox.driver import connection_info
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.base import SandboxSpec
if __name__ == "__main__":
    spec = SandboxSpec("sesn_x", "tests")
    box = LocalSandbox(spec)
    box.start()
    print(box.level, box.run("open('/mnt/memory/x', 'w').close(); 6 * 7").result)
    box.stop()
    try:
        LocalSandbox(spec, level=1).start()
    except SandboxError as error:
        print(error)
"""


def test_where_namespaces_are_forbidden_the_second_level_is_taken_and_the_first_refused() -> None:
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        FORBIDDEN,
        "sh",
        sys.executable,
        "-W",
        "error",
        "-c",
        ASK,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ("2 42\na local sandbox of level 1 cannot be made here: unshare: No space left on device\n")
    assert done.stderr == ""
