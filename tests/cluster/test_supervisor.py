"""The supervisor's parts that need no server: locks, process checks, what it costs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memkernel.cluster import supervisor, trouble
from memkernel.cluster.environment import for_postgres, for_supervisor
from memkernel.cluster.places import Place
from memkernel.cluster.supervisor import command_line, is_postmaster, is_supervised, lock, read_pid_file
from tests.cluster.homes import wait_until

SUPERVISOR = Path(supervisor.__file__)


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held = lock(path, fcntl.LOCK_EX)
    assert held is not None
    assert lock(path, fcntl.LOCK_SH, timeout_s=0.05) is None
    os.close(held)
    first, second = lock(path, fcntl.LOCK_SH), lock(path, fcntl.LOCK_SH)
    assert first is not None
    assert second is not None
    os.close(first)
    os.close(second)


def test_to_look_for_a_supervisor_makes_nothing(tmp_path: Path) -> None:
    assert not is_supervised(str(tmp_path))
    assert not is_supervised(str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, False)),
        ("garbage\n", (0, False)),
        ("17\n/data\n", (17, False)),
        ("17\n/data\n1\n5432\n/run\n\n1 2\nstarting \n", (17, False)),
        ("17\n/data\n1\n5432\n/run\n\n1 2\nready   \n", (17, True)),
    ],
)
def test_a_pid_file_is_read_or_counts_as_none(tmp_path: Path, text: str, expected: tuple[int, bool]) -> None:
    (tmp_path / "postmaster.pid").write_text(text)
    assert read_pid_file(str(tmp_path)) == expected


def test_a_missing_pid_file_counts_as_none(tmp_path: Path) -> None:
    assert read_pid_file(str(tmp_path)) == (0, False)


@pytest.mark.parametrize("look", ["_from_proc", "_from_psutil"])
def test_a_process_is_known_by_its_arguments(look: str) -> None:
    """psutil is how it is done on macOS; it must see the same."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        wait_until(lambda: getattr(supervisor, look)(process.pid)[:2] == [b"sleep", b"600"])
        process.kill()
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            pass
        assert getattr(supervisor, look)(process.pid) == []  # a zombie
    finally:
        process.kill()
        process.wait()
    assert getattr(supervisor, look)(process.pid) == []


def test_no_pid_is_no_process() -> None:
    assert command_line(0) == command_line(-1) == []
    assert not is_postmaster(os.getpid(), "/data")


def test_the_supervisor_needs_the_standard_library_alone_and_little_of_it() -> None:
    code = f"import sys; exec(open({str(SUPERVISOR)!r}).read(), {{'__name__': 'x'}}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {"memkernel", "typing", "dataclasses", "shutil", "subprocess", "psutil"} & loaded


def test_servers_are_given_no_variable_of_the_users_but_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "LC_TIME", "LANG", "LANGUAGE", "TZ", "LD_PRELOAD", "LD_LIBRARY_PATH", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "x")
    assert set(for_postgres()) <= {"PATH", "HOME", "USER", "LOGNAME", "LC_ALL"}
    assert for_postgres()["LC_ALL"] == "C"
    assert set(for_supervisor()) - set(for_postgres()) == {"LD_LIBRARY_PATH"}


# -- what an error says ------------------------------------------------------------------------------

LOG = """\
2026-11-30 13:41:23.004 UTC [17487] LOG:  starting PostgreSQL 18.6 on x86_64
2026-11-30 13:41:23.020 UTC [17490] FATAL:  could not write to file "x": No space left on device
2026-11-30 13:41:23.020 UTC [17490] FATAL:  could not write to file "x": No space left on device
child process exited with exit code 1
initdb: removing contents of data directory "/x"
"""


def test_an_error_tells_the_lines_of_the_log_that_matter_each_once(tmp_path: Path) -> None:
    place = Place(tmp_path, 18)
    place.directory.mkdir()
    place.log.write_text("FATAL:  of another day\n" + LOG)
    error = trouble.start_error(place, "initdb failed (exit code 1)", log_start=len("FATAL:  of another day\n"))
    assert str(error).splitlines() == [
        "the embedded PostgreSQL did not start: initdb failed (exit code 1)",
        '  FATAL:  could not write to file "x": No space left on device',
    ]
    assert error.hint == "Free some space, or set MEMKERNEL_HOME to another disk."


def test_a_log_without_telling_lines_is_told_by_its_end() -> None:
    assert trouble.telling_lines("a\nb\n\nc\nd\n") == ["b", "c", "d"]
    assert trouble.telling_lines("") == []
