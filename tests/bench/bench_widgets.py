"""P19 and UX 2: the widgets in JupyterLab in Debian's Chromium, from the start of a cell until they are painted.

Run: `python -m tests.bench.bench_widgets`. CodeMirror's merge view was measured outside of the repository on two cores
(UX 2); what has no peer stands beside the two seconds in which everything shall be there.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import memkernel as mk
from memkernel import cluster
from tests.bench.bench_diff import edited, prose
from tests.fix_lab import Lab, LabServer, launch
from tests.lab_page import NotebookPage

Result = dict[str, Any]

CODEMIRROR_US = 674_000
"""A cell with one pair of 100 KB and 60 edits, until CodeMirror has painted it."""
CODEMIRROR_TWENTY_US = 10_000_000
GENEROUS_US = 2_000_000
CODEMIRROR_STATE_BYTES = 2_216_642

_PAINTED_MS = """async ([index, widgets]) => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = index;
  await jupyterapp.commands.execute('notebook:clear-cell-output');
  const cell = notebook.widgets[index].node;
  return new Promise(resolve => {
    const begun = performance.now();
    const look = () => {
      if (cell.querySelectorAll('.mk[data-ready]').length < widgets) return;
      watching.disconnect();
      resolve(performance.now() - begun);
    };
    const watching = new MutationObserver(look);
    watching.observe(cell, {subtree: true, childList: true, attributes: true, attributeFilter: ['data-ready']});
    jupyterapp.commands.execute('notebook:run-cell');
  });
}"""


def run(rounds: int = 7) -> list[Result]:
    """One result for each work; medians."""
    with laboratory() as (lab, dsn):
        fill(dsn)
        return [
            pair(lab, rounds),
            alone(lab, "StoreBrowser of 2,000 memories", rounds, store="Many memories", cell="%memory"),
            alone(lab, "VersionDiff over 1,000 versions", rounds, store="Versions", cell="%memory diff /a.md"),
            twenty(lab, max(1, rounds // 3)),
            saved_state(lab),
        ]


# -- the works -------------------------------------------------------------------------------------


def pair(lab: Lab, rounds: int) -> Result:
    """P19."""
    page = opened(lab, "Texts", "%memory diff /100kb.md")
    figure = median_us(page, rounds)
    return result("P19", "100 KB diff, cell run to painted", ("CodeMirror", CODEMIRROR_US), figure, 0.5)


def alone(lab: Lab, work: str, rounds: int, *, store: str, cell: str) -> Result:
    """What has no peer."""
    figure = median_us(opened(lab, store, cell), rounds)
    return result("UX", f"{work}, cell run to painted", (f"{GENEROUS_US / 1e6:g} s", GENEROUS_US), figure, 1.0)


def twenty(lab: Lab, rounds: int) -> Result:
    """Twenty pairs of 20 KB in one cell."""
    cell = "for number in range(20):\n    notes.diff(f'/20kb-{number}.md').show()"
    page = opened(lab, "Texts", cell)
    figure = median_us(page, rounds, widgets=20)
    return result("UX", "20 diffs of 20 KB in one cell", ("CodeMirror", CODEMIRROR_TWENTY_US), figure, 0.5)


def saved_state(lab: Lab) -> Result:
    """What Lab saves with the notebook where it is told to save the widgets, the bundle in each of them."""
    cell = "for number in range(5):\n    notes.diff(f'/20kb-{number}.md').show()\nnotes.browse().show()"
    page = opened(lab, "Texts", cell, save_widgets=True)
    median_us(page, 1, widgets=6)
    states = page.save()["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]
    size = len(json.dumps(states))
    named = result("UX", "saved state of 5 diffs and a browser", ("CodeMirror", CODEMIRROR_STATE_BYTES), size, 0.5)
    return named | {"unit": "B"}


# -- how -------------------------------------------------------------------------------------------


def opened(lab: Lab, store: str, cell: str, *, save_widgets: bool = False) -> NotebookPage:
    """A notebook whose cell 2 is the one to measure."""
    used = f'notes = __import__("memkernel").connect().store("{store}")\n%memory use "{store}" -q'
    page = lab.open([used, cell], save_widgets=save_widgets)
    page.run(1)
    return page


def median_us(page: NotebookPage, rounds: int, widgets: int = 1) -> float:
    """The median of several runs; a first one loads what is loaded once."""
    times = [page.tab.evaluate(_PAINTED_MS, [2, widgets]) * 1e3 for _ in range(rounds + 1)]
    return statistics.median(times[1:])


def result(name: str, work: str, peer: tuple[str, int], figure: float, target: float) -> Result:
    """A figure beside its peer's."""
    ratio = {"peer": peer[0], "ratio": round(figure / peer[1], 3), "target": target}
    return {"id": name, "work": work, **ratio, "ours_us": round(figure), "peer_us": peer[1]}


@contextmanager
def laboratory() -> Generator[tuple[Lab, str]]:
    """JupyterLab and a browser on an embedded PostgreSQL of its own; and that one's connection string."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{top}/memkernel")
        jupyter = LabServer()
        try:
            dsn = server.ensure()
            with sync_playwright() as playwright, launch(playwright) as browser:
                lab = Lab(jupyter, browser.new_context(), {"MEMKERNEL_DSN": dsn, "HOME": top}, Path(top))
                yield lab, dsn
                lab.close()
        finally:
            jupyter.remove()
            server.stop()


def fill(dsn: str) -> None:
    """The stores."""
    chance = random.Random(0)
    with mk.connect(dsn) as db:
        texts = db.store("Texts", create=True)
        large = prose(chance)
        for path, old in [("/100kb.md", large), *((f"/20kb-{number}.md", large[:20_000]) for number in range(20))]:
            texts.write(path, old)
            texts.write(path, edited(old, 60, chance)[: len(old)])
        many = db.store("Many memories", create=True)
        for number in range(2_000):
            many.write(f"/folder-{number % 40}/memory-{number}.md", f"number {number}\n")
        versions = db.store("Versions", create=True)
        for number in range(1_000):
            versions.write("/a.md", f"{large[:5_000]}\nversion {number}\n")


if __name__ == "__main__":
    for each in run():
        print(json.dumps(each))
