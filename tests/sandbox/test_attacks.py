"""Code that means harm, in a real container with the flags that people get (SANDBOX.md 6).

What the scanner meets is in tests/sync, what the protocol meets in test_kernel and test_relay.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memkernel.sandbox import walls
from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.container import ContainerPlace
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine
from tests.docker_daemon import INSTALLATION

SECRET = "postgresql://memkernel:secret@db.example/memories"
_numbers = itertools.count(os.getpid() * 1000)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, docker_engine: Engine) -> Path:
    """Folders of the sandbox's account: `rw` and `ro` are mounted as stores, `files` as a person's."""
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("attacks")))
    owner = walls.identity(docker_engine.info, (os.getuid(), os.getgid()), docker_engine.owner).outside
    for name in ("rw", "ro", "files"):
        (folder / name).mkdir()
        (folder / name / "text").write_text("as it was")
        if os.getuid() == 0:
            os.chown(folder / name, *owner)
            os.chown(folder / name / "text", *owner)
    (folder / "outside").write_text("of the host")
    return folder


def mounts(base: Path) -> tuple[Mount, ...]:
    return (
        Mount(base / "rw", "/mnt/memory/rw"),
        Mount(base / "ro", "/mnt/memory/ro", read_only=True),
        Mount(base / "files", "/data", read_only=True, memory=False),
    )


def spec(base: Path, image: str, **more: Any) -> SandboxSpec:
    return SandboxSpec(f"sesn_attack{next(_numbers)}", INSTALLATION, mounts=mounts(base), image=image, **more)


@pytest.fixture(scope="module")
def box(base: Path, docker_engine: Engine, sandbox_image: str) -> Iterator[DockerSandbox]:
    """A sandbox with the usual limits, started in an environment that holds secrets."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MEMKERNEL_DSN", SECRET)
        environment.setenv("ANTHROPIC_API_KEY", "sk-secret")
        sandbox = DockerSandbox(spec(base, sandbox_image), docker_engine)
        sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def small(base: Path, docker_engine: Engine, sandbox_image: str) -> Iterator[DockerSandbox]:
    """A sandbox of its own, with little of everything, for what wears one out."""
    limits = SandboxLimits(memory_bytes=160 * MEBIBYTE, pids=64, file_bytes=4 * MEBIBYTE, tmp_bytes=16 * MEBIBYTE)
    sandbox = DockerSandbox(spec(base, sandbox_image, limits=limits), docker_engine)
    sandbox.start()
    yield sandbox
    sandbox.stop()


def said(box: DockerSandbox, code: str) -> Any:
    """What the code prints as its last line of JSON."""
    result = box.run(f"import json, os\n{code}", timeout_s=60)
    assert result.status == "ok", result
    return json.loads(result.stdout.splitlines()[-1])


def alive(box: DockerSandbox) -> None:
    assert said(box, "print(1 + 1)") == 2


# -- a read-only mount is read-only -------------------------------------------------------------------------

TRIES = r"""
import ctypes, errno, mmap, shutil, subprocess, sys
def name(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    except subprocess.CalledProcessError:
        return "REFUSED"
    return "DONE"
libc = ctypes.CDLL(None, use_errno=True)
def system(call, *arguments):
    if getattr(libc, call)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), call)
def shared():
    with open(f"{target}/text", "r+b") as file:
        mmap.mmap(file.fileno(), 0)
def reopened():
    fd = os.open(f"{target}/text", os.O_RDONLY)
    os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
def through_root():
    open(f"/proc/1/root{target}/text", "w")
def unshared():
    inner = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-o", "remount,rw", target]
    subprocess.run(inner, check=True, capture_output=True)
def by_handle():
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + b"\0" * 8)
    if libc.open_by_handle_at(-100, handle, os.O_RDWR) < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")
REMOUNT, BIND, LAZY = 32, 4096, 2
tries = {
    "write": lambda: open(f"{target}/text", "w"),
    "append": lambda: open(f"{target}/text", "a"),
    "create": lambda: open(f"{target}/new", "x"),
    "delete": lambda: os.unlink(f"{target}/text"),
    "rename": lambda: os.rename(f"{target}/text", f"{target}/other"),
    "replace": lambda: os.replace("/mnt/memory/rw/text", f"{target}/text"),
    "mkdir": lambda: os.mkdir(f"{target}/folder"),
    "symlink": lambda: os.symlink("text", f"{target}/link"),
    "chmod": lambda: os.chmod(f"{target}/text", 0o777),
    "chmod of the root": lambda: os.chmod(target, 0o777),
    "chown": lambda: os.chown(f"{target}/text", os.getuid(), os.getgid()),
    "truncate": lambda: os.truncate(f"{target}/text", 0),
    "utime": lambda: os.utime(f"{target}/text"),
    "setxattr": lambda: os.setxattr(f"{target}/text", "user.a", b"b"),
    "mmap": shared,
    "hard link out": lambda: os.link(f"{target}/text", "/mnt/memory/rw/linked"),
    "hard link in": lambda: os.link("/mnt/memory/rw/text", f"{target}/linked"),
    "mknod": lambda: os.mknod(f"{target}/device", 0o20666, os.makedev(1, 11)),
    "/proc/self/fd": reopened,
    "/proc/1/root": through_root,
    "remount": lambda: system("mount", None, target.encode(), None, REMOUNT, None),
    "remount bind": lambda: system("mount", None, target.encode(), None, REMOUNT | BIND, None),
    "bind over": lambda: system("mount", b"/mnt/memory/rw", target.encode(), None, BIND, None),
    "umount": lambda: system("umount2", target.encode(), 0),
    "umount lazily": lambda: system("umount2", target.encode(), LAZY),
    "remove the mount": lambda: os.rmdir(target),
    "move the mount": lambda: os.rename(target, target + "x"),
    "user namespace": unshared,
    "handle": by_handle,
}
print(json.dumps({what: name(call) for what, call in tries.items()}))
"""


@pytest.mark.parametrize("target", ["/mnt/memory/ro", "/data"])
def test_nothing_changes_a_read_only_mount(box: DockerSandbox, base: Path, target: str) -> None:
    """F.244 at the wall: whatever is tried is refused, and the host's file is as it was."""
    found = said(box, f"target = {target!r}\n{TRIES}")
    assert {what for what, how in found.items() if how == "DONE"} == set()
    assert {found[what] for what in ("write", "append", "create", "delete", "mkdir", "truncate")} == {"EROFS"}
    folder = base / ("ro" if target.endswith("ro") else "files")
    assert [path.name for path in folder.iterdir()] == ["text"]
    assert (folder / "text").read_text() == "as it was"


@pytest.mark.as_root
def test_nothing_changes_a_read_only_mount_as_root_either(
    base: Path, docker_engine: Engine, sandbox_image: str
) -> None:
    """F.244: root in the container, which a sandbox never is on such an engine, is refused with EROFS, too."""
    who = walls.Identity((0, 0), (0, 0))
    mount = Mount(base / "ro", "/mnt/memory/ro", read_only=True)
    place = ContainerPlace(
        docker_engine,
        SandboxSpec(f"sesn_root{next(_numbers)}", INSTALLATION, mounts=(mount,)),
        sandbox_image,
        who,
        main=["sleep", "600"],
        helper=lambda prefix: ["cat"],
    )
    place.launch({"ip": "/tmp/k"})
    try:
        channel = place.execute(["python3", "-c", f"import json, os\ninput()\ntarget = '/mnt/memory/ro'\n{TRIES}"])
        channel.write(b"\n")
        found = json.loads(channel.read_all(1 << 20))
        channel.close()
    finally:
        place.remove()
    assert {what for what, how in found.items() if how == "DONE"} == set()
    assert found["write"] == found["create"] == "EROFS"
    assert (base / "ro" / "text").read_text() == "as it was"


@pytest.mark.as_root
def test_a_mount_below_a_read_only_store_is_not_there(
    base: Path, docker_engine: Engine, sandbox_image: str, tmp_path: Path
) -> None:
    """On Docker 20.10 it would be writable."""
    store = Path(os.path.realpath(tmp_path)) / "store"
    (store / "below").mkdir(parents=True)
    os.chown(store, 1000, 1000)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "tmpfs", store / "below"], check=True)
    mount = Mount(store, "/mnt/memory/s", read_only=True)
    sandbox = DockerSandbox(
        SandboxSpec(f"sesn_below{next(_numbers)}", INSTALLATION, mounts=(mount,), image=sandbox_image), docker_engine
    )
    try:
        sandbox.start()
        assert sandbox.bash("echo x > /mnt/memory/s/below/x").exit_code == 1
        assert list((store / "below").iterdir()) == []
    finally:
        sandbox.stop()
        subprocess.run(["umount", store / "below"], check=True)


def test_what_is_written_belongs_to_the_person_and_carries_no_power(box: DockerSandbox, base: Path) -> None:
    """Fault 34, and a setuid file is at most the sandbox's own account's."""
    box.run("import os; open('/mnt/memory/rw/tool', 'w').close(); os.chmod('/mnt/memory/rw/tool', 0o6777)")
    found = (base / "rw" / "tool").stat()
    assert (found.st_uid, found.st_gid) == box.owner
    assert found.st_uid != 0 or box.owner == (0, 0)
    (base / "rw" / "tool").unlink()


def test_no_device_can_be_made_in_a_store(box: DockerSandbox, base: Path) -> None:
    result = box.run("import os; os.mknod('/mnt/memory/rw/device', 0o20666, os.makedev(1, 11))")
    assert result.error is not None
    assert result.error.ename == "PermissionError"
    assert not (base / "rw" / "device").exists()


def test_a_link_out_of_a_store_leads_nowhere_near_the_host(box: DockerSandbox, base: Path) -> None:
    result = box.bash(f"ln -s {base}/outside /mnt/memory/rw/link; cat /mnt/memory/rw/link")
    assert result.status == "error"
    assert "of the host" not in result.stdout
    (base / "rw" / "link").unlink()


def test_nothing_but_tmp_home_shm_and_the_stores_can_be_written(box: DockerSandbox) -> None:
    code = r"""
def can(folder):
    try:
        os.unlink(os.open and (open(folder + "/probe-x", "x").name))
    except OSError:
        return False
    return True
folders = {line.split()[1] for line in open("/proc/mounts")}
folders |= {root for root, _, _ in os.walk("/") if not root.startswith(("/proc", "/sys"))}
print(json.dumps(sorted(folder for folder in folders if os.path.isdir(folder) and can(folder))))
"""
    writable = {folder for folder in said(box, code) if not folder.startswith(("/tmp/", "/home/sandbox/", "/proc/"))}
    assert writable == {"/tmp", "/home/sandbox", "/dev/shm", "/dev/mqueue", "/mnt/memory/rw"}


def test_nothing_that_is_written_there_can_be_executed(box: DockerSandbox) -> None:
    for folder in ("/tmp", "/home/sandbox", "/dev/shm"):
        result = box.bash(f"cp /bin/true {folder}/program; chmod +x {folder}/program; {folder}/program")
        assert "Permission denied" in result.stderr
        assert result.exit_code == 126


# -- powers ---------------------------------------------------------------------------------------------------


def test_there_are_no_capabilities_no_new_ones_and_system_calls_are_filtered(box: DockerSandbox) -> None:
    code = r"print(json.dumps([line.strip().split(':\t', 1) for line in open('/proc/self/status')]))"
    status = dict(said(box, code))
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_account_is_not_root_of_the_host(box: DockerSandbox, docker_engine: Engine) -> None:
    assert box.owner[0] != 0
    assert docker_engine.info.kind == "rootless" or said(box, "print(os.getuid())") == box.owner[0]


def test_the_first_process_cannot_be_killed(box: DockerSandbox) -> None:
    box.bash("kill -9 1")
    alive(box)


def test_no_device_of_the_machine_is_there(box: DockerSandbox) -> None:
    usual = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "fd", "core"}
    assert set(said(box, "print(json.dumps(os.listdir('/dev')))")) <= usual | {"stdin", "stdout", "stderr", "console"}


# -- limits: what is taken too much of stops, and the kernel lives ----------------------------------------------


def test_a_fork_bomb_stops_at_the_limit_and_the_kernel_lives(small: DockerSandbox) -> None:
    code = """
children = []
try:
    while True:
        child = os.fork()
        if child == 0:
            import time
            time.sleep(30)
            os._exit(0)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
print(len(children))
"""
    assert 0 < said(small, code) < 64
    alive(small)


def test_threads_stop_at_the_limit_and_the_kernel_lives(small: DockerSandbox) -> None:
    code = """
import threading
gate, started = threading.Event(), 0
try:
    while True:
        threading.Thread(target=gate.wait).start()
        started += 1
except RuntimeError:
    gate.set()
print(started)
"""
    assert 0 < said(small, code) < 64
    alive(small)


def test_open_files_stop_at_the_limit_and_the_kernel_lives(small: DockerSandbox) -> None:
    code = """
opened = []
try:
    while True:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    stopped = error.errno
for fd in opened:
    os.close(fd)
print(json.dumps([len(opened) < 1024, stopped]))
"""
    assert said(small, code) == [True, 24]
    alive(small)


@pytest.mark.parametrize("how", ["file.write(b'x' * (1 << 20))", "file.truncate(1 << 40); break"])
def test_a_file_stops_at_its_limit_also_a_sparse_one(small: DockerSandbox, base: Path, how: str) -> None:
    code = f"""
try:
    with open("/mnt/memory/rw/big", "wb") as file:
        while True:
            {how}
except OSError as error:
    print(error.errno)
"""
    assert said(small, code) == 27
    assert (base / "rw" / "big").stat().st_size <= 4 * MEBIBYTE
    (base / "rw" / "big").unlink()
    alive(small)


def test_a_full_tmp_is_full_and_the_kernel_lives(small: DockerSandbox) -> None:
    code = """
try:
    for number in range(1000):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(b"x" * (1 << 20))
except OSError as error:
    print(json.dumps([number <= 16, error.errno]))
"""
    assert said(small, code) == [True, 28]
    alive(small)


_PIDS_NOTE = "the limit of 64 processes was hit: no more of them could be started"


@pytest.mark.parametrize("caught", [True, False])
def test_the_limit_on_processes_is_named_where_it_was_hit(small: DockerSandbox, caught: bool) -> None:
    start = "    children.append(subprocess.Popen(['sleep', '60']))"
    loop = f"for _ in range(600):\n{start}"
    code = f"try:\n    for _ in range(600):\n    {start}\nexcept OSError: pass" if caught else loop
    result = small.run(f"import subprocess\nchildren = []\n{code}")
    assert result.status == ("ok" if caught else "error")
    assert result.notes == (_PIDS_NOTE,)
    after = small.run("for child in children: child.kill(); child.wait()")
    assert (after.status, after.notes) == ("ok", ())


def test_the_limit_on_processes_is_named_after_a_script_too(small: DockerSandbox) -> None:
    result = small.bash("for n in $(seq 200); do sleep 60 & done", timeout_s=5)
    assert result.status in ("error", "timeout")
    assert result.notes == (_PIDS_NOTE,)


def test_a_child_that_takes_all_memory_is_killed_and_the_kernel_lives(small: DockerSandbox) -> None:
    code = "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'bytearray(400 << 20)']).returncode)"
    assert said(small, code) == -9
    alive(small)


def test_a_kernel_that_takes_all_memory_is_out_of_memory_and_the_next_cell_works(small: DockerSandbox) -> None:
    assert small.run("bytearray(400 << 20)").status == "out_of_memory"
    alive(small)


def test_a_flood_of_the_kernels_own_stderr_leaves_a_small_log(small: DockerSandbox, docker_engine: Engine) -> None:
    result = small.run("import os\nfor _ in range(3000): os.write(2, b'x' * 1000 + b'\\n')")
    assert result.status == "ok"
    assert len(small.logs()) < MEBIBYTE
    place = small._container  # pyright: ignore[reportPrivateUsage]  # its log file on the engine's disk
    assert place
    assert place.container_id
    path = Path(docker_engine.inspect(place.container_id)["LogPath"])
    if os.getuid() == 0 and path.exists():
        assert sum(one.stat().st_size for one in path.parent.glob("*.log*")) < 2 * MEBIBYTE


def test_no_escape_sequence_leaves_by_the_log_or_by_a_name(small: DockerSandbox, tmp_path: Path) -> None:
    sequence = "\x1b]52;c;eA==\x07"
    assert (
        small.bash(f"printf '%s\\n' '{sequence}' > /proc/1/fd/2; mkdir ~/d; ln -s x ~/d/$'{sequence}\n'").status == "ok"
    )
    assert "52;c" in small.logs()
    assert "\x1b" not in small.logs()
    [name] = small.get("d", tmp_path / "d")
    assert name.isprintable()


def test_a_spinning_child_does_not_keep_the_sandbox_from_ending(small: DockerSandbox) -> None:
    small.bash("(trap '' TERM INT HUP; while :; do :; done) >/dev/null 2>&1 &")
    began = time.monotonic()
    small.stop()
    assert time.monotonic() - began < 5


# -- network and secrets ------------------------------------------------------------------------------------------


def test_no_address_is_reached_and_no_name_is_found(box: DockerSandbox) -> None:
    code = r"""
import socket
def reach(host, port):
    try:
        with socket.create_connection((host, port), 2):
            return "REACHED"
    except OSError as error:
        return type(error).__name__
hosts = ["1.1.1.1", "169.254.169.254", "172.17.0.1", "2606:4700:4700::1111", "example.org", "host.docker.internal"]
interfaces = [name for _, name in socket.if_nameindex()]
print(json.dumps([[reach(host, port) for host in hosts for port in (53, 80, 443)], interfaces]))
"""
    reached, interfaces = said(box, code)
    assert "REACHED" not in reached
    assert interfaces[0] == "lo"
    assert not [name for name in interfaces if name.startswith(("eth", "docker", "veth"))]


def test_no_abstract_socket_of_the_host_is_seen(box: DockerSandbox) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0memkernel-tests-abstract")
        listening.listen()
        code = r"""
import socket
with socket.socket(socket.AF_UNIX) as trial:
    print(trial.connect_ex("\0memkernel-tests-abstract"))
"""
        assert said(box, code) == 111


def test_nothing_of_the_hosts_environment_is_in_there(box: DockerSandbox) -> None:
    """F.278 at the wall."""
    variables = said(box, "print(json.dumps(dict(os.environ)))")
    assert {"MEMKERNEL_DSN", "ANTHROPIC_API_KEY", "DOCKER_HOST"}.isdisjoint(variables)
    assert "secret" not in json.dumps(variables)
    everywhere = box.bash("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'").stdout
    assert "secret" not in everywhere


def test_the_databases_address_is_nowhere_in_what_the_engine_knows(box: DockerSandbox, docker_engine: Engine) -> None:
    place = box._container  # pyright: ignore[reportPrivateUsage]  # what `docker inspect` shows of it
    assert place
    assert place.container_id
    known = json.dumps(docker_engine.inspect(place.container_id))
    assert "secret" not in known
    assert SECRET not in box.logs()


def test_the_engines_socket_is_not_there(box: DockerSandbox) -> None:
    code = r"""
import stat
found = []
for root, folders, names in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/tmp")):
        folders.clear()
        continue
    found += [f"{root}/{name}" for name in names if stat.S_ISSOCK(os.lstat(f"{root}/{name}").st_mode)]
print(json.dumps(found))
"""
    assert said(box, code) == []


def test_the_hosts_processes_are_not_seen(box: DockerSandbox) -> None:
    numbers = [int(name) for name in said(box, "print(json.dumps([n for n in os.listdir('/proc') if n.isdecimal()]))")]
    assert len(numbers) < 20


# -- two sandboxes ---------------------------------------------------------------------------------------------------


def test_two_sandboxes_share_a_store_and_nothing_else(
    box: DockerSandbox, base: Path, docker_engine: Engine, sandbox_image: str
) -> None:
    other = DockerSandbox(spec(base, sandbox_image), docker_engine)
    other.start()
    try:
        box.bash(
            "echo shared > /mnt/memory/rw/shared; echo mine > /tmp/mine; echo mine > /dev/shm/mine; echo mine > ~/mine"
        )
        assert other.bash("cat /mnt/memory/rw/shared").stdout == "shared\n"
        assert other.bash("ls /tmp/mine /dev/shm/mine ~/mine").status == "error"
    finally:
        other.stop()
        (base / "rw" / "shared").unlink()
