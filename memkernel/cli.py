"""The command line: `memkernel demo | doctor | migrate | session | stop`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from memkernel import __version__, cluster, config
from memkernel.errors import MemkernelError
from memkernel.models import Settings

if TYPE_CHECKING:
    from memkernel.runtime import Recovered
    from memkernel.store import Database

NOTEBOOK = "01_agent_remembers.ipynb"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for an error that is told, 2 for a wrong command line."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and (options.run is not _demo or options.execute):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = [argument for argument in rest if argument != "--"]
    try:
        return options.run(options)
    except MemkernelError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memkernel", description="A real memory for agents in Jupyter notebooks.")
    parser.add_argument("--version", action="version", version=f"memkernel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="open the tour in JupyterLab, on an embedded PostgreSQL of its own",
        description="Open the tour in JupyterLab, on an embedded PostgreSQL of its own. "
        "Further arguments go to JupyterLab, for example --no-browser or --port 8899.",
    )
    demo.add_argument("--execute", action="store_true", help="run the notebook here, without a browser, and print it")
    demo.set_defaults(run=_demo)

    doctor = commands.add_parser("doctor", help="what is found, used and missing on this machine")
    doctor.set_defaults(run=_doctor)

    migrate = commands.add_parser("migrate", help="bring a database's memkernel tables up to this version")
    migrate.add_argument("dsn", nargs="?", help="postgresql://…; without it MEMKERNEL_DSN, then the embedded one")
    migrate.set_defaults(run=_migrate)

    _add_session_commands(commands.add_parser("session", help="the sandbox sessions of this database, and their end"))

    stop = commands.add_parser("stop", help="stop the embedded PostgreSQL, whoever uses it")
    stop.set_defaults(run=_stop)
    return parser


def _add_session_commands(session: argparse.ArgumentParser) -> None:
    commands = session.add_subparsers(required=True, metavar="COMMAND")
    ls = commands.add_parser("ls", help="the sessions that have not ended, and where each runs")
    ls.set_defaults(run=_session_ls)
    end = commands.add_parser("end", help="end a session whose process is gone; what it left is saved before")
    end.add_argument("session", help="sesn_…")
    end.add_argument("--force", action="store_true", help="also if its machine is gone, with what was not saved there")
    end.set_defaults(run=_session_end)


# -- doctor, migrate, stop -------------------------------------------------------------------------


def _doctor(_: argparse.Namespace) -> int:
    settings = config.load()
    findings = cluster.diagnose(settings)
    if settings.dsn is not None:
        findings.append(_look_at(settings.dsn))
    findings += [_sandboxes(settings), *_leftovers(settings)]
    marks = {"ok": "ok     ", "warning": "warning", "missing": "MISSING"}
    for finding in findings:
        print(f"{marks[finding.state]}  {finding.what}: {finding.text}")
        if finding.hint:
            print(f"         {finding.hint}")
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _look_at(dsn: str) -> cluster.Finding:
    """The server that MEMKERNEL_DSN names, as it is now. The embedded one is not started for a look."""
    from memkernel.store import Database

    try:
        with Database(dsn, reconnect_s=0) as database:
            status = database.status()
    except MemkernelError as error:
        return cluster.Finding("connection", "missing", str(error), error.hint)
    return cluster.Finding(
        "connection", "ok", f"PostgreSQL {status.server_version}, schema {status.schema_version}", ""
    )


def _sandboxes(settings: Settings) -> cluster.Finding:
    """Whether a Docker engine answers. Without one there is `--backend local`: nothing is in the way."""
    try:
        from memkernel.sandbox.engine import find_engine

        with closing(find_engine(settings)) as engine:
            limits = f"; it does not limit {', '.join(engine.info.unlimited)}" if engine.info.unlimited else ""
            text = f"Docker {engine.info.version}, {engine.info.kind}, at {engine.address}{limits}"
            return cluster.Finding("sandbox", "warning" if limits else "ok", text)
    except MemkernelError as error:
        return cluster.Finding("sandbox", "warning", str(error), error.hint)


def _leftovers(settings: Settings) -> list[cluster.Finding]:
    """What sandboxes left whose process is gone; it is saved now (SANDBOX.md, Decision 17)."""
    try:
        from memkernel import runtime

        home = runtime.Home.of(settings.home)
        if not runtime.dead_sessions(home) and not runtime.unreadable_sessions(home):
            return []
        with _connected(settings) as (database, line):
            return [_recovery(one) for one in runtime.recover(database, line, settings, home)]
    except MemkernelError as error:
        return [cluster.Finding("sessions", "warning", f"left, and not saved yet: {error}", error.hint)]


def _recovery(one: Recovered) -> cluster.Finding:
    name = f"{one.title or 'a sandbox'} ({one.session_id})"
    if one.trouble:
        return cluster.Finding("sessions", "warning", f"{name} left what cannot be saved yet: {one.trouble}")
    return cluster.Finding("sessions", "ok", f"{name} had lost its process: {_saved(one)}")


def _saved(one: Recovered) -> str:
    stores = one.report.stores
    saved = sum(len(store.created) + len(store.modified) + len(store.deleted) + len(store.merged) for store in stores)
    aside = sum(len(store.conflicts) for store in stores)
    told = (
        "1 change was saved" if saved == 1 else f"{saved:,} changes were saved" if saved else "nothing was left to save"
    )
    return f"{told}, {aside:,} put aside" if aside else told


@contextmanager
def _connected(settings: Settings) -> Generator[tuple[Database, str]]:
    """The database of the sandboxes, and what a person calls it; an embedded one is started."""
    from memkernel.store import Database

    chosen = cluster.choose(None, settings)
    with Database(chosen.dsn, migrate=chosen.cluster is not None) as database:
        yield database, chosen.line


def _migrate(options: argparse.Namespace) -> int:
    from memkernel.store import Database

    settings = config.load()
    chosen = cluster.choose(options.dsn, settings)
    print(chosen.line)
    with Database(chosen.dsn, migrate=True) as database:
        print(f"The memkernel tables are at schema {database.status().schema_version}.")
    return 0


def _session_ls(_: argparse.Namespace) -> int:
    from memkernel import runtime

    settings = config.load()
    with _connected(settings) as (database, _line):
        found = runtime.unended_sessions(database, runtime.Home.of(settings.home))
    for record, state in found:
        print(f"{record.id}  {record.title or '-'}  {runtime.stores_of(record)}  {state}")
    if not found:
        print("No session is open.")
    return 0


def _session_end(options: argparse.Namespace) -> int:
    from memkernel import runtime

    settings = config.load()
    with _connected(settings) as (database, line):
        home = runtime.Home.of(settings.home)
        ended = runtime.end_session(database, line, settings, home, options.session, force=options.force)
    print(f"{ended.title or 'The session'} ({ended.session_id}) has ended: {_saved(ended)}.")
    return 0


def _stop(_: argparse.Namespace) -> int:
    stopped = _cluster().stop()
    print("The embedded PostgreSQL was stopped." if stopped else "No embedded PostgreSQL was running.")
    return 0


def _cluster() -> cluster.EmbeddedCluster:
    settings = config.load()
    return cluster.EmbeddedCluster(home=settings.home, pg_bin=settings.pg_bin, pg_user=settings.pg_user)


# -- demo ------------------------------------------------------------------------------------------


def _demo(options: argparse.Namespace) -> int:
    home = cluster.home_directory(config.load().home) / "demo"
    notebook = _copy_notebooks(home / "notebooks") / NOTEBOOK
    environment = _demo_environment(home)
    if options.execute:
        return _execute(notebook, environment)
    if find_spec("jupyterlab") is None:
        raise MemkernelError("JupyterLab is not installed", hint="`pip install 'memkernel[lab]'`")
    return _become_jupyterlab(notebook, options.rest, environment)


def _become_jupyterlab(notebook: Path, arguments: list[str], environment: dict[str, str]) -> NoReturn:
    """Replace this process: signals and the exit status are JupyterLab's own."""
    root = ["--allow-root"] if os.geteuid() == 0 else []
    # As the default page, and not as a file to open, the notebook is also where the printed links lead.
    page = [f"--ServerApp.root_dir={notebook.parent}", f"--LabApp.default_url=/lab/tree/{notebook.name}"]
    os.chdir(notebook.parent)
    os.execve(sys.executable, [sys.executable, "-m", "jupyterlab", *root, *page, *arguments], environment)


def _demo_environment(home: Path) -> dict[str, str]:
    """This process's environment, with a memkernel home of the demo's own and never a person's own server."""
    kept = {name: value for name, value in os.environ.items() if name != "MEMKERNEL_DSN"}
    return kept | {"MEMKERNEL_HOME": str(home), "MEMKERNEL_DEMO": "1"}


def _copy_notebooks(target: Path) -> Path:
    """Fresh copies of the shipped notebooks: a visitor may change them, and the next visit starts anew."""
    target.mkdir(parents=True, exist_ok=True)
    for notebook in sorted(_shipped_notebooks().glob("*.ipynb")):
        shutil.copyfile(notebook, target / notebook.name)
    return target


def _shipped_notebooks() -> Path:
    """The notebooks inside the installed package, or beside it in a source tree."""
    here = Path(__file__).resolve().parent
    return next(folder for folder in (here / "notebooks", here.parent / "notebooks") if folder.is_dir())


def _execute(notebook: Path, environment: dict[str, str]) -> int:
    # Neither package tells its types.
    nbclient: Any = import_module("nbclient")
    nbformat: Any = import_module("nbformat")
    client = nbclient.NotebookClient(
        nbformat.read(notebook, as_version=4),
        timeout=300,
        resources={"metadata": {"path": str(notebook.parent)}},
        extra_arguments=["--log-level=ERROR"],  # the kernel's own remarks are no part of the tour
        on_cell_executed=_print_cell,
    )
    try:
        client.execute(env=environment)
    except nbclient.exceptions.CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _print_cell(cell: Any, **_: object) -> None:
    if cell.cell_type != "code":
        return
    print("\n".join(f"In > {line}" for line in cell.source.splitlines()))
    for output in cell.outputs:
        text = output.get("text") or output.get("data", {}).get("text/plain") or "\n".join(output.get("traceback", []))
        print(text.rstrip("\n"))
    print(flush=True)
