"""Level 1 of the local sandbox: a process that sees the machine as it is, with further folders in it.

`enter` takes the process into a user and a mount namespace of its own. A folder that gets a new entry is covered by
a small tmpfs into which all that it holds is bound again; the sources are bound at their targets, read-only ones
remounted so that the kernel refuses every write (EROFS). A second user namespace then takes away the right to
change any of that; ids stay as they are. Nothing on the machine itself is made or changed, and all of it is gone
with the last process in it.

This file is also a program, which becomes another one in there (`launch_argv`): standard library only, no import of
a sibling. It works on file descriptors where a name could be another thing the next moment.

Needs Linux with unprivileged user namespaces, or root with CAP_SYS_ADMIN: most containers and some distributions
forbid both. See user_namespaces(7), mount_namespaces(7), pivot_root(2).
"""

from __future__ import annotations

import ctypes
import json
import os
import posixpath
import resource
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

FRESH = "/mnt/memory"
"""Always a new folder: where the machine has one, it is not seen."""

_CLONE_NEWNS, _CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV = 1, 2, 4
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 1 << 5, 1 << 12, 1 << 14, 1 << 19
_MNT_DETACH = 2
# What statvfs says of a mount, and the flag that keeps it so: a remount that drops one is refused in a user namespace.
_KEPT = {1: 1, 2: 2, 4: 4, 8: 8, 16: 16, 1 << 10: 1 << 10, 1 << 11: 1 << 11, 1 << 12: 1 << 21}
_ATIME, _MS_STRICTATIME = (1 << 10) | (1 << 12), 1 << 24
_TMPFS_OPTIONS = "size=4m,mode=0755"
_OLD_ROOT = ".memkernel-old-root"


@dataclass(frozen=True, slots=True)
class Bind:
    """`source`, a folder or file of the machine, to be seen at `target`; both absolute."""

    source: str
    target: str
    read_only: bool = False


def enter(binds: Sequence[Bind]) -> None:
    """Take this process, which must have one thread only, to where the binds are in place.

    Raises:
        OSError: it is not allowed here, or a bind cannot be made; the process is of no use afterwards.
    """
    if sys.platform != "linux":
        raise OSError(f"there are no mount namespaces on {sys.platform}")
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_SLAVE)
    covers = _Covers()
    targets = {bind: _resolved(bind.target) for bind in binds}
    folders = {holder for target in targets.values() if (holder := _existing(target)) != target}
    if "/" in folders:
        covers.root()
    sources = {bind: _opened(bind.source) for bind in binds}
    for folder in sorted(folders - {"/"}):
        covers.folder(folder)
    for bind in sorted(binds, key=lambda bind: targets[bind]):
        _bind(sources[bind], targets[bind], bind.read_only)
    covers.close()
    _unshare(_CLONE_NEWUSER)


# -- a program of its own ------------------------------------------------------------------------------


def launch_argv(
    python: str,
    source: str,
    *,
    told: int,
    binds: Sequence[Bind] | None,
    cwd: str,
    limits: Mapping[int, tuple[int, int]],
    argv: Sequence[str],
) -> list[str]:
    """The command that goes where the binds are in place (None: it stays where it is) and becomes `argv` there.

    Args:
        python: the interpreter.
        source: the text of this file.
        told: an inherited file descriptor to which one line is written where that fails; it is closed otherwise.
        binds: see `enter`.
        cwd: the working directory, as seen from there.
        limits: of the module `resource`: soft and hard; never above those in force.
        argv: an absolute program and its arguments; without any it only tries.
    """
    told_binds = None if binds is None else [asdict(bind) for bind in binds]
    orders = {"told": told, "binds": told_binds, "cwd": cwd, "limits": list(limits.items()), "argv": list(argv)}
    return [python, "-I", "-S", "-c", source, json.dumps(orders)]


def _launch(
    told: int,
    binds: list[dict[str, str]] | None,
    cwd: str,
    limits: list[tuple[int, tuple[int, int]]],
    argv: list[str],
) -> None:
    os.set_inheritable(told, False)
    try:
        if binds is not None:
            enter([Bind(**bind) for bind in binds])  # pyright: ignore[reportArgumentType] - made by asdict
        for kind, (soft, hard) in limits:
            _, ours = resource.getrlimit(kind)
            highest = hard if ours == resource.RLIM_INFINITY else min(hard, ours)
            resource.setrlimit(kind, (min(soft, highest), highest))
        os.chdir(cwd)
        if argv:
            os.execv(argv[0], argv)
    except (OSError, ValueError) as error:
        os.write(told, (getattr(error, "strerror", None) or str(error)).encode())


class _Covers:
    """The tmpfs that lie over folders of the machine, and how each is filled with what it hides."""

    def __init__(self) -> None:
        self._covered: list[str] = []

    def root(self) -> None:
        """A new root. The old one is on a folder of it until all is bound."""
        with os.scandir("/") as entries:
            stage = next(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        _mount("memkernel", stage, "tmpfs", _MS_NOSUID | _MS_NODEV, _TMPFS_OPTIONS)
        old = f"{stage}/{_OLD_ROOT}"
        os.mkdir(old, 0o700)
        _call("pivot_root", os.fsencode(stage), os.fsencode(old))
        os.chdir("/")
        os.mkdir("/proc", 0o755)
        _mount(f"/{_OLD_ROOT}/proc", "/proc", None, _MS_BIND | _MS_REC)  # first: descriptors are bound by it
        _fill("/", {name: fd for name, fd in _entries(f"/{_OLD_ROOT}") if name != "proc" or os.close(fd)})
        _call("umount2", os.fsencode(f"/{_OLD_ROOT}"), _MNT_DETACH)
        os.rmdir(f"/{_OLD_ROOT}")
        self._covered.append("/")

    def folder(self, folder: str) -> None:
        """Another folder; what is `FRESH` stays out."""
        entries = {name: fd for name, fd in _entries(folder) if posixpath.join(folder, name) != FRESH or os.close(fd)}
        _mount("memkernel", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, _TMPFS_OPTIONS)
        _fill(folder, entries)
        self._covered.append(folder)

    def close(self) -> None:
        """From now on nothing can be added to them, as in a container with a read-only root."""
        for folder in self._covered:
            _mount(None, folder, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


# -- paths ---------------------------------------------------------------------------------------------


def _resolved(target: str) -> str:
    """The target without a link in that part of it that exists; `FRESH` never exists."""
    if posixpath.commonpath([target, FRESH]) == FRESH:
        return posixpath.join(os.path.realpath("/mnt"), posixpath.relpath(target, "/mnt"))
    return os.path.realpath(target)


def _existing(target: str) -> str:
    """The target itself, or the deepest folder on the way to it that exists."""
    fresh = _resolved(FRESH)
    while target != "/" and (target == fresh or target.startswith(f"{fresh}/") or not os.path.lexists(target)):
        target = posixpath.dirname(target)
    return target


def _entries(folder: str) -> Iterator[tuple[str, int]]:
    """What a folder holds, each held by a descriptor that neither opens it nor mounts it (automounts)."""
    for name in os.listdir(folder):
        try:
            fd = os.open(f"{folder}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # it went away
            continue
        yield name, fd


# -- mounts --------------------------------------------------------------------------------------------


def _fill(folder: str, entries: dict[str, int]) -> None:
    for name, fd in entries.items():
        _show(fd, posixpath.join(folder, name))
        os.close(fd)


def _show(fd: int, path: str) -> None:
    """Make an entry visible again; one that cannot be bound (a broken network mount) is an empty one."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink("", dir_fd=fd), path)
        return
    _make(path, mode)
    try:
        _mount(f"/proc/self/fd/{fd}", path, None, _MS_BIND | _MS_REC)
    except OSError:
        return


def _opened(source: str) -> int:
    """The source, held by a descriptor that does not open it."""
    try:
        fd = os.open(source, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise OSError(error.errno, f"{source}: {error.strerror}") from None
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        raise OSError(f"{source} is a link")
    return fd


def _bind(fd: int, target: str, read_only: bool) -> None:
    mode = os.fstat(fd).st_mode
    if not os.path.lexists(target):
        os.makedirs(posixpath.dirname(target), exist_ok=True)
        _make(target, mode)
    _mount(f"/proc/self/fd/{fd}", target, None, _MS_BIND)
    if read_only:
        _mount(None, target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _flags(target))


def _make(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        os.mkdir(path, 0o755)
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


def _flags(path: str) -> int:
    """How the mount at a path is mounted."""
    said = os.statvfs(path).f_flag
    kept = sum(flag for bit, flag in _KEPT.items() if said & bit)
    return kept if said & _ATIME else kept | _MS_STRICTATIME


# -- the system's calls --------------------------------------------------------------------------------


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    try:
        _call("mount", *words[:3], ctypes.c_ulong(flags), words[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


def _unshare(flags: int) -> None:
    """Go to new namespaces with the same ids. A child that stays behind has the right to say which they are."""
    pid, gone_read, gone = os.getpid(), *os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gone)
        os._exit(0 if os.read(gone_read, 1) and _ids_are_kept(pid) else 1)
    try:
        _call("unshare", flags)
        os.write(gone, b"!")
    finally:
        os.close(gone_read)
        os.close(gone)
        _, status = os.waitpid(child, 0)
    if status != 0:
        raise PermissionError("the ids of a user namespace cannot be mapped here")


def _ids_are_kept(pid: int) -> bool:
    """Map every id of this namespace to itself, for another process; where that needs rights, the own ids only."""
    try:
        try:
            for kind in ("uid", "gid"):
                ranges = [line.split() for line in _read(f"/proc/self/{kind}_map").splitlines()]
                _write(f"/proc/{pid}/{kind}_map", "".join(f"{first} {first} {n}\n" for first, _, n in ranges))
        except PermissionError:
            _write(f"/proc/{pid}/setgroups", "deny")
            _write(f"/proc/{pid}/uid_map", f"{os.geteuid()} {os.geteuid()} 1")
            _write(f"/proc/{pid}/gid_map", f"{os.getegid()} {os.getegid()} 1")
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


if __name__ == "__main__":
    _launch(**json.loads(sys.argv[1]))
