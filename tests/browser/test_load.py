"""Large stores and many widgets: what is drawn, kept and saved stays small whatever there is."""

from __future__ import annotations

import json
from typing import Any, Final

import nbformat
from playwright.sync_api import expect

import memkernel as mk
from tests.fix_lab import Lab

USE: Final = '%memory use "Team notes" -q\nnotes = __import__("memkernel").connect().store("Team notes")'
STATE_BYTES: Final = 65_536
_ALIVE: Final = "sum(hasattr(each, 'kind') for each in __import__('ipywidgets').widgets.widget._instances.values())"
_COUNT: Final = "root => root.querySelectorAll('*').length"


def states(notebook: Any) -> list[dict[str, Any]]:
    """What Lab saved of our widgets, without the bundle."""
    (saved,) = notebook.metadata.widgets.values()
    found = [model.state for model in saved.state.values() if "kind" in model.state]
    return [{name: value for name, value in state.items() if name not in ("_esm", "_css")} for state in found]


def size(state: dict[str, Any]) -> int:
    return len(json.dumps(state).encode())


def test_two_thousand_memories_and_a_thousand_versions(lab: Lab, somebody_else: mk.Connection) -> None:
    notes = somebody_else.store("Team notes", create=True)
    for number in range(1_999):
        notes.write(f"/folder-{number % 40:02}/memory-{number:04}.md", f"number {number}\n")
    same = "the same line\n" * 300
    for number in range(1_000):
        notes.write("/a.md", same + f"version {number}\n")
    page = lab.open([USE, "%memory", "%memory diff /a.md"], save_widgets=True)
    for number in (1, 2, 3):
        page.run(number)
    browser, diff = page.widget(2), page.widget(3)
    expect(browser).to_contain_text("2,000")
    assert browser.evaluate(_COUNT) < 1_500  # as much as is seen, not 2,000 rows
    expect(diff).to_contain_text("@1,000 of 1,000")
    assert diff.evaluate(_COUNT) < 1_500
    page.screenshot("load-browser", browser)
    page.screenshot("load-diff", diff)
    diff.press("Home")
    expect(diff).to_contain_text("@1 of 1,000")
    found = states(page.save())
    assert len(found) == 2
    assert [size(state) for state in found if size(state) > STATE_BYTES] == []


def test_twenty_widgets_in_a_cell_and_the_cell_again(lab: Lab, somebody_else: mk.Connection) -> None:
    """The models of a cell that runs again are freed, in the kernel and in the page."""
    notes = somebody_else.store("Team notes", create=True)
    for number in range(20):
        notes.write(f"/{number}.md", "one\n" * 2_000)
        notes.write(f"/{number}.md", "two\n" + "one\n" * 2_000)
    cell = "for number in range(20):\n    notes.diff(f'/{number}.md').show()"
    page = lab.open([USE, cell], save_widgets=True)
    page.run(1)
    for _ in range(3):
        page.run(2)
        expect(page.output(2).locator(".mk[data-ready]")).to_have_count(20)
    assert page.value(_ALIVE) == "20"
    notebook = page.save()
    nbformat.validate(notebook)
    found = states(notebook)
    assert len(found) == 20
    assert [size(state) for state in found if size(state) > STATE_BYTES] == []
