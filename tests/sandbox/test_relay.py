"""The channel between the host and the helper: frames, the lease, and what a hostile end of it can do."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import SandboxError
from memkernel.sandbox import inside, kernel
from memkernel.sandbox.base import Channel, SandboxSpec
from memkernel.sandbox.inside import protocol
from memkernel.sandbox.inside.protocol import PIECE, frame
from memkernel.sandbox.relay import GARBAGE, SILENT, Relay, RelayClosedError, Tail
from tests.sandbox.places import HerePlace, HereSandbox, PipeChannel

SPEC = SandboxSpec("sesn_relay", "memkernel-tests")
REPOSITORY = Path(__file__).parents[2]


class Script(Channel):
    """A channel whose other end says what a test puts into it."""

    def __init__(self) -> None:
        self.says: SimpleQueue[bytes] = SimpleQueue()
        self.heard = bytearray()
        self.closed = False

    def read(self) -> bytes:
        return self.says.get()

    def write(self, data: bytes) -> None:
        if self.closed:
            raise BrokenPipeError
        self.heard += data

    def close(self) -> None:
        self.closed = True
        self.says.put(b"")


@contextmanager
def relayed() -> Generator[tuple[Script, Relay, SimpleQueue[str]]]:
    script, reasons = Script(), SimpleQueue[str]()
    relay = Relay(script, reasons.put)
    yield script, relay, reasons
    relay.close()


@contextmanager
def helped(*kernel: str) -> Generator[tuple[subprocess.Popen[bytes], Relay]]:
    """A real helper; with a command in the kernel's place."""
    process = subprocess.Popen(
        inside.helper_argv("/nowhere/k", sys.executable, kernel=list(kernel)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    relay = Relay(PipeChannel(process), lambda reason: None)
    try:
        yield process, relay
    finally:
        relay.close()
        process.wait(10)


def ignore(kind: int, payload: bytes) -> None:
    """What is said does not matter."""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def gone(*pids: int, within_s: float = 5) -> bool:
    deadline = time.monotonic() + within_s
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))


# -- frames ----------------------------------------------------------------------------------------


def test_frames_go_to_whoever_has_their_number() -> None:
    with relayed() as (script, relay, _):
        heard: SimpleQueue[bytes] = SimpleQueue()
        number = relay.stream("1", heard.put)
        data = frame(protocol.DATA, number, b"one") + frame(protocol.DATA, 99, b"nobody's") + frame(250, number, b"?")
        for at in range(0, len(data), 5):
            script.says.put(data[at : at + 5])
        script.says.put(frame(protocol.DATA, number, b"two"))
        assert (heard.get(timeout=5), heard.get(timeout=5)) == (b"one", b"two")


def test_a_handler_that_cannot_read_a_frame_costs_that_frame_only() -> None:
    with relayed() as (script, relay, _):
        heard: SimpleQueue[int] = SimpleQueue()
        number = relay.stream("1", lambda data: heard.put(int(data)))
        script.says.put(frame(protocol.DATA, number, b"x") + frame(protocol.DATA, number, b"5"))
        assert heard.get(timeout=5) == 5


@given(data=st.binary(max_size=300))
def test_no_bytes_break_the_relay(data: bytes) -> None:
    with relayed() as (script, relay, reasons):
        relay.stream("1", SimpleQueue[bytes]().put)
        if data:
            script.says.put(data)
        script.says.put(b"")
        assert reasons.get(timeout=5) in (GARBAGE, SILENT)


def test_a_frame_that_is_too_long_ends_the_relay_at_once() -> None:
    with relayed() as (script, relay, reasons):
        script.says.put(protocol.HEADER.pack(protocol.DATA, 1, PIECE + 1))
        assert reasons.get(timeout=5) == GARBAGE
        with pytest.raises(RelayClosedError):
            relay.interrupt()


def test_a_question_that_nobody_answers_has_an_end() -> None:
    with relayed() as (_, relay, __):
        assert relay.kill_since_mark(0.05) is None


def test_a_long_payload_is_cut_into_frames() -> None:
    data = os.urandom(3 * PIECE + 7)
    rest, found = frame(protocol.DATA, 5, data), b""
    while rest:
        kind, number, length = protocol.HEADER.unpack_from(rest)
        assert (kind, number) == (protocol.DATA, 5)
        assert length <= PIECE
        found += rest[9 : 9 + length]
        rest = rest[9 + length :]
    assert found == data


@given(pieces=st.lists(st.binary(max_size=20)), limit=st.integers(1, 30))
def test_a_tail_is_the_last_bytes(pieces: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for piece in pieces:
        tail.add(piece)
    whole = b"".join(pieces)
    assert tail.bytes() == whole[-limit:]
    assert tail.truncated == (len(whole) > limit)


# -- the helper ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(Path(inside.__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_what_runs_inside_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


def test_the_helper_says_nothing_before_the_host_does() -> None:
    """The engine's reply to an exec could swallow it."""
    process = subprocess.Popen(
        inside.helper_argv("/nowhere/k", sys.executable, kernel=["sleep", "60"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    time.sleep(0.5)
    assert process.stdout.read() is None
    process.communicate()


def test_the_lease_ends_with_all_that_runs() -> None:
    with helped("sh", "-c", "setsid sleep 61 & exec sleep 62") as (process, relay):
        said: SimpleQueue[bytes] = SimpleQueue()
        relay.command(
            ["sh", "-c", "setsid sh -c 'sleep 63; :' & echo $!; sleep 64"],
            cwd="/",
            environment={},
            timeout_s=None,
            handle=lambda kind, payload: said.put(payload),
        )
        said.get(timeout=5)
        listed = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        pids = [int(line.split()[0]) for line in listed.splitlines() if line.endswith(("61", "62", "63", "64"))]
        pids = [pid for pid in pids if "sleep" in Path(f"/proc/{pid}/cmdline").read_text()]
        assert len(pids) >= 4
    assert gone(*pids)
    assert process.returncode == 128 + signal.SIGKILL


def test_the_helper_ends_as_its_kernel_does() -> None:
    for script, code in (("exit 7", 7), ("kill -SEGV $$", 128 + signal.SIGSEGV), ("sleep 60 & exit 0", 0)):
        with helped("sh", "-c", script) as (process, _):
            assert process.wait(5) == code


def test_a_kernel_ends_with_its_helper(tmp_path: Path) -> None:
    with helped("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60") as (process, _):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.02)
        pid = int((tmp_path / "pid").read_text())
        process.kill()
        assert gone(pid)


def test_a_command_does_not_see_the_key() -> None:
    environment = {**os.environ, inside.CONNECTION: json.dumps({"key": "secret"})}
    process = subprocess.Popen(
        inside.helper_argv("/nowhere/k", sys.executable, kernel=["sleep", "60"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    said: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    relay = Relay(PipeChannel(process), lambda reason: None)
    relay.command(
        ["env"], cwd="/", environment={}, timeout_s=None, handle=lambda kind, payload: said.put((kind, payload))
    )
    heard = b""
    while (told := said.get(timeout=5))[0] != protocol.EXIT:
        heard += told[1]
    assert b"PATH=" in heard
    assert b"secret" not in heard
    relay.close()
    process.wait(5)


def test_a_host_that_does_not_read_costs_the_helper_no_memory() -> None:
    process = subprocess.Popen(
        inside.helper_argv("/nowhere/k", sys.executable, kernel=["sleep", "60"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    request: dict[str, object] = {
        "argv": ["head", "-c", "200000000", "/dev/zero"],
        "cwd": "/",
        "environment": {},
        "timeout_s": None,
    }
    process.stdin.write(frame(protocol.EXEC, 1, json.dumps(request).encode()))
    process.stdin.flush()
    time.sleep(1)
    resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert resident < 50_000_000
    assert process.stdout is not None
    taken = 0
    while taken < 200_000_000:
        taken += len(os.read(process.stdout.fileno(), 1 << 20))
    process.communicate()


def test_a_command_without_a_reader_of_its_input_does_not_stop_the_others() -> None:
    with helped("sleep", "60") as (_, relay):
        said: SimpleQueue[int] = SimpleQueue()
        relay.command(["sleep", "60"], stdin=b"x" * 5_000_000, cwd="/", environment={}, timeout_s=None, handle=ignore)
        relay.command(["true"], cwd="/", environment={}, timeout_s=None, handle=lambda kind, _: said.put(kind))
        assert said.get(timeout=5) == protocol.EXIT


# -- a place whose other end is not the helper -----------------------------------------------------


@pytest.mark.parametrize(
    "script", ["", "exit 3", "head -c 100000 /dev/urandom; sleep 60", "yes", "cat", "exec 1>&-; sleep 60"]
)
def test_a_place_without_a_helper_is_an_error_and_nothing_is_left(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "READY_S", 3.0)
    box = HereSandbox(SPEC, tmp_path)
    box.place = HerePlace(tmp_path, ["sh", "-c", script])
    began, threads = time.monotonic(), threading.active_count()
    with pytest.raises(SandboxError, match="kernel did not start"):
        box.start()
    assert time.monotonic() - began < 10
    assert box.status().state == "closed"
    assert threading.active_count() == threads


# -- the host's own end ----------------------------------------------------------------------------

HOST = """
import os, sys, time
from pathlib import Path
from memkernel.sandbox.base import SandboxSpec
from tests.sandbox.places import HereSandbox

box = HereSandbox(SandboxSpec("sesn_host", "memkernel-tests"), Path(sys.argv[1]))
box.start()
print(box.run("import os; os.getpid()").result, flush=True)
"""


@contextmanager
def host(tmp_path: Path, more: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A process with a sandbox, and its kernel's pid."""
    command = [sys.executable, "-W", "error", "-c", HOST + more, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def test_a_host_that_exits_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    with host(tmp_path, "") as (process, kernel):
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "")
        assert gone(kernel)


def test_a_host_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    with host(tmp_path, "box.run('import time; time.sleep(60)')") as (process, kernel):
        time.sleep(0.3)
        process.kill()
        assert gone(kernel, within_s=3)


def test_a_forked_child_of_a_killed_host_does_not_keep_the_kernel(tmp_path: Path) -> None:
    fork = "child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(60)"
    with host(tmp_path, fork) as (process, kernel):
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        assert gone(kernel, within_s=4)
        assert alive(child)
        os.kill(child, signal.SIGKILL)


def test_a_host_whose_cell_runs_on_exits_in_time(tmp_path: Path) -> None:
    more = (
        "import threading\nthreading.Thread(target=box.run, args=['import time; time.sleep(60)'], daemon=True).start()"
    )
    with host(tmp_path, more + "\ntime.sleep(0.3)") as (process, kernel):
        process.communicate(timeout=10)
        assert process.returncode == 0
        assert gone(kernel)
