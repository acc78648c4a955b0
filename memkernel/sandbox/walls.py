"""The walls of a container: from a SandboxSpec to the body of the create call (SANDBOX.md 4)."""

from __future__ import annotations

import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final

from memkernel.errors import EngineError, InvalidInputError, MountError
from memkernel.paths import MOUNT_ROOT
from memkernel.sandbox.base import HOME, MEBIBYTE, Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.engine import EngineInfo
from memkernel.sandbox.inside import CONNECTION

LABEL_SESSION: Final = "org.memkernel.session"
LABEL_INSTALLATION: Final = "org.memkernel.installation"
LABEL_LOOK: Final = "org.memkernel.look"
"""On a container that only looks at an image: when it was made, in Unix time."""
MEMORY: Final = PurePosixPath(MOUNT_ROOT)
_MOST_BYTES: Final = 1 << 50
_MOST_PIDS: Final = 4_194_304  # the kernel's own limit
_UNPRIVILEGED: Final = 1000
_SYSTEM_TARGETS: Final = frozenset(
    {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root", "/run", "/sbin"}
    | {"/sys", "/tmp", "/usr", "/var"}
)
_MACHINERY: Final = ("/dev", "/proc", "/run", "/sys", "/var/run")
"""Devices, processes with their memory and environment, the sockets of services: a read-only mount is no wall there."""

_KERNELS: Final = frozenset(
    {"bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "mqueue", "nsfs", "proc", "securityfs"}
    | {"sysfs", "tracefs"}
)
_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?")
_NETWORK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_VARIABLES: Final = frozenset(
    {CONNECTION, "HOME", "IPYTHONDIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME"}
)
_REQUIREMENT: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._, -]*\])?"
    r"(?: ?(?:===|~=|==|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+(?: ?, ?(?=[~=!<>])|$)?)*"
)
_SIZE: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


# -- what a person may ask for ----------------------------------------------------------------------


def parse_bytes(text: str | int, name: str = "memory") -> int:
    """A size in bytes: `512m`, `1.5 GiB`, `65536`.

    Raises:
        InvalidInputError: it is none.
    """
    match = _SIZE.fullmatch(str(text).strip())
    if not match:
        raise InvalidInputError(f"{name}={text!r} is no size", hint="A size looks like 512m or 2g.")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def check_timeout(timeout_s: object) -> float | None:
    """A number of seconds above 0, or None.

    Raises:
        InvalidInputError: it is neither.
    """
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < float("inf"):
        raise InvalidInputError(
            f"timeout_s is {timeout_s!r}; it is a number of seconds above 0", hint="Leave it out to wait for ever."
        )
    return float(timeout_s)


def check_limits(limits: SandboxLimits) -> None:
    """Refuse limits under which no kernel starts, or that no engine can count.

    Raises:
        InvalidInputError: one of them is none, too low or too high.
    """
    if not math.isfinite(limits.cpus) or limits.cpus < 0.01:
        raise InvalidInputError(f"cpus={limits.cpus} is not a number of CPUs of 0.01 or more")
    least = {"memory_bytes": 64 * MEBIBYTE, "pids": 16, "file_bytes": 1, "tmp_bytes": MEBIBYTE, "home_bytes": MEBIBYTE}
    for name, lowest in least.items():
        value, highest = getattr(limits, name), _MOST_PIDS if name == "pids" else _MOST_BYTES
        option, words = name.removesuffix("_bytes"), str if name == "pids" else _size
        hint = f"The default is {words(getattr(SandboxLimits(), name))}."
        if value < lowest:
            raise InvalidInputError(f"{option}={words(value)} is too low: a kernel needs {words(lowest)}", hint=hint)
        if value > highest:
            raise InvalidInputError(f"{option}={words(value)} is too high: the most is {words(highest)}", hint=hint)


def _size(count: int) -> str:
    """A number of bytes as a person would ask for it: `512m`."""
    unit = next((unit for unit in ("t", "g", "m", "k") if count and count % _UNITS[unit] == 0), "")
    return f"{count // _UNITS[unit]:,}{unit or ' bytes'}"


def check_network(network: str) -> None:
    """Refuse what is no network, or would be somebody else's (Decision 4).

    Raises:
        InvalidInputError: `host`, `container:…`, or no name of a network.
    """
    if network == "host" or network.partition(":")[0] in ("container", "ns"):
        raise InvalidInputError(
            f"network {network!r} would put the sandbox into a network that is not its own",
            hint="Use none, bridge, or the name of a Docker network.",
        )
    if not _NETWORK.fullmatch(network):
        raise InvalidInputError(f"{network!r} is no network", hint="Use none, bridge, or the name of a Docker network.")


def check_packages(packages: Sequence[str]) -> None:
    """Refuse what is no plain requirement: pip's options, paths and addresses are none.

    Raises:
        InvalidInputError: one of them.
    """
    for package in packages:
        if not _REQUIREMENT.fullmatch(package):
            raise InvalidInputError(
                f"{package!r} is no package", hint='A package looks like "pandas" or "pandas>=2.2,<3".'
            )


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse variables that cannot be set.

    Raises:
        InvalidInputError: a name or a value that is none, or a variable that the kernel's own start needs.
    """
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise InvalidInputError(f"{name!r} cannot be a variable of the sandbox")
        if name in _OWN_VARIABLES:
            raise InvalidInputError(f"the variable {name} is the sandbox's own", hint="Set it in a cell: os.environ.")


# -- who the sandbox is -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identity:
    """A uid and gid in the container, and the same account as the host sees it."""

    inside: tuple[int, int]
    outside: tuple[int, int]


def identity(info: EngineInfo, account: tuple[int, int], engine_owner: tuple[int, int] | None = None) -> Identity:
    """Who runs in the container, so that files of the mounts are the account's own on both sides.

    Args:
        info: the engine's.
        account: the caller's uid and gid.
        engine_owner: who owns the engine's socket; a rootless engine is that account.

    Raises:
        EngineError: the engine maps users, and a mount would belong to nobody (Decision 4).
    """
    if info.kind == "remapped":
        raise EngineError(
            "the Docker engine maps users (userns-remap), so a sandbox could not use the folders of this account",
            hint="Use an engine without userns-remap, a rootless one, or `--backend local`.",
        )
    if info.kind == "rootless":
        return Identity((0, 0), engine_owner or account)
    if account[0] == 0:  # root of the host is never root in there: a setuid file in a mount would be root's
        return Identity((_UNPRIVILEGED, _UNPRIVILEGED), (_UNPRIVILEGED, _UNPRIVILEGED))
    return Identity(account, account)


# -- what it sees of the host ---------------------------------------------------------------------------


def check_mounts(mounts: Sequence[Mount], *, home: Path | None = None, socket: Path | None = None) -> None:
    """Refuse mounts that are not what they seem, void each other's walls, or open the host.

    Args:
        mounts: all of a sandbox.
        home: the caller's home; neither it nor anything above it may be a person's `files=`.
        socket: the engine's; likewise.

    Raises:
        MountError: the first that is refused.
    """
    for mount in mounts:
        _check_source(mount, [path for path in (home, socket) if path])
        _check_target(mount)
    for number, mount in enumerate(mounts):
        for other in mounts[:number]:
            if _overlap(PurePosixPath(mount.target), PurePosixPath(other.target)):
                raise MountError(mount.target, f"it overlaps with {other.target} in the sandbox")
            if (mount.memory or other.memory) and _overlap(mount.source, other.source):
                raise MountError(str(mount.source), f"it overlaps with {other.source}, which is mounted too")


def _check_source(mount: Mount, guarded: Sequence[Path]) -> None:
    source = mount.source
    if not source.is_absolute() or os.path.realpath(source) != str(source):
        raise MountError(str(source), "it is not a real path: a link leads to it", hint="Name the real folder.")
    try:
        mode = source.lstat().st_mode
    except OSError as error:
        raise MountError(str(source), "it is not there") from error
    if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not mount.memory)):
        raise MountError(str(source), "it is no folder" if mount.memory else "it is no folder and no file")
    if mount.memory:
        return
    if not mount.read_only:
        raise MountError(
            str(source), "only memory stores are writable in a sandbox", hint="`box.get` copies files out."
        )
    for path in (Path("/"), *(Path(os.path.realpath(path)) for path in guarded)):
        if path == source or path.is_relative_to(source):
            raise MountError(str(source), f"a sandbox may not see {path}", hint="Mount a folder of your project.")
    if any(source.is_relative_to(path) for path in _MACHINERY) or _file_system(source) in _KERNELS:
        raise MountError(str(source), "it is the machine's own", hint="Mount a folder of your project.")


def _file_system(path: Path) -> str:
    """The type of the file system that a path is on; empty where the machine does not say."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        table = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ""
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2] == number:
            return after.split()[0]
    return ""


def _check_target(mount: Mount) -> None:
    target = PurePosixPath(mount.target)
    if mount.memory:
        if target.parent != MEMORY or not _SLUG.fullmatch(target.name) or str(target) != mount.target:
            raise MountError(mount.target, f"a store is mounted at {MEMORY}/SLUG")
        return
    plain = target.root == "/" and str(target) == mount.target and ".." not in target.parts
    if not plain or any(ord(character) < 32 for character in mount.target):
        raise MountError(repr(mount.target), "it is no plain absolute path in the sandbox")
    top = f"/{target.parts[1]}" if len(target.parts) > 1 else "/"
    if top == "/" or top in _SYSTEM_TARGETS or _overlap(target, MEMORY) or PurePosixPath(HOME).is_relative_to(target):
        raise MountError(mount.target, "that place is the sandbox's own", hint="Use one such as /data.")


def _overlap(one: PurePath, other: PurePath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


# -- the container ----------------------------------------------------------------------------------------


def container(
    spec: SandboxSpec,
    *,
    image: str,
    main: Sequence[str],
    who: tuple[int, int],
    info: EngineInfo,
    variables: Mapping[str, str],
    volumes: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The body of `POST /containers/create`.

    Args:
        spec: what the sandbox is.
        image: the image's id.
        main: the command; the image's own entrypoint, command, user and health check are not used.
        who: uid and gid inside.
        info: the engine's; it refuses more CPUs than it has.
        variables: memkernel's own, above those of the spec.
        volumes: the image's; each becomes memory that goes with the container, instead of a volume on the disk.
        labels: further ones.
    """
    environment = {
        "HOME": HOME,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "IPYTHONDIR": f"{HOME}/.ipython",
        "PYTHONDONTWRITEBYTECODE": "1",
        **spec.environment,
        **variables,
    }
    return {
        "Image": image,
        "Entrypoint": list(main),
        "Cmd": [],
        "User": f"{who[0]}:{who[1]}",
        "WorkingDir": HOME,
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": {LABEL_SESSION: spec.session_id, LABEL_INSTALLATION: spec.installation_id, **(labels or {})},
        "Healthcheck": {"Test": ["NONE"]},
        "Hostname": "sandbox",
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": _host_config(spec, who, info, volumes),
    }


def _host_config(spec: SandboxSpec, who: tuple[int, int], info: EngineInfo, volumes: Sequence[str]) -> dict[str, Any]:
    limits = spec.limits
    private = "rw,noexec,nosuid,nodev"
    tmpfs = dict.fromkeys([*volumes, "/tmp"], f"{private},size={limits.tmp_bytes},mode=1777")
    tmpfs[HOME] = f"{private},size={limits.home_bytes},mode=700,uid={who[0]},gid={who[1]}"
    return {
        "Init": True,
        "NetworkMode": spec.network,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "ReadonlyRootfs": True,
        "Tmpfs": tmpfs,
        "Mounts": [bind(mount) for mount in spec.mounts],
        "PidsLimit": limits.pids,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(min(limits.cpus, info.cpus) * 1e9),
        "Ulimits": [
            {"Name": "nofile", "Soft": 1024, "Hard": 4096},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
        ],
        "IpcMode": "private",
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        "AutoRemove": False,  # how it died is asked for afterwards
    }


def bind(mount: Mount) -> dict[str, Any]:
    """A mount of the API. Not recursive: below a read-only one, another mount would be writable on Docker 20.10."""
    return {
        "Type": "bind",
        "Source": str(mount.source),
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate", "NonRecursive": True},
    }


def names(whose: str) -> Iterator[str]:
    """Container names that say whose it is; each has an end of its own, so that none is taken for long (fault 41)."""
    while True:
        yield f"memkernel-{whose}-{secrets.token_hex(4)}"
