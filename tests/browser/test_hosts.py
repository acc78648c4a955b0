"""A widget and its static copy (faults 45 to 47): one of the two is seen, whoever opens the notebook, and how."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import nbformat
import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from tests.browser.scenes import BROWSER, COMPARE, DIFF, SCENES, Scene, furnish
from tests.fix_kernel import kernel_environment
from tests.fix_lab import Lab
from tests.lab_page import NotebookPage

BUSY_LINE_MS: Final = 30_000
"""The line comes after 15 s."""


def shows(seen: Locator, scene: Scene) -> None:
    """All the words of a scene can be read here."""
    for word in scene.words:
        expect(seen).to_contain_text(word)


def shows_the_copy(page: NotebookPage, scene: Scene) -> None:
    """The static copy is seen, and nothing tells of a widget that is missing."""
    expect(page.static(scene.shown)).to_be_visible()
    shows(page.static(scene.shown), scene)
    assert page.output(scene.shown).locator(".mk").count() == 0
    assert not re.search(r"(?i)loading widget|model not found|error displaying", page.text(scene.shown))


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_live_there_is_the_widget_and_later_its_copy(lab: Lab, somebody_else: mk.Connection, scene: Scene) -> None:
    furnish(somebody_else)
    page = lab.open([*scene.cells])
    for number in range(1, scene.shown + 1):
        page.run(number)
    shows(page.widget(scene.shown), scene)
    expect(page.static(scene.shown)).to_be_attached()
    expect(page.static(scene.shown)).to_be_hidden()
    page.screenshot(f"{scene}-live")
    nbformat.validate(page.save())

    again = lab.reopen(page)
    shows_the_copy(again, scene)
    again.screenshot(f"{scene}-reopened")
    again.tab.close()
    shows_the_copy(lab.reopen(page, kernel=True), scene)

    sent = lab.untrusted(page)
    shows_the_copy(sent, scene)
    sent.screenshot(f"{scene}-untrusted")
    bare = sent.static(scene.shown).evaluate(
        """copy => {
          copy.querySelectorAll('style').forEach(style => style.remove());
          for (const each of [copy, ...copy.querySelectorAll('*')]) {
            for (const name of each.getAttributeNames()) each.removeAttribute(name);
          }
          return copy.innerText;
        }"""
    )
    sent.screenshot(f"{scene}-bare")
    assert [word for word in scene.words if word not in bare] == []


# -- converted -----------------------------------------------------------------------------------

ALL_IN_ONE: Final = [cell for scene in (DIFF, BROWSER, COMPARE) for cell in scene.cells]
_NBCONVERT: Final = (sys.executable, "-m", "nbconvert", "--to=html", "--ExecutePreprocessor.kernel_name=python3")


def converted(notebook: Path, dsn: str, *options: str) -> Path:
    """The notebook as HTML, by a nbconvert that knows of nothing but the database."""
    home = notebook.parent / "home"
    home.mkdir(exist_ok=True)
    subprocess.run(
        [*_NBCONVERT, *options, str(notebook)],
        env=kernel_environment(home, MEMKERNEL_DSN=dsn),
        cwd=notebook.parent,
        check=True,
        capture_output=True,
        timeout=240,
    )
    return notebook.with_suffix(".html")


@pytest.mark.parametrize(
    "options",
    [("--execute",), ("--execute", "--ExecutePreprocessor.store_widget_state=False"), ()],
    ids=["executed", "executed without widget state", "saved"],
)
def test_a_converted_notebook_shows_the_copies(
    lab: Lab, somebody_else: mk.Connection, dsn: str, options: tuple[str, ...]
) -> None:
    """Its own scripts come from other hosts, which nobody can reach here."""
    furnish(somebody_else)
    page = lab.open(ALL_IN_ONE, save_widgets=True)
    if not options:
        page.run_all()
    page.save()
    page.tab.close()
    html = converted(page.path, dsn, *options)
    tab = lab.browser.new_page()
    tab.goto(html.as_uri(), wait_until="domcontentloaded")
    for scene in (DIFF, BROWSER, COMPARE):
        copy = tab.locator(".mk-static").nth((DIFF, BROWSER, COMPARE).index(scene))
        expect(copy).to_be_visible()
        shows(copy, scene)
    assert "model not found" not in tab.locator("body").inner_text()
    tab.set_viewport_size({"width": 1100, "height": 1400})
    page.keep(tab, f"converted-{len(options)}")
    tab.close()


# -- a kernel that is busy, or gone --------------------------------------------------------------


def test_the_first_paint_waits_for_no_answer(lab: Lab, somebody_else: mk.Connection, tmp_path: Path) -> None:
    """Run All with a cell after the widgets that does not end before they are looked at."""
    furnish(somebody_else)
    seen = tmp_path / "seen"
    slow = f"import pathlib, time\nwhile not pathlib.Path({str(seen)!r}).exists():\n    time.sleep(0.01)\n'over'"
    page = lab.open([*ALL_IN_ONE, slow], load=False)
    page.start_all()
    for scene, number in ((DIFF, 2), (BROWSER, 4), (COMPARE, 6)):
        shows(page.widget(number), scene)
    assert page.number(7) == "[*]"
    seen.touch()
    expect(page.output(7)).to_contain_text("over")


def test_a_kernel_that_does_not_answer_is_told_in_one_line(lab: Lab, somebody_else: mk.Connection) -> None:
    furnish(somebody_else)
    page = lab.open([*DIFF.cells])
    page.run(1)
    page.run(2)
    process = int(page.value("__import__('os').getpid()"))
    widget = page.widget(2)
    os.kill(process, signal.SIGSTOP)
    try:
        widget.press("[")
        line = widget.get_by_role("alert")
        expect(line).to_contain_text("the kernel is busy or gone; what is shown is as of 20", timeout=BUSY_LINE_MS)
        expect(line).to_have_count(1)
        shows(widget, DIFF)
        page.screenshot("busy")
    finally:
        os.kill(process, signal.SIGCONT)
    line.get_by_role("button", name="Retry").click()
    expect(line).to_have_count(0)
    expect(widget).to_contain_text("feet")


def test_a_kernel_that_is_gone_leaves_what_is_shown(lab: Lab, somebody_else: mk.Connection) -> None:
    furnish(somebody_else)
    page = lab.open([*DIFF.cells])
    page.run(1)
    page.run(2)
    lab.kill_kernels()
    widget = page.widget(2)
    widget.press("[")
    expect(widget.get_by_role("alert")).to_contain_text("the kernel is busy or gone", timeout=BUSY_LINE_MS)
    shows(widget, DIFF)
    page.screenshot("gone")
