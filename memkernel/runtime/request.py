"""What a person asks a sandbox to be, checked before anything is made or started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal, cast, get_args

from memkernel.errors import InvalidInputError, MountError
from memkernel.models import AttachmentParams, ConflictPolicy, Settings
from memkernel.sandbox import walls
from memkernel.sandbox.base import Mount, SandboxLimits

BackendKind = Literal["docker", "local"]


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """A sandbox that could be: its values have been checked, its stores and its engine have not.

    Attributes:
        attachments: the stores, at most eight.
        title: the session's.
        level: of a local sandbox, 1 or 2; None is the best that this machine has.
        timeout_s: of each cell that brings none of its own; None is none.
        files: further folders and files of this machine, read-only.
    """

    attachments: tuple[AttachmentParams, ...]
    title: str
    backend: BackendKind = "docker"
    level: Literal[1, 2] | None = None
    image: str | None = None
    network: str = "none"
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    timeout_s: float | None = None
    on_conflict: ConflictPolicy = "error"
    files: tuple[Mount, ...] = ()
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def make_request(
    attachments: Sequence[AttachmentParams],
    settings: Settings,
    *,
    title: str,
    backend: str | None,
    level: int | None,
    image: str | None,
    network: str,
    memory: str | int,
    cpus: float,
    pids: int,
    timeout_s: float | None,
    on_conflict: str,
    files: Mapping[str, str | PathLike[str]] | None,
    packages: Sequence[str],
    environment: Mapping[str, str] | None,
) -> SandboxRequest:
    """Check what a person asked for.

    Raises:
        InvalidInputError: a value is none; too many stores.
        MountError: a file or folder of `files` is not there.
    """
    kind = _backend(backend, settings)
    most = settings.limits.stores_per_session
    if len(attachments) > most:
        raise InvalidInputError(f"{len(attachments)} stores are too many for one sandbox; the limit is {most}")
    if level is not None and (kind != "local" or level not in (1, 2)):
        raise InvalidInputError(f"level is {level!r}; it is 1 or 2, and only a local sandbox has one")
    if kind == "local" and (image is not None or packages or network != "none"):
        raise InvalidInputError(
            "a local sandbox has no image, packages or network of its own: it is this Python on this machine",
            hint='Leave them out, or use `backend="docker"`.',
        )
    if isinstance(packages, str) or not isinstance(packages, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]  # a notebook passes anything
        raise InvalidInputError(f"packages is {packages!r}; it is a list of requirements")
    for name, mapping in (("files", files or {}), ("environment", environment or {})):
        if not isinstance(mapping, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
            raise InvalidInputError(f"{name} is {mapping!r}; it is a dict")
    variables = environment or {}
    _check_texts("title", title)
    _check_texts("network", network)
    _check_texts("image", *([] if image is None else [image]))
    _check_texts("packages", *packages)
    _check_texts("environment", *variables, *variables.values())
    walls.check_network(network)
    walls.check_packages(packages)
    walls.check_environment(variables)
    return SandboxRequest(
        attachments=tuple(attachments),
        title=title,
        backend=kind,
        level=level,
        image=image or settings.sandbox_image,
        network=network,
        limits=_limits(memory, cpus, pids),
        timeout_s=walls.check_timeout(timeout_s),
        on_conflict=check_policy(on_conflict),
        files=tuple(_file(target, source) for target, source in (files or {}).items()),
        packages=tuple(packages),
        environment=dict(variables),
    )


def check_policy(policy: object) -> ConflictPolicy:
    """`error` or `merge` (Decision 16).

    Raises:
        InvalidInputError: it is neither.
    """
    if policy not in get_args(ConflictPolicy):
        raise InvalidInputError(f"on_conflict is {policy!r}; it is 'error' or 'merge'")
    return cast("ConflictPolicy", policy)


def _backend(backend: str | None, settings: Settings) -> BackendKind:
    if backend is None:
        return "local" if settings.demo else "docker"
    if backend not in get_args(BackendKind):
        raise InvalidInputError(f"backend is {backend!r}; it is 'docker' or 'local'")
    return cast("BackendKind", backend)


def _check_texts(name: str, *values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise InvalidInputError(f"{name}: {value!r} is no text")


def _limits(memory: str | int, cpus: float, pids: int) -> SandboxLimits:
    for name, value, kinds in (("cpus", cpus, (int, float)), ("pids", pids, (int,))):
        if isinstance(value, bool) or not isinstance(value, kinds):  # pyright: ignore[reportUnnecessaryIsInstance]  # a notebook passes anything
            raise InvalidInputError(f"{name}={value!r} is no number")
    limits = SandboxLimits(memory_bytes=walls.parse_bytes(memory), cpus=cpus, pids=pids)
    walls.check_limits(limits)
    return limits


def _file(target: str, source: str | PathLike[str]) -> Mount:
    _check_texts("files", target)
    if not isinstance(source, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
        raise InvalidInputError(f"files: {source!r} is no path")
    try:
        return Mount(Path(source).expanduser().resolve(strict=True), target, read_only=True, memory=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise MountError(str(source), reason or str(error)) from None
