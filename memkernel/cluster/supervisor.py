"""The process that owns the embedded PostgreSQL: one file of standard-library code, run by its path.

    python -I -S supervisor.py HOME/pg18          (its orders come as JSON on standard input)

It holds `server.lock` while it lives, is the postmaster's parent (so that a dead one is reaped, which process 1
of a container often does not do), starts it again after a crash, and stops it once nobody has held `clients.lock`
for `linger_s`. Kernels import the locks and the process checks from here, never the reverse. Every user pays for
its resident memory, so `typing`, `dataclasses` and `shutil` stay out of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

if sys.platform != "win32":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypedDict

    class Orders(TypedDict):
        """All that a supervisor needs to know; the kernel that starts it has decided and checked it."""

        binaries: str
        socket_file: str
        environment: dict[str, str]
        uid: int
        gid: int
        initdb_options: list[str]
        files: list[tuple[str, str, str]]  # name below the data directory, mode of open(), text
        sql: str
        server_options: list[str]
        linger_s: float
        log_start: int
        psutil_path: str | None


CLIENTS_LOCK, SERVER_LOCK, ERROR = "clients.lock", "server.lock", "error"
BUSY = 75  # the exit code that says: another supervisor is there
MAX_CRASHES, CRASH_WINDOW_S = 3, 60.0


class RefusalError(Exception):
    """PostgreSQL cannot run here; the message is what the kernels say."""


class StopAskedError(Exception):
    """Somebody asked for the end before the server was up."""


# -- locks: the operating system drops them when a process dies, however it dies ---------------------


def lock(path: str, operation: int, timeout_s: float = 0.0) -> int | None:
    """A file descriptor that holds the flock `operation`, or None if others held it for `timeout_s`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + timeout_s
    try:
        while not _try_lock(descriptor, operation):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.01)
    except BaseException:  # an interrupt must not leave a lock that nobody knows of
        os.close(descriptor)
        raise
    return descriptor


def _try_lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_supervised(directory: str) -> bool:
    """Whether a supervisor holds this directory's server.lock."""
    path = f"{directory}/{SERVER_LOCK}"
    if not os.path.exists(path):  # to look must not make it: the one who looks may be root
        return False
    # Shared, so that two kernels that look at the same moment do not take each other for a supervisor.
    held = lock(path, fcntl.LOCK_SH)
    if held is None:
        return True
    os.close(held)
    return False


# -- which process is which --------------------------------------------------------------------------


def command_line(pid: int) -> list[bytes]:
    """The arguments of a living process; [] for none, for a zombie and for one that cannot be looked at."""
    if pid < 1:
        return []
    return _from_proc(pid) if os.path.isdir("/proc/self") else _from_psutil(pid)


def _from_proc(pid: int) -> list[bytes]:
    # Not /proc/PID/cwd or exe: for another user's process they need CAP_SYS_PTRACE, which root lacks in Docker.
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [] if state in (b"Z", b"X") else file.read().split(b"\0")
    except (OSError, IndexError):
        return []


def _from_psutil(pid: int) -> list[bytes]:
    import psutil  # pyright: ignore[reportMissingModuleSource] # a dependency on macOS only

    try:
        process = psutil.Process(pid)
        return [] if process.status() == psutil.STATUS_ZOMBIE else [os.fsencode(part) for part in process.cmdline()]
    except psutil.Error:
        return []


def is_postmaster(pid: int, data: str) -> bool:
    """Whether this pid is a living postmaster on this data directory, not a zombie or a pid used anew."""
    program, *arguments = command_line(pid) or [b""]
    return os.path.basename(program) == b"postgres" and os.fsencode(data) in arguments


def read_pid_file(data: str) -> tuple[int, bool]:
    """(pid, ready) of postmaster.pid; pid is 0 where the file is missing, empty or garbage."""
    try:
        with open(f"{data}/postmaster.pid", errors="replace") as file:
            lines = file.read().splitlines()
        return int(lines[0]), len(lines) > 7 and lines[7].strip() == "ready"
    except (OSError, ValueError, IndexError):
        return 0, False


# -- the supervisor ----------------------------------------------------------------------------------


class Supervisor:
    """One data directory's keeper, from its first start to the moment that nobody needs it."""

    def __init__(self, directory: str, orders: Orders) -> None:
        self.directory, self.data, self.orders = directory, f"{directory}/data", orders
        self.postmaster, self.is_parent = 0, False
        self.crashes: list[float] = []
        self.stop_asked = False
        self._listen_to_signals()

    def run(self) -> None:
        """Make the cluster if there is none, serve, and come back once the server is down."""
        self._delete_leftovers()
        try:
            if not os.path.exists(f"{self.data}/PG_VERSION"):
                self._initialise()
            if not self._adopt():
                self._start()
            self._watch()
        finally:
            self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Remove what killed first starts left behind; nobody else works on it, for we hold server.lock."""
        names = [name for name in os.listdir(self.directory) if name.startswith("data.new-")]
        if names:
            os.waitpid(self._fork(lambda: _delete_trees(self.directory, names), as_account=False), 0)

    def _listen_to_signals(self) -> None:
        # They arrive through a pipe that can be waited for: macOS has no sigtimedwait.
        self.wake, writer = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        self.stop_asked |= number != signal.SIGCHLD

    def _wait(self, seconds: float) -> None:
        """Until the time is over, a child has ended, or somebody asks us to stop."""
        if select.select([self.wake], [], [], seconds)[0]:
            os.read(self.wake, 4096)

    def _fork(self, work: Callable[[], object], *, as_account: bool = True) -> int:
        """The pid of a child that does this work, in a session of its own."""
        pid = os.fork()
        if pid == 0:
            self._work_as_child(work, as_account)
        return pid

    def _work_as_child(self, work: Callable[[], object], as_account: bool) -> NoReturn:
        status = 126
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            os.chdir("/")
            if as_account and os.geteuid() != self.orders["uid"]:
                os.setgroups([])
                os.setgid(self.orders["gid"])
                os.setuid(self.orders["uid"])
            work()
            status = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        finally:
            os._exit(status)

    def _execute(self, program: str, *arguments: str) -> NoReturn:
        path = f"{self.orders['binaries']}/{program}"
        os.execve(path, [path, *arguments], self.orders["environment"])

    def _complete(self, what: str, work: Callable[[], object]) -> None:
        """Do this work in a child, to its end.

        Raises:
            RefusalError: it failed.
            StopAskedError: it was ended early, because somebody asked us to stop.
        """
        pid = self._fork(work)
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            self._wait(2.0)
            if self.stop_asked:  # the child leads a session, so initdb's helpers end with it
                with contextlib.suppress(ProcessLookupError, PermissionError):  # it may not have come as far as setsid
                    os.killpg(pid, signal.SIGTERM)
        code = os.waitstatus_to_exitcode(ended[1])
        if self.stop_asked:
            raise StopAskedError
        if code:
            raise RefusalError(f"{what} failed (exit code {code})")

    def _initialise(self) -> None:
        # All happens beside `data` and is renamed at the end, so that no kill leaves half of it.
        new = f"{self.directory}/data.new-{os.getpid()}"
        os.mkdir(new, 0o700)
        os.chown(new, self.orders["uid"], self.orders["gid"])
        self._complete("initdb", lambda: self._execute("initdb", "-D", new, *self.orders["initdb_options"]))
        self._complete("writing the settings", lambda: _write_files(new, self.orders["files"]))
        self._complete("making the database", lambda: self._run_sql(new))
        os.rename(new, self.data)
        _sync_directory(self.directory)

    def _run_sql(self, new: str) -> None:
        """Single-user mode: there is no moment at which a half-made server can be reached."""
        reader, writer = os.pipe()
        os.write(writer, self.orders["sql"].encode())
        os.close(writer)
        os.dup2(reader, 0)
        settings = ("-c", "log_min_messages=error", "-c", "exit_on_error=on")
        self._execute("postgres", "--single", "-D", new, *settings, "postgres")

    def _adopt(self) -> bool:
        """Take over a server whose supervisor was killed."""
        self.postmaster = read_pid_file(self.data)[0]
        return is_postmaster(self.postmaster, self.data)

    def _start(self) -> None:
        self._remove_stale_pid_files()
        self.postmaster = self._fork(lambda: self._execute("postgres", "-D", self.data, *self.orders["server_options"]))
        self.is_parent = True

    def _remove_stale_pid_files(self) -> None:
        # PostgreSQL takes a zombie, or whoever has the old pid now, for a living server. It is safe, for we hold
        # server.lock; and where a backend outlived its postmaster, the shared-memory interlock refuses all the same.
        if not is_postmaster(read_pid_file(self.data)[0], self.data):
            for stale in (f"{self.data}/postmaster.pid", f"{self.orders['socket_file']}.lock"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(stale)

    def _exit_code(self) -> int | None:
        """None while the postmaster lives, 0 after a clean end; an adopted one's crash is known by what it left."""
        if self.is_parent:
            ended, status = os.waitpid(self.postmaster, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if ended else None
        if is_postmaster(self.postmaster, self.data):
            return None
        return 1 if os.path.exists(f"{self.data}/postmaster.pid") else 0

    def _watch(self) -> None:
        """Until somebody stops the server, or asks us to, or nobody has used it for `linger_s`."""
        unused_since: float | None = None
        while not self.stop_asked:
            self._wait(self._patience_s())
            code = self._exit_code()
            if code == 0:
                return
            if code is not None:
                self._recover(code)
                continue
            claim = lock(f"{self.directory}/{CLIENTS_LOCK}", fcntl.LOCK_EX)
            if claim is None:
                unused_since = None
                continue
            unused_since = unused_since or time.monotonic()
            if time.monotonic() - unused_since >= self.orders["linger_s"]:
                break  # with the claim: whoever comes now waits until the server is down, and starts another
            os.close(claim)
        self._shut_down()

    def _patience_s(self) -> float:
        """How long to wait between two looks: no signal tells of the locks or of an adopted server."""
        longest = 2.0 if self.is_parent else 0.5
        return min(longest, max(0.1, self.orders["linger_s"] / 5))

    def _recover(self, code: int) -> None:
        now = time.monotonic()
        self.crashes = [moment for moment in self.crashes if now - moment < CRASH_WINDOW_S] + [now]
        if len(self.crashes) > MAX_CRASHES:
            raise RefusalError(f"PostgreSQL ended {len(self.crashes)} times within a minute (exit code {code})")
        time.sleep(0.2 * len(self.crashes))
        self._start()

    def _shut_down(self) -> None:
        """Fast shutdown; harder means only where that does not help."""
        for number, attempts in ((signal.SIGINT, 60), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            # Sent again each second: a signal that comes before a new postmaster's exec is lost.
            if any(self._ends_after(number) for _ in range(attempts)):
                return

    def _ends_after(self, number: signal.Signals) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.postmaster, number)
        deadline = time.monotonic() + 1.0
        while (code := self._exit_code()) is None and time.monotonic() < deadline:
            self._wait(0.05)
        return code is not None

    def write_error(self, message: str) -> None:
        """Tell the waiting kernels; by rename, so that none reads half of it."""
        path = f"{self.directory}/{ERROR}"
        with open(f"{path}.new", "w") as file:
            json.dump({"message": message, "log_start": self.orders["log_start"]}, file)
        os.replace(f"{path}.new", path)


def _delete_trees(directory: str, names: list[str]) -> None:
    import shutil  # in a child only: it weighs some megabytes

    for name in names:
        shutil.rmtree(f"{directory}/{name}", ignore_errors=True)


def _write_files(directory: str, files: list[tuple[str, str, str]]) -> None:
    for name, mode, text in files:
        with open(f"{directory}/{name}", mode, encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def main(directory: str) -> int:
    """Take the lock, go into the background, supervise; the caller's process ends once the lock is held, or BUSY."""
    orders: Orders = json.load(sys.stdin)
    held = lock(f"{directory}/{SERVER_LOCK}", fcntl.LOCK_EX, timeout_s=0.2)
    if held is None:
        return BUSY
    if os.fork():
        os._exit(0)
    os.ftruncate(held, 0)
    os.write(held, b"%d" % os.getpid())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.umask(0o077)
    sys.path += filter(None, [orders["psutil_path"]])
    supervisor = Supervisor(directory, orders)
    try:
        with contextlib.suppress(StopAskedError):
            supervisor.run()
    except RefusalError as error:
        supervisor.write_error(str(error))
    except BaseException as error:
        supervisor.write_error(f"{type(error).__name__}: {error}")
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
