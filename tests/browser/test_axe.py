"""What a person sees who needs more than colour: axe-core on every widget, high contrast, and narrow columns."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from tests.browser.scenes import SCENES, Scene, furnish
from tests.fix_lab import Lab
from tests.lab_page import NotebookPage
from tests.suites import FRONTEND

pytestmark = pytest.mark.node

AXE: Final = FRONTEND / "node_modules" / "axe-core" / "axe.min.js"
NARROW: Final = (560, 1000)

_RUN: Final = """async root => {
  const {violations, passes} = await axe.run(root);
  const found = violations.flatMap(({id, help, nodes}) => nodes.map(node => `${id}: ${help}: ${node.html}`));
  return {found, passes: passes.map(({id}) => id)};
}"""
CUT_OFF: Final = """root => {
  const right = root.getBoundingClientRect().right;
  const isClipped = each => getComputedStyle(each).overflowX !== 'visible';
  const scrolls = each => each !== root && (isClipped(each) || scrolls(each.parentElement));
  return [...root.querySelectorAll('*')]
    .filter(each => each.getBoundingClientRect().right > right + 1 && !scrolls(each.parentElement))
    .map(each => each.outerHTML.slice(0, 120));
}"""


def opened(lab: Lab, connection: mk.Connection, scene: Scene, **options: Any) -> NotebookPage:
    """A notebook that shows the scene."""
    furnish(connection)
    page = lab.open([*scene.cells], **options)
    for number in range(1, scene.shown + 1):
        page.run(number)
    return page


def violations(page: NotebookPage, root: Locator) -> list[str]:
    """What axe-core finds within an element; it must have looked at something."""
    expect(root).to_be_visible()
    page.tab.evaluate("document.body.style.minHeight = '100vh'")  # Lab's has no height: axe takes all for cut off
    page.tab.add_script_tag(path=AXE)
    report = root.evaluate(_RUN)
    assert "color-contrast" in report["passes"]
    return report["found"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_axe_finds_nothing(lab: Lab, somebody_else: mk.Connection, scene: Scene, dark: bool) -> None:
    """Neither in the widget nor in its static copy."""
    page = opened(lab, somebody_else, scene, dark=dark)
    widget = page.widget(scene.shown)
    page.screenshot(f"{scene}-{'dark' if dark else 'light'}")
    assert violations(page, widget) == []
    page.save()
    again = lab.reopen(page, dark=dark)
    again.screenshot(f"{scene}-static-{'dark' if dark else 'light'}")
    assert violations(again, again.static(scene.shown)) == []


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_narrow_column_and_high_contrast_show_all(lab: Lab, somebody_else: mk.Connection, scene: Scene) -> None:
    page = opened(lab, somebody_else, scene, size=NARROW)
    widget = page.widget(scene.shown)
    page.screenshot(f"{scene}-narrow")
    assert widget.evaluate(CUT_OFF) == []
    assert violations(page, widget) == []
    page.tab.emulate_media(color_scheme="dark", forced_colors="active")
    page.screenshot(f"{scene}-high-contrast")
    for word in scene.words:
        assert word in widget.inner_text()
