"""A command that is spoken to line by line, beside a kernel on this machine."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from memkernel.errors import SandboxClosedError
from memkernel.sandbox import process
from memkernel.sandbox.base import Process
from tests.sandbox.places import HereSandbox, here

ECHO = ["cat"]


@pytest.fixture(scope="module")
def box() -> Iterator[HereSandbox]:
    sandbox = here()
    sandbox.start()
    yield sandbox
    sandbox.stop()


def speaking(box: HereSandbox, code: str) -> Process:
    return box.process([sys.executable, "-c", code])


def test_lines_go_in_and_come_out_whatever_pieces_they_come_in(box: HereSandbox) -> None:
    cat = box.process(ECHO)
    assert cat.alive
    cat.write(b"one\ntw")
    assert cat.read_line(30) == b"one"
    cat.write(b"o\n\n\xff\x00three\n")
    assert [cat.read_line(30) for _ in range(3)] == [b"two", b"", b"\xff\x00three"]
    cat.write(b"x" * 3_000_000 + b"\n")
    assert cat.read_line(30) == b"x" * 3_000_000
    cat.kill()
    assert not cat.alive


def test_a_line_that_does_not_come_is_a_time_out_and_may_still_come(box: HereSandbox) -> None:
    cat = box.process(ECHO)
    cat.write(b"half")
    with pytest.raises(TimeoutError):
        cat.read_line(0.1)
    assert cat.alive
    cat.write(b" and half\n")
    assert cat.read_line(30) == b"half and half"
    cat.kill()


def test_a_command_that_ends_or_cannot_be_started_has_no_line(box: HereSandbox) -> None:
    for argv in (["true"], ["no-such-program"], ["sh", "-c", "kill -9 $$"]):
        ended = box.process(argv)
        assert ended.read_line(30) == b""
        assert not ended.alive
        ended.write(b"nothing comes of it\n")
        assert ended.read_line(30) == b""
        ended.kill()


def test_what_it_said_before_its_end_is_read_first(box: HereSandbox) -> None:
    said = speaking(box, "print('one'); print('two')")
    assert [said.read_line(30) for _ in range(3)] == [b"one", b"two", b""]


def test_a_line_without_an_end_is_given_up(box: HereSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LINE_BYTES", 100_000)
    endless = speaking(box, "import sys\nwhile True: sys.stdout.write('x' * 1000)")
    assert endless.read_line(30) == b""
    assert not endless.alive
    endless.kill()
    assert box.run("1 + 1").result == "2"


def test_a_kill_from_another_thread_wakes_whoever_waits(box: HereSandbox) -> None:
    cat = box.process(ECHO)
    timer = threading.Timer(0.1, cat.kill)
    timer.start()
    assert cat.read_line(30) == b""
    timer.join()
    cat.kill()


@pytest.mark.parametrize("end", ["kill", "by itself"])
def test_what_it_started_ends_with_it_also_what_it_has_let_go_of(box: HereSandbox, end: str) -> None:
    """A daemon of its own, in a session of its own, whose parent is gone."""
    code = (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.close(1)\n"
        "        os.execlp('sleep', 'mk_daemon', '60')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('started', flush=True)\n"
        "sys.stdin.readline()"
    )
    started = speaking(box, code)
    assert started.read_line(30) == b"started"
    while not _daemons():
        time.sleep(0.01)
    if end == "kill":
        started.kill()
    else:
        started.write(b"enough\n")
        assert started.read_line(30) == b""
    assert _daemons() == []


def _daemons() -> list[int]:
    """The processes with the daemon's name."""
    found: list[int] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                is_one = words.read().startswith(b"mk_daemon\0")
        except OSError:
            continue
        if is_one:
            found.append(int(pid))
    return found


def test_with_its_kernel_it_ends_and_a_sandbox_that_is_stopped_says_so() -> None:
    sandbox = here()
    sandbox.start()
    cat = sandbox.process(ECHO)
    sandbox.restart()
    assert not cat.alive
    assert cat.read_line(30) == b""
    another = sandbox.process(ECHO)
    sandbox.stop()
    assert not another.alive
    with pytest.raises(SandboxClosedError):
        another.read_line(30)
    with pytest.raises(SandboxClosedError):
        sandbox.process(ECHO)
    another.kill()
