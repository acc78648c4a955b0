"""Kernels of several people, on homes of PostgreSQL 18 (the wheel's) and 15 (Debian's)."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.homes import Home, Observer
from tests.cluster.people import Person, account, current_user, may_isolate, root_in_docker

POSTGRES_15 = "/usr/lib/postgresql/15/bin"
IS_ROOT = os.geteuid() == 0
MAY_ISOLATE = IS_ROOT and may_isolate()
ORDINARY_USER = "nobody"

as_root = pytest.mark.as_root
KINDS = [
    pytest.param(("root", None), id="root", marks=as_root),
    pytest.param(("ordinary", None), id="ordinary"),
    pytest.param(("ordinary", POSTGRES_15), id="ordinary-postgres15"),
]
Kind = tuple[str, str | None]
"""Who runs the kernels (`root`, `ordinary`, or the `current` user), and MEMKERNEL_PG_BIN."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    if IS_ROOT and not MAY_ISOLATE:
        terminalreporter.write_line("not checked: a first start without network and shared memory (no namespaces here)")


@pytest.fixture(scope="session")
def ground() -> Iterator[Path]:
    """A directory that every account can enter, with a short name: a socket's path is short."""
    path = Path(tempfile.mkdtemp(prefix="mk-", dir=_quick_disk()))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def as_ordinary_user(ground: Path) -> Person:
    """Somebody without privileges; where the tests run as root, another account."""
    return account(ORDINARY_USER, ground) if IS_ROOT else current_user()


@pytest.fixture(scope="session")
def homes(ground: Path, as_ordinary_user: Person) -> Iterator[Homes]:
    """Where homes come from."""
    people = {"ordinary": as_ordinary_user, "root": root_in_docker(), "current": current_user()}
    found = Homes(ground, {name: Observer(person) for name, person in people.items()})
    yield found
    found.delete()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Who runs the kernels, and which PostgreSQL."""
    return request.param


@pytest.fixture
def new_home(homes: Homes) -> Iterator[Callable[..., Home]]:
    """Makes homes that no server has seen; all that runs on them ends with the test."""
    made: list[Home] = []

    def make(kind: Kind = ("ordinary", None), name: str = "home") -> Home:
        made.append(homes.make(kind, name))
        return made[-1]

    yield make
    for home in made:
        home.delete()


@pytest.fixture
def fresh_home(new_home: Callable[..., Home], kind: Kind) -> Home:
    """A home that no server has seen."""
    return new_home(kind)


@pytest.fixture
def home(homes: Homes, kind: Kind) -> Iterator[Home]:
    """A home whose cluster exists, with nothing running on it. Tests use it one after the other."""
    used = homes.used(kind)
    yield used
    used.quiet()


class Homes:
    """Makes homes, and keeps one of each kind whose cluster exists."""

    def __init__(self, ground: Path, observers: dict[str, Observer]) -> None:
        self._ground, self._observers = ground, observers
        self._used: dict[Kind, Home] = {}
        self._numbers = itertools.count(1)

    def make(self, kind: Kind, name: str = "home") -> Home:
        """A home of this kind that no server has seen."""
        observer = self._observers[kind[0]]
        parent = self._ground / f"{kind[0]}{next(self._numbers)}"
        parent.mkdir()
        observer.person.own(parent)
        return Home(parent / name, observer, kind[1], 15 if kind[1] else 18)

    def used(self, kind: Kind) -> Home:
        """The home of this kind whose cluster exists."""
        if kind not in self._used:
            self._used[kind] = self.make(kind)
            self._used[kind].running_kernel()
            self._used[kind].quiet()
        self._used[kind].linger_s = 0.0
        return self._used[kind]

    def delete(self) -> None:
        """End all that runs, and remove what is on disk."""
        for home in self._used.values():
            home.delete()
        for observer in self._observers.values():
            observer.leave()


def _quick_disk() -> str:
    """Memory where there is plenty of it: many clusters are made, and each makes the disk wait."""
    return "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4_000_000_000 else "/tmp"
