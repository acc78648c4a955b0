"""The comparison of a whole store in JupyterLab: two points, what differs, and the diff of one memory."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from memkernel.models import Change
from tests.fix_lab import Lab
from tests.lab_page import NotebookPage

USE = '%memory use "Team notes" -q'
PROSE = "Lengths are in {}.\nTimes are in UTC.\nKeep it short.\n"


@pytest.fixture
def notes(somebody_else: mk.Connection) -> mk.Store:
    """A store whose changes 4 to 8 are one of each kind, one of them redacted."""
    store = somebody_else.store("Team notes", create=True)
    store.write("/units.md", PROSE.format("feet"))
    store.write("/plan.md", "Monday\nTuesday\n")
    store.write("/gone.md", "an old idea\n")
    store.write("/units.md", PROSE.format("metres"))
    store.rename("/plan.md", "/plans/week.md")
    store.delete("/gone.md")
    store.write("/plans/<b>new</b>.md", "first\n")
    store.write("/plans/<b>new</b>.md", "first\nsecond\n")
    store.redact("/plans/<b>new</b>.md", 1)
    return store


def opened(lab: Lab, line: str = "%memory diff --since @3", **options: object) -> tuple[NotebookPage, Locator]:
    """A notebook that shows the comparison."""
    page = lab.open([USE, line], **options)  # pyright: ignore[reportArgumentType]  # a test's own options of `open`
    page.run(1)
    page.run(2)
    return page, page.widget(2)


def rows(widget: Locator) -> Locator:
    return widget.get_by_role("option")


def paths(widget: Locator) -> list[str]:
    return [row.locator(".mk-name").first.inner_text() for row in rows(widget).all()]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_what_differs_is_seen_and_one_memory_is_compared(lab: Lab, notes: mk.Store, dark: bool) -> None:
    page, widget = opened(lab, dark=dark)
    assert paths(widget) == ["/gone.md", "/plans/<b>new</b>.md", "/plan.md → /plans/week.md", "/units.md"]
    expect(widget).to_contain_text("1 created, 1 modified, 1 renamed, 1 deleted")
    expect(rows(widget).nth(3)).to_contain_text("+1 −1")
    expect(page.static(2)).to_be_hidden()
    path, facts = (rows(widget).nth(3).locator(".mk-name").nth(which).bounding_box() for which in range(2))
    assert path
    assert facts
    assert (facts["x"], facts["y"] >= path["y"] + path["height"] - 2) == (path["x"], True)  # one line below the other
    page.screenshot(f"compare-{'dark' if dark else 'light'}-list")
    rows(widget).nth(3).click()
    expect(widget.locator("del.mk-word")).to_have_text("feet")
    expect(widget.locator("ins.mk-word")).to_have_text("metres")
    page.screenshot(f"compare-{'dark' if dark else 'light'}-diff")
    rows(widget).nth(0).click()
    expect(widget.locator(".mk-diff")).to_contain_text("deleted by")
    expect(widget.locator(".mk-diff")).to_contain_text("an old idea")
    page.screenshot(f"compare-{'dark' if dark else 'light'}-deleted")


def test_keys_walk_the_memories_and_move_the_points(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    box = widget.get_by_role("listbox")
    box.focus()
    page.tab.keyboard.press("End")
    expect(widget.locator("ins.mk-word")).to_have_text("metres")
    page.tab.keyboard.press("ArrowUp")
    expect(widget.locator(".mk-diff")).to_contain_text("renamed: /plan.md → /plans/week.md")
    page.tab.keyboard.press("Escape")
    expect(widget.locator(".mk-diff")).to_have_count(0)
    for _ in range(3):
        page.tab.keyboard.press("[")
    expect(widget).to_have_attribute("data-ready", "3:5")
    assert paths(widget) == ["/plan.md → /plans/week.md", "/units.md"]
    page.tab.keyboard.press(".")
    expect(widget).to_have_attribute("data-ready", "4:5")
    page.tab.keyboard.press("?")
    expect(widget.get_by_role("dialog")).to_contain_text("From: one change earlier")
    assert page.tab.locator(".jp-Notebook .jp-Cell").count() == 3  # Lab took none of the keys


def test_points_are_dragged_and_typed(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    slider = widget.get_by_label("From: a change of the store")
    place = slider.bounding_box()
    assert place
    page.tab.mouse.move(place["x"] + place["width"] * 3 / 8, place["y"] + place["height"] / 2)
    page.tab.mouse.down()
    page.tab.mouse.move(place["x"] + 4, place["y"] + place["height"] / 2, steps=12)
    page.tab.mouse.up()
    expect(widget).to_have_attribute("data-ready", "0:8")
    assert paths(widget) == ["/plans/<b>new</b>.md", "/plans/week.md", "/units.md"]
    typed = widget.get_by_label("To: a change or a time")
    typed.fill("@1")
    typed.press("Enter")
    expect(widget).to_have_attribute("data-ready", "0:1")
    typed.fill("the other day")
    typed.press("Enter")
    expect(widget.get_by_role("alert")).to_contain_text("names no point")
    expect(typed).to_have_value("@1")
    page.screenshot("compare-refused")
    typed.fill("head")
    typed.press("Enter")
    expect(widget).to_have_attribute("data-ready", "0:8")
    expect(widget.get_by_role("alert")).to_have_count(0)


def test_a_filter_and_a_redacted_version(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, "%memory diff --since @6 --until @7")
    expect(rows(widget)).to_contain_text("@1 redacted by")
    rows(widget).first.click()
    expect(widget.locator(".mk-diff")).to_contain_text("its text is gone")
    page.screenshot("compare-redacted")
    typed = widget.get_by_label("From: a change or a time")
    typed.fill("@0")
    typed.press("Enter")
    expect(rows(widget)).to_have_count(3)
    widget.get_by_label("Filter by path").fill("UNITS")
    expect(rows(widget)).to_have_count(1)
    widget.get_by_label("Filter by path").fill("nowhere")
    expect(widget.locator(".mk-empty")).to_have_text("No difference")
    expect(widget.locator(".mk-empty")).to_be_visible()


def test_many_changes_come_as_they_are_looked_at(lab: Lab, notes: mk.Store) -> None:
    changes = [Change(f"/many/{number:04}.md", f"line\n{number}\n") for number in range(1_990)]
    notes.connection.database.memories.apply(notes.id, changes, actor=notes.connection.actor)
    page, widget = opened(lab, "%memory diff --since @8")
    expect(widget).to_contain_text("1,990 created")
    assert rows(widget).count() < 40
    box = widget.get_by_role("listbox")
    for _ in range(14):  # each time to the end of what is there
        box.press("End")
        page.tab.wait_for_timeout(150)
    expect(rows(widget).last.locator(".mk-name").first).to_have_text("/many/1989.md", timeout=20_000)
    expect(rows(widget).last).to_contain_text("+2 −0")
    expect(rows(widget).last).to_have_attribute("aria-posinset", "1990")


def test_a_narrow_column(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, size=(640, 1000))
    rows(widget).nth(3).click()
    expect(widget.locator("ins.mk-word")).to_have_text("metres")
    assert widget.evaluate("root => root.scrollWidth <= root.clientWidth")
    page.screenshot("compare-narrow")


def test_without_a_kernel_the_table_is_there(lab: Lab, notes: mk.Store) -> None:
    page, _ = opened(lab)
    page.save()
    reopened = lab.reopen(page)
    expect(reopened.static(2)).to_be_visible()
    expect(reopened.static(2)).to_contain_text("/plan.md → /plans/week.md")
    reopened.screenshot("compare-static")
