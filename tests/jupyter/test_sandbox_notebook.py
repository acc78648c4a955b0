"""notebooks/02_sandbox_sync.ipynb runs from top to bottom on either backend, twice, and says what it promises."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import memkernel as mk

# Neither package tells its types.
nbclient: Any = import_module("nbclient")
nbformat: Any = import_module("nbformat")

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_sandbox_sync.ipynb"
CHOICE = 'backend = "docker"'


def executed(backend: str, dsn: str, home: Path, variables: dict[str, str]) -> Any:
    """The notebook after a run in a real kernel, with the choice made in its one cell."""
    book = nbformat.read(NOTEBOOK, as_version=4)
    (choice,) = [cell for cell in book.cells if cell.source.startswith(CHOICE)]
    choice.source = choice.source.replace(CHOICE, f'backend = "{backend}"')
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(home)}})
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    own = {"MEMKERNEL_DSN": dsn, "MEMKERNEL_HOME": str(home / "memkernel"), "HOME": str(home)}
    client.execute(env=kept | own | {"IPYTHONDIR": str(home / "ipython")} | variables)
    return book


def shown_by(book: Any, source: str) -> str:
    """All text that the cell with this in its source shows."""
    (cell,) = [cell for cell in book.cells if cell.cell_type == "code" and source in cell.source]
    return "\n".join(_text(output) for output in cell.outputs)


def _text(output: Any) -> str:
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def test_the_tour_shows_what_it_promises_also_when_it_is_run_again(
    backend: str, dsn: str, open_home: Path, sandbox_variables: dict[str, str]
) -> None:
    executed(backend, dsn, open_home, sandbox_variables)
    book = executed(backend, dsn, open_home, sandbox_variables)
    assert ("not isolated" in shown_by(book, "%sandbox start")) is (backend == "local")
    assert "~ modified" in shown_by(book, "# Weights")
    assert "2 samples, 11.95 g on average" in shown_by(book, "on average")
    assert "Please weigh sample b again." in shown_by(book, 'notes.joinpath("from-ann.md").read_text()')
    refusal = shown_by(book, "20_000")
    assert "refused" in refusal
    assert "/raw.csv" in refusal
    assert "metres" in shown_by(book, "%memory cat handbook:/units.md")
    conflict = shown_by(book, "and dry them")
    assert "✗ not saved" in conflict
    assert "SyncConflictError" in conflict
    changes = shown_by(book, "%sandbox changes")
    assert "twice" in changes
    assert "and dry them" in changes
    assert "merged" in shown_by(book, "# Plan for the week")
    merged = shown_by(book, "%memory cat /plan.md")
    assert "# Plan for the week" in merged
    assert "with a figure" in merged
    assert "✗ restored" in shown_by(book, "rm -rf")
    assert "the cell took too long and was ended after 2" in shown_by(book, "--timeout 2")
    assert "Stopped: main." in shown_by(book, "%sandbox stop")
    with mk.connect(dsn) as connection:
        store = connection.store("Lab notes")
        assert store.read("/scale.md") == "The scale is in room 12.\n"
        authors = {version.created_by.type for version in store.log() if version.created_by}
    assert authors == {"session_actor", "user_actor"}
    for cell in book.cells:
        failed = [output.ename for output in cell.get("outputs", []) if output.output_type == "error"]
        assert bool(failed) is ("raises-exception" in cell.metadata.get("tags", [])), (cell.source, failed)
