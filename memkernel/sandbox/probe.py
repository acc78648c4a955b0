"""Whether the sandbox sees the mounts as the host does, asked before any code of a person runs (faults 34, 39)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from memkernel.errors import MountError
from memkernel.sandbox.base import Mount
from memkernel.sandbox.channel import ExecChannel
from memkernel.sandbox.walls import Identity

PREFIX: Final = ".memkernel-probe-"
"""What a probe's files are called; they are gone when it ends, and never a memory."""

_LIMIT: Final = 1 << 20

_INSIDE: Final = r"""
import errno, json, os, sys

def name(error):
    return errno.errorcode.get(error.errno, str(error.errno))

def make(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)

def something(target):
    os.stat(target)
    return not os.path.isdir(target) or os.listdir(target)

def look(mount):
    try:
        if not mount["nonce"]:
            return {"read": "" if mount["empty"] or something(mount["target"]) else "EMPTY"}
        path = mount["target"] + "/" + mount["file"]
        with open(path) as file:
            if file.read() != mount["nonce"]:
                return {"read": "OTHER"}
    except OSError as error:
        return {"read": name(error)}
    try:
        make(path + "-gone", mount["nonce"])
        os.unlink(path + "-gone")
        make(path + "-in", mount["nonce"])
    except OSError as error:
        return {"read": "", "write": name(error)}
    return {"read": "", "write": ""}

print(json.dumps([look(mount) for mount in json.loads(sys.stdin.readline())]), flush=True)
"""


def check(execute: Callable[[Sequence[str]], ExecChannel], mounts: Sequence[Mount], who: Identity) -> None:
    """Read and write a nonce in each store's mount from both sides; look that a person's folders are not empty.

    Args:
        execute: runs a command in the sandbox.
        mounts: all of it.
        who: the sandbox's account; what it writes has to be the outer one's.

    Raises:
        MountError: the first mount that is not as it is here.
        SandboxError: the command could not be run.
    """
    if not mounts:
        return
    nonce = secrets.token_hex(8)
    with contextlib.ExitStack() as files:
        for mount in mounts:
            if mount.memory:
                files.enter_context(_nonce_file(mount, nonce, who))
        asked = [_question(mount, nonce) for mount in mounts]
        channel = execute(["python3", "-c", _INSIDE])
        with contextlib.closing(channel):
            channel.write(json.dumps(asked).encode() + b"\n")
            answer = channel.read_all(_LIMIT)
        for mount, seen in zip(mounts, _answers(answer, channel, mounts), strict=True):
            _judge(mount, seen, nonce, who)


def _question(mount: Mount, nonce: str) -> dict[str, Any]:
    empty = not mount.memory and mount.source.is_dir() and not any(mount.source.iterdir())
    return {"target": mount.target, "file": PREFIX + nonce, "nonce": nonce if mount.memory else "", "empty": empty}


def _answers(answer: bytes, channel: ExecChannel, mounts: Sequence[Mount]) -> list[Mapping[str, str]]:
    try:
        found: object = json.loads(answer)
    except ValueError:
        found = None
    answers = cast("list[object]", found) if isinstance(found, list) else []
    if len(answers) != len(mounts) or not all(isinstance(one, dict) for one in answers):
        said = " ".join(channel.stderr_tail.split())[-200:] or "nothing"
        raise MountError(mounts[0].target, f"the sandbox could not look at it; it said {said}")
    return cast("list[Mapping[str, str]]", answers)


@contextmanager
def _nonce_file(mount: Mount, nonce: str, who: Identity) -> Generator[None]:
    """The nonce in a file of the mount, readable for the sandbox; whatever has its name is gone afterwards."""
    try:
        folder = os.open(mount.source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise MountError(str(mount.source), f"it cannot be opened ({error.strerror})") from error
    name = PREFIX + nonce
    try:
        try:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            with os.fdopen(file, "w") as out:
                if os.geteuid() == 0:
                    os.fchown(file, *who.outside)
                out.write(nonce)
        except OSError as error:
            raise MountError(str(mount.source), f"it cannot be written to ({error.strerror})") from error
        yield
    finally:
        for left in (name, f"{name}-in", f"{name}-gone"):
            with contextlib.suppress(OSError):
                os.unlink(left, dir_fd=folder)
        os.close(folder)


_ELSEWHERE: Final = "An engine in a container or on another machine sees its own folders, not these."
_DENIED: Final = "SELinux, or an engine that maps users, can be why."


def _judge(mount: Mount, seen: Mapping[str, str], nonce: str, who: Identity) -> None:
    source = str(mount.source)
    read = seen.get("read", "ENODATA")
    if read in ("ENOENT", "OTHER", "EMPTY"):
        raise MountError(source, "the sandbox sees another folder in its place", hint=_ELSEWHERE)
    if read:
        raise MountError(source, f"the sandbox cannot read it ({read})", hint=_DENIED)
    if not mount.memory:
        return
    written = seen.get("write", "ENODATA")
    if mount.read_only:
        if written != "EROFS":
            raise MountError(source, "it should be read-only, and the sandbox does not see it so", hint=_DENIED)
        return
    if written:
        raise MountError(source, f"the sandbox cannot write to it ({written})", hint=_DENIED)
    _check_written(mount, nonce, who)


def _check_written(mount: Mount, nonce: str, who: Identity) -> None:
    try:
        found = (mount.source / f"{PREFIX}{nonce}-in").lstat()
    except OSError as error:
        raise MountError(str(mount.source), "what the sandbox writes does not arrive here", hint=_ELSEWHERE) from error
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (who.outside[0], os.geteuid()):
        raise MountError(str(mount.source), f"what the sandbox writes belongs to uid {found.st_uid}", hint=_DENIED)
