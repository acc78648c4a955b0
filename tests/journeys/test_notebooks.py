"""The notebooks are documentation: every one runs from top to bottom, and is saved without outputs."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import memkernel as mk

# Neither package tells its types.
nbclient: Any = import_module("nbclient")
nbformat: Any = import_module("nbformat")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
FIRST, PAST = FOLDER / "01_agent_remembers.ipynb", FOLDER / "03_history_and_diff.ipynb"


def executed(notebook: Path, dsn: str, home: Path) -> Any:
    """The notebook after a run in a real kernel, on this database and in an empty HOME."""
    book = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(home)}})
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    client.execute(env=environment | {"MEMKERNEL_DSN": dsn, "HOME": str(home), "IPYTHONDIR": str(home / "ipython")})
    return book


def outputs(book: Any) -> list[Any]:
    """All that the cells show."""
    return [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]


def shown(book: Any) -> str:
    """Everything that the cells show as text."""
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs(book))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_shipped_notebook_is_valid_and_without_outputs(notebook: Path) -> None:
    book = nbformat.read(notebook, as_version=4)
    nbformat.validate(book)
    assert "widgets" not in book.metadata
    assert all(not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code")


def test_01_agent_remembers(dsn: str, tmp_path: Path) -> None:
    book = executed(FIRST, dsn, tmp_path)
    text = shown(book)
    assert "scripted" in text
    assert "/notes.md" in text
    assert "hunter2" not in text.split("Ask at the front desk")[-1]
    assert not [output for cell in book.cells for output in cell.get("outputs", []) if output.output_type == "error"]


def test_03_history_and_diff(dsn: str, tmp_path: Path) -> None:
    """Read afterwards without a kernel: what the views show stands in their copies."""
    book = executed(PAST, dsn, tmp_path)
    nbformat.validate(book)
    assert not [output for cell in book.cells for output in cell.get("outputs", []) if output.output_type == "error"]
    pages = [output.get("data", {}).get("text/html", "") for output in outputs(book)]
    copies = [page for page in pages if "mk-static" in page]
    assert len(copies) == 6
    assert "4711" not in "".join(copies)
    text = shown(book)
    for said in ("-- Monday: calibrate the scale", "redacted by", "/people.md", "+- Thursday: show it to Ann"):
        assert said in text
    again = shown(executed(PAST, dsn, tmp_path))  # on what it left
    assert "redacted by" in again


def test_a_notebook_can_be_run_again_on_what_it_left(dsn: str, tmp_path: Path) -> None:
    executed(FIRST, dsn, tmp_path)
    assert "scripted" in shown(executed(FIRST, dsn, tmp_path))
    with mk.connect(dsn) as connection:
        notes = connection.store("Team notes")
        texts = [notes.version(None, version).content for version in notes.log()]
    assert not [text for text in texts if text and "hunter2" in text]
