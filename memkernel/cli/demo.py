"""`memkernel demo`: the tour, in JupyterLab or printed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from memkernel import cluster, config
from memkernel.cli.commands import Commands
from memkernel.errors import MemkernelError

NOTEBOOK = "00_tour.ipynb"


def add(commands: Commands) -> None:
    """The command's line."""
    demo = commands.add_parser(
        "demo",
        help="open the tour in JupyterLab, on an embedded PostgreSQL of its own",
        description="Open the tour in JupyterLab, on an embedded PostgreSQL of its own. "
        "Further arguments go to JupyterLab, for example --no-browser or --port 8899.",
    )
    demo.add_argument("--execute", action="store_true", help="run the notebook here, without a browser, and print it")
    demo.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the tour, or with --execute print it."""
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
    here = Path(__file__).resolve().parent.parent
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
