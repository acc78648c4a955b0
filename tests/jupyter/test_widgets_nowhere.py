"""Where no widget can be shown, everything is text and HTML, and nothing fails because of it (faults 45 and 48)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.fix_kernel import Kernel, Shell, kernel_environment

# Neither package tells its types.
nbclient: Any = import_module("nbclient")
nbformat: Any = import_module("nbformat")

WRITE = "%memory put /units.md --var text -q\n%memory replace /units.md feet metres -q"
VIEWS = ("%memory", "%memory diff /units.md", "%%agent\nRemember that I prefer SI units")
WIDGET = "application/vnd.jupyter.widget-view+json"


def seen(output: dict[str, Any]) -> dict[str, Any]:
    """What a front end without widgets shows of an output."""
    return {kind: data for kind, data in output.items() if kind != WIDGET and data}


@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets"])
def test_without_the_widgets_packages_the_commands_give_tables(bare_kernel: Kernel, missing: str) -> None:
    """As Python sees a package that is not installed."""
    for cell in (
        f"import sys; sys.modules[{missing!r}] = None",
        "%load_ext memkernel",
        "%memory use Notes --create -q",
    ):
        assert bare_kernel.run(cell).status == "ok"
    assert bare_kernel.run(f"text = 'Lengths are in feet.\\n'\n{WRITE}").status == "ok"
    for cell in VIEWS:
        reply = bare_kernel.run(cell)
        assert (reply.status, reply.stderr) == ("ok", ""), reply
        assert reply.text.strip()
        assert reply.html.strip()
        assert not any(WIDGET in output for output in reply.outputs)


def test_a_kernel_without_a_widget_manager_shows_the_copies(kernel: Kernel) -> None:
    """As Colab does before its switch is turned, and every front end that does not know widgets."""
    assert kernel.run(f"text = 'Lengths are in feet.\\n'\n{WRITE}").status == "ok"
    for cell in VIEWS:
        reply = kernel.run(cell)
        assert (reply.status, reply.stderr) == ("ok", ""), reply
        *_, copy = reply.outputs
        assert copy["text/plain"].strip()
        assert "<script" not in copy["text/html"]
        assert [seen(output) for output in reply.outputs if WIDGET in output] == [{}]


def test_a_plain_ipython_shows_text(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.ipython.user_ns["text"] = "Lengths are in feet.\n"
    shell.run(WRITE)
    for cell, word in zip(VIEWS, ("/units.md", "+Lengths are in metres.", "SI units"), strict=True):
        capsys.readouterr()
        shell.ipython.run_cell(cell)
        assert word in capsys.readouterr().out


def test_an_executed_notebook_is_valid_and_keeps_the_copies(dsn: str, tmp_path: Path) -> None:
    """Fault 47: GitHub refuses a file whose widgets have no `state`."""
    sources = ["%load_ext memkernel", "%memory use Notes --create -q", f"text = 'in feet\\n'\n{WRITE}", *VIEWS]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=kernel_environment(tmp_path, MEMKERNEL_DSN=dsn))
    nbformat.validate(book)
    (state,) = book.metadata.widgets.values()
    assert state.state
    for cell in book.cells[-len(VIEWS) :]:
        assert [output.output_type for output in cell.outputs if output.output_type == "error"] == []
        assert cell.outputs[-1].data["text/plain"].strip()
        assert cell.outputs[-1].data["text/html"].startswith("<div")
