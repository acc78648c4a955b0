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

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def executed(notebook: Path, dsn: str, home: Path) -> Any:
    """The notebook after a run in a real kernel, on this database and in an empty HOME."""
    book = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(home)}})
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    client.execute(env=environment | {"MEMKERNEL_DSN": dsn, "HOME": str(home), "IPYTHONDIR": str(home / "ipython")})
    return book


def shown(book: Any) -> str:
    """Everything that the cells show as text."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_shipped_notebook_is_valid_and_without_outputs(notebook: Path) -> None:
    book = nbformat.read(notebook, as_version=4)
    nbformat.validate(book)
    assert "widgets" not in book.metadata
    assert all(not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code")


def test_01_agent_remembers(dsn: str, tmp_path: Path) -> None:
    book = executed(NOTEBOOKS[0], dsn, tmp_path)
    text = shown(book)
    assert "scripted" in text
    assert "/notes.md" in text
    assert "hunter2" not in text.split("Ask at the front desk")[-1]
    assert not [output for cell in book.cells for output in cell.get("outputs", []) if output.output_type == "error"]


def test_a_notebook_can_be_run_again_on_what_it_left(dsn: str, tmp_path: Path) -> None:
    executed(NOTEBOOKS[0], dsn, tmp_path)
    assert "scripted" in shown(executed(NOTEBOOKS[0], dsn, tmp_path))
    with mk.connect(dsn) as connection:
        notes = connection.store("Team notes")
        texts = [notes.version(None, version).content for version in notes.log()]
    assert not [text for text in texts if text and "hunter2" in text]
