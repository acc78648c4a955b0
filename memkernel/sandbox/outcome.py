"""What an engine's answer means: pure, over the strings and numbers that engines were seen to send.

A failure of the engine is an error; whatever the code in the container did is an `Exit`.
"""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from memkernel.errors import (
    EngineError,
    ImageError,
    InvalidInputError,
    MemkernelError,
    MountError,
    SandboxClosedError,
)
from memkernel.sandbox.base import Exit

REMOVED: Final = "the sandbox's container was removed"
NO_PROGRAM: Final = "the image has no"

_Meaning = Callable[[re.Match[str]], MemkernelError]


def _engine(reason: str, hint: str = "") -> _Meaning:
    return lambda match: EngineError(match.expand(reason), hint=hint)


def _image(reason: str, hint: str = "") -> _Meaning:
    return lambda match: ImageError(match["image"], match.expand(reason), hint=hint)


def _mount(reason: str, hint: str = "") -> _Meaning:
    return lambda match: MountError(match["path"], reason, hint=hint)


def _invalid(reason: str, hint: str = "") -> _Meaning:
    return lambda match: InvalidInputError(match.expand(reason), hint=hint)


def _closed(reason: str) -> _Meaning:
    return lambda match: SandboxClosedError(reason)


_VERSIONS: Final = "Set DOCKER_API_VERSION to a version that both know, or unset it."
_NO_REGISTRY: Final = "Check the name and the network; an image that is there already needs neither."
_CGROUPS: Final = "Mount /sys/fs/cgroup and restart Docker."
_SHARED: Final = "Add its folder in Docker Desktop under Settings, Resources, File sharing."

_MEANINGS: Final[tuple[tuple[str, _Meaning], ...]] = (
    # -- what was asked for
    (
        r"client version (?P<client>[\d.]+) is too old. Minimum supported API version is (?P<server>[\d.]+)",
        _engine(r"this Docker engine needs API version \g<server> or newer, and \g<client> was asked for", _VERSIONS),
    ),
    (
        r"client version (?P<client>[\d.]+) is too new. Maximum supported API version is (?P<server>[\d.]+)",
        _engine(r"this Docker engine knows API versions up to \g<server>, and \g<client> was asked for", _VERSIONS),
    ),
    (
        r"network (?P<network>\S+) not found",
        _invalid(r"there is no Docker network \g<network>", "`docker network ls` lists them."),
    ),
    (
        r"[Rr]ange of CPUs is from (?P<least>[\d.]+) to (?P<most>[\d.]+)",
        _invalid(r"this Docker engine gives \g<least> to \g<most> CPUs"),
    ),
    (
        r"[Mm]inimum memory limit (?:allowed|can not be less than)\D*(?P<least>\d+ ?\w+)",
        _invalid(r"this Docker engine gives at least \g<least> of memory"),
    ),
    # -- the container
    (r"[Nn]o such container", _closed(REMOVED)),
    (r"[Nn]o such exec instance", _closed(REMOVED)),
    (r"[Cc]ontainer \S+ is not running", _closed("the sandbox's container has ended")),
    (r"[Cc]ontainer \S+ is paused", _engine("the sandbox is paused")),
    (r"removal of container \S+ is already in progress", _closed("the sandbox's container is being removed")),
    (r"container .*is marked for removal", _closed("the sandbox's container is being removed")),
    # -- the image
    (
        r"pull access denied for (?P<image>[^\s,]+)",
        _image("there is no such image, here or in its registry", _NO_REGISTRY),
    ),
    (r"manifest for (?P<image>\S+) not found", _image("its registry has no such tag", _NO_REGISTRY)),
    (
        r"[Nn]o such image: (?P<image>.+)",
        _image("it is not there", "`docker pull` fetches it, `docker images` lists what is there."),
    ),
    (r"returned a non-zero code: (?P<code>\d+)", _engine("a step of the build failed")),
    (r"invalid reference format", _engine("it is no name of an image", "One looks like python:3.12-slim.")),
    (
        r"toomanyrequests",
        _engine("the image's registry gives no more downloads for now", "Log in with `docker login`, or wait."),
    ),
    (
        r"no matching manifest for (?P<platform>\S+)",
        _engine(r"the image is not made for this machine (\g<platform>)"),
    ),
    (
        r"exec(?: failed)?: \"?(?P<program>[\w./-]+)\"?: (?:executable file not found|stat \S+: no such file)",
        _engine(rf"{NO_PROGRAM} \g<program>", "A sandbox's image needs python3 with ipykernel."),
    ),
    # -- the mounts
    (
        r"bind source path does not exist: (?P<path>.+)",
        _mount("the Docker engine does not find it", "An engine on another machine sees that machine's folders."),
    ),
    (
        r"[Mm]ounts denied:?\s*(?:The path )?(?P<path>/\S*)",
        _mount("Docker Desktop does not share it", _SHARED),
    ),
    (r"path (?P<path>\S+) is mounted on \S+ but it is not a shared", _mount("it is not a shared mount")),
    # -- the machine
    (
        r"no space left on device",
        _engine("the Docker engine's disk is full", "`docker system df` shows what fills it."),
    ),
    (
        r"cgroup mount ?(?:point|destination)|cgroup[s]? isn't mounted|cgroup mountpoint does not exist|[Nn]o cgroup",
        _engine("the Docker engine has no control groups", _CGROUPS),
    ),
    (
        r"dial tcp|no such host|TLS handshake timeout|i/o timeout|connection refused|x509:|[Cc]lient\.Timeout",
        _engine("the Docker engine cannot reach the image's registry", _NO_REGISTRY),
    ),
    (r"permission denied", _engine("the Docker engine was denied permission")),
)
_PATTERNS: Final = tuple((re.compile(pattern), meaning) for pattern, meaning in _MEANINGS)


def refusal(message: str, *, doing: str = "", image: str = "") -> MemkernelError:
    """The error that an engine's refusal is; one that is not known is an EngineError with the engine's own words.

    Args:
        message: the engine's.
        doing: what it was asked, after "refused to".
        image: where this is about an image: what else would be an EngineError is an ImageError of it.
    """
    found = _known(message)
    if found is None:
        line = " ".join(message.split())[:300] or "no reason given"
        found = EngineError(f"the Docker engine refused{f' to {doing}' if doing else ''}: {line}")
    return ImageError(image, str(found), hint=found.hint) if image and isinstance(found, EngineError) else found


def _known(message: str) -> MemkernelError | None:
    for pattern, meaning in _PATTERNS:
        if match := pattern.search(message):
            return meaning(match)
    return None


def is_name_taken(message: str) -> bool:
    """Whether a container could not be made only because another has its name (fault 41)."""
    return "is already in use by container" in message


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all that it wraps: requests and urllib3 keep the cause in `args`, `reason` or `__context__`."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        found = waiting.pop(0)
        if not isinstance(found, BaseException) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [*found.args, getattr(found, "reason", None), found.__cause__, found.__context__]


_TROUBLES: Final[Mapping[int, str]] = {
    errno.ENOENT: "there is no such socket",
    errno.ECONNREFUSED: "nothing listens there",
    errno.EACCES: "you may not connect to it (is your account in the group docker?)",
    errno.EPERM: "you may not connect to it",
    errno.ENOTSOCK: "it is no socket",
    errno.EHOSTUNREACH: "the host cannot be reached",
    errno.ENETUNREACH: "the network cannot be reached",
    errno.ENOTDIR: "there is no such socket",
    errno.ECONNRESET: "it hung up",
    errno.EPIPE: "it hung up",
}


def connection_trouble(error: BaseException) -> str:
    """Why an engine could not be spoken to, in a few words."""
    found = list(causes(error))
    for cause in found:
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({getattr(cause, 'verify_message', '') or getattr(cause, 'reason', '') or cause})"
        if isinstance(cause, TimeoutError) or "timed out" in str(cause).lower():
            return "it does not answer"
        if isinstance(cause, OSError) and cause.errno in _TROUBLES:
            return _TROUBLES[cause.errno]
        if "name or service not known" in str(cause).lower() or "name resolution" in str(cause).lower():
            return "there is no such host"
    names = {type(cause).__name__ for cause in found}
    if names & {"RemoteDisconnected", "IncompleteRead", "InvalidChunkLength", "BadStatusLine", "ChunkedEncodingError"}:
        return "it hung up"
    return " ".join(str(error).split())[:200] or type(error).__name__


_SIGNALS: Final[Mapping[int, str]] = {
    6: "it aborted (SIGABRT)",
    9: "it was killed (SIGKILL)",
    11: "it crashed (SIGSEGV)",
    15: "it was ended (SIGTERM)",
    31: "it made a forbidden system call (SIGSYS)",
}


def exit_of(state: Mapping[str, Any]) -> Exit:
    """How a container ended, from `State` of an inspection.

    `OOMKilled` is set also when only a child was killed for memory and the kernel ended otherwise later on:
    the kernel died of it only if it ended by SIGKILL.
    """
    if state.get("Status") in ("removing", "dead"):
        return Exit(None, removed=True, detail=REMOVED)
    code = state.get("ExitCode")
    exit_code = code if isinstance(code, int) else None
    out_of_memory = bool(state.get("OOMKilled")) and exit_code == 128 + 9
    if out_of_memory:
        return Exit(exit_code, out_of_memory=True, detail="it used more memory than the sandbox may")
    if reason := str(state.get("Error") or ""):
        return Exit(exit_code, detail=" ".join(reason.split())[:300])
    if exit_code is not None and exit_code > 128:
        return Exit(exit_code, detail=_SIGNALS.get(exit_code - 128, f"it was ended by signal {exit_code - 128}"))
    return Exit(exit_code, detail="it ended" if exit_code in (0, None) else f"it ended with exit code {exit_code}")
