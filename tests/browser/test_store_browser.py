"""The StoreBrowser in JupyterLab: look through a store, find, compare, edit, and undo, by hand and by key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from tests.browser.scenes import USE, furnish
from tests.fix_lab import Lab
from tests.lab_page import NotebookPage

BROWSER: Final = "box = mk.connect().store('Team notes').browse().show()"
IMPORT: Final = "import memkernel as mk"


@pytest.fixture
def notes(somebody_else: mk.Connection) -> mk.Store:
    """The store, as somebody else holds it."""
    return furnish(somebody_else)


def browser(lab: Lab, *cells: str, **options: object) -> tuple[NotebookPage, Locator]:
    """A notebook whose last cell shows the StoreBrowser, and that."""
    page = lab.open([USE, *(cells or ("%memory",))], **options)  # pyright: ignore[reportArgumentType]  # passed on
    for number in range(1, 2 + len(cells or ("",))):
        page.run(number)
    return page, page.widget(1 + len(cells or ("",)))


def memory(root: Locator, name: str) -> Locator:
    return root.get_by_role("tree").get_by_role("treeitem").filter(has_text=name)


def version(root: Locator, ordinal: int) -> Locator:
    return root.get_by_role("listbox").get_by_role("option").filter(has_text=re.compile(rf"@{ordinal}\b"))


def look_at(root: Locator, ordinal: int) -> None:
    """Show a version of the memory that is open; its history comes by itself, at about the same time."""
    expect(version(root, ordinal)).to_have_count(1)
    version(root, ordinal).click()


def content(root: Locator) -> Locator:
    return root.get_by_role("region", name="Content", exact=True)


def button(root: Locator, name: str) -> Locator:
    return root.get_by_role("button", name=name, exact=True)


def open_memory(root: Locator, name: str) -> None:
    memory(root, name).click()
    expect(root).to_have_attribute("data-ready", re.compile(rf"{re.escape(name)}@"))


# -- looking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_store_is_looked_through(lab: Lab, notes: mk.Store, dark: bool) -> None:
    page, root = browser(lab, dark=dark)
    expect(root).to_have_attribute("data-ready", "store")
    expect(memory(root, "plan.md")).to_be_visible()
    expect(root.get_by_role("listbox").get_by_role("option").first).to_contain_text("/old.md")
    page.screenshot(f"browser-store-{'dark' if dark else 'light'}", root)
    open_memory(root, "units.md")
    expect(content(root).get_by_role("heading", name="Units")).to_be_visible()
    expect(content(root)).to_contain_text("as everything is in SI")
    expect(root.get_by_role("listbox").get_by_role("option")).to_have_count(3)
    page.screenshot(f"browser-memory-{'dark' if dark else 'light'}", root)
    button(root, "Source").click()
    expect(content(root)).to_contain_text("# Units")


def test_the_keys_go_through_the_tree_and_not_to_the_notebook(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    cells = page.tab.locator(".jp-Notebook .jp-Cell").count()
    root.get_by_role("tree").focus()
    for key in ("Home", "ArrowDown", "Enter"):
        page.tab.keyboard.press(key)
    expect(root).to_have_attribute("data-ready", re.compile("@"))
    page.tab.keyboard.press("/")
    expect(root.get_by_role("searchbox")).to_be_focused()
    page.tab.keyboard.press("Escape")
    for key in ("b", "x", "d", "d", "a", "m"):
        page.tab.keyboard.press(key)
    assert page.tab.locator(".jp-Notebook .jp-Cell").count() == cells


def test_a_path_is_filtered_as_it_is_typed_and_contents_are_searched(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    box = root.get_by_role("searchbox")
    box.fill("team/wi")
    expect(root.get_by_role("treeitem")).to_have_count(1)
    expect(root.get_by_role("treeitem")).to_contain_text("wifi.md")
    box.fill("/METRES si")
    box.press("Enter")
    hits = root.get_by_role("button", name=re.compile("units.md"))
    expect(hits).to_have_count(1)
    expect(hits.locator("mark")).to_have_text(["metres", "SI"])
    page.screenshot("browser-search", root)
    hits.click()
    expect(content(root)).to_contain_text("Lengths are in metres")
    box.press("Enter")
    hits.press("Escape")
    expect(root.get_by_role("tree")).to_be_focused()
    expect(memory(root, "plan.md")).to_be_visible()


def test_an_earlier_version_is_read_and_two_are_compared(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    open_memory(root, "units.md")
    look_at(root, 1)
    expect(content(root)).to_contain_text("Lengths are in feet")
    page.tab.keyboard.press("c")
    look_at(root, 3)
    expect(content(root)).to_contain_text("as everything is in SI")
    page.tab.keyboard.press("d")
    difference = root.locator("table")
    expect(difference.locator("del").first).to_be_visible()
    expect(difference).to_contain_text("feet")
    expect(difference).to_contain_text("seconds")
    sides = difference.get_by_role("columnheader")
    expect(sides).to_contain_text([re.compile("@1 created by user_"), re.compile("@3 modified by user_")])
    page.screenshot("browser-compare", root)
    page.tab.keyboard.press("Escape")
    expect(difference).to_have_count(0)


def test_deleted_memories_are_found_and_come_back(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    expect(memory(root, "old.md")).to_have_count(0)
    button(root, "Deleted").click()
    expect(memory(root, "old.md")).to_contain_text("deleted")
    memory(root, "old.md").click()
    expect(content(root)).to_contain_text(re.compile(r"@2: deleted by user_"))
    look_at(root, 1)
    expect(content(root)).to_contain_text("gone soon")
    button(root, "Restore…").click()
    page.screenshot("browser-restore", root)
    button(root, "Restore").click()
    expect(memory(root, "old.md")).not_to_contain_text("deleted")
    assert notes.read("/old.md") == "gone soon\n"


def test_two_thousand_memories_are_a_few_rows_in_the_page(lab: Lab, somebody_else: mk.Connection) -> None:
    notes = somebody_else.store("Team notes", create=True)
    for number in range(2_000):
        notes.write(f"/part{number % 20:02}/note{number:04}.md", f"needle {number}")
    page, root = browser(lab)
    expect(root).to_contain_text("2,000 memories")
    assert root.get_by_role("treeitem").count() < 100
    root.get_by_role("searchbox").fill("note1999")
    expect(root.get_by_role("treeitem")).to_have_count(1)
    expect(root.get_by_role("treeitem")).to_have_attribute("aria-setsize", "1")
    root.get_by_role("searchbox").fill("note")
    expect(root.get_by_role("treeitem").first).to_have_attribute("aria-setsize", "2000")
    assert root.locator("*").count() < 1_500
    root.get_by_role("tree").press("End")
    expect(root.get_by_role("treeitem").filter(has_text="note1999.md")).to_be_visible()
    page.screenshot("browser-2000", root)


def test_a_thousand_versions_are_a_few_rows_in_the_page(lab: Lab, somebody_else: mk.Connection) -> None:
    notes = somebody_else.store("Team notes", create=True)
    for number in range(1_000):
        notes.write("/a.md", f"text {number}\n")
    page, root = browser(lab, "%memory browse /a.md")
    history = root.get_by_role("listbox")
    expect(history.get_by_role("option").first).to_contain_text("@1000")
    assert history.get_by_role("option").count() < 60
    for ordinal in range(941, 1, -100):  # the first 60 are in the state; each end is the end of what has come so far
        history.press("End")
        expect(version(root, ordinal)).to_be_visible()
        expect(history.locator("> *")).to_have_css("height", re.compile(rf"{44 * min(1_101 - ordinal, 1_000)}px"))
    history.press("End")
    expect(version(root, 1)).to_be_visible()
    look_at(root, 1)
    expect(content(root)).to_contain_text("text 0")
    expect(version(root, 1)).to_contain_text("+1 −0")
    page.screenshot("browser-1000", root)


# -- changing --------------------------------------------------------------------------------------


def edit(root: Locator, name: str) -> Locator:
    """Open the editor of a memory."""
    open_memory(root, name)
    button(root, "Edit").click()
    area = root.get_by_role("textbox", name="Text")
    expect(area).to_be_focused()
    return area


def test_a_memory_is_edited_and_saved_by_key(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab, IMPORT, f"told = []\n{BROWSER}\nbox.on_event(lambda *event: told.append(event))")
    open_memory(root, "people.md")
    content(root).focus()
    page.tab.keyboard.press("e")
    area = root.get_by_role("textbox", name="Text")
    expect(area).to_have_value("Ann\nBob\n")
    area.press("Control+End")
    page.tab.keyboard.type("Carol\n")  # Enter, too: Lab would keep it from a textarea within a cell
    page.screenshot("browser-edit", root)
    area.press("Control+s")
    expect(area).to_be_hidden()
    expect(content(root)).to_contain_text("Carol")
    assert notes.read("/team/people.md") == "Ann\nBob\nCarol\n"
    assert "'edit_saved'" in page.value("[name for name, facts in told]")


def test_an_edit_over_a_change_has_three_ways_on(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    area = edit(root, "people.md")
    notes.write("/team/people.md", "Ann\nDave\n")
    area.fill("Ann\nCarol\n")
    button(root, "Save").click()
    expect(root).to_contain_text("/team/people.md was changed while you edited it, by person user_")
    assert notes.read("/team/people.md") == "Ann\nDave\n"
    page.screenshot("browser-conflict", root)
    button(root, "Open diff").click()
    expect(root.locator("table")).to_contain_text("Dave")
    expect(root.locator("table")).to_contain_text("Carol")
    page.screenshot("browser-conflict-diff", root)
    button(root, "Keep mine").click()
    expect(content(root)).to_contain_text("Carol")
    assert notes.read("/team/people.md") == "Ann\nCarol\n"
    assert [each.ordinal for each in notes.log("/team/people.md")] == [3, 2, 1]

    area = edit(root, "people.md")
    notes.write("/team/people.md", "Eve\n")
    area.fill("mine")
    button(root, "Save").click()
    button(root, "Take theirs").click()
    expect(content(root)).to_contain_text("Eve")
    assert notes.read("/team/people.md") == "Eve\n"


def test_an_edit_is_not_lost_by_a_click(lab: Lab, notes: mk.Store) -> None:
    _, root = browser(lab)
    area = edit(root, "people.md")
    area.fill("not saved")
    memory(root, "plan.md").click()
    expect(root).to_contain_text("Give up what you changed?")
    button(root, "Cancel").first.click()
    expect(area).to_have_value("not saved")
    memory(root, "plan.md").click()
    button(root, "Give up").click()
    expect(content(root)).to_contain_text("Plan")
    assert notes.read("/team/people.md") == "Ann\nBob\n"


def test_carriage_returns_survive_the_editor(lab: Lab, notes: mk.Store) -> None:
    notes.write("/crlf.md", "one\r\ntwo\r\n")
    _, root = browser(lab)
    area = edit(root, "crlf.md")
    area.fill("one\nzwei\n")
    button(root, "Save").click()
    expect(area).to_be_hidden()
    assert notes.read("/crlf.md") == "one\r\nzwei\r\n"
    notes.write("/mixed.md", "one\r\ntwo\n")
    button(root, "Read the store again").click()
    open_memory(root, "mixed.md")
    button(root, "Edit").click()
    expect(root).to_contain_text("carriage returns")
    expect(area).to_be_hidden()


def test_a_memory_is_made_renamed_and_deleted(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab)
    button(root, "New…").click()
    root.get_by_role("textbox", name="Text").fill("made here")
    button(root, "Save").click()
    question = root.get_by_role("alertdialog")
    question.get_by_role("textbox", name="Path of the new memory").fill("/new.md")
    button(question, "Save").click()
    expect(memory(root, "new.md")).to_be_visible()
    assert notes.read("/new.md") == "made here"

    button(root, "Rename…").click()
    root.get_by_role("textbox", name="Rename to").fill("/team/made.md")
    button(root, "Rename").click()
    expect(memory(root, "made.md")).to_be_visible()
    expect(root).to_have_attribute("data-ready", "/team/made.md@2")

    notes.write("/team/made.md", "changed meanwhile")
    button(root, "Delete…").click()
    page.screenshot("browser-delete", root)
    button(root, "Delete").click()
    expect(root).to_contain_text("Delete it all the same?")
    button(root, "Delete").click()
    expect(memory(root, "made.md")).to_have_count(0)
    assert "/team/made.md" not in [each.path for each in notes.ls("/", depth=0)]


def test_a_redaction_wants_the_number_and_clears_the_view(lab: Lab, notes: mk.Store) -> None:
    notes.write("/key.md", "hunter2")
    notes.write("/key.md", "no longer here")
    page, root = browser(lab, "%memory browse /key.md")
    look_at(root, 1)
    expect(content(root)).to_contain_text("hunter2")
    button(root, "Redact…").click()
    erase = button(root, "Redact for ever")
    expect(erase).to_be_disabled()
    root.get_by_label("Type 1 to confirm").fill("1")
    page.screenshot("browser-redact", root)
    erase.click()
    expect(content(root)).to_contain_text("redacted by user_")
    expect(root).not_to_contain_text("hunter2")
    assert notes.version("/key.md", 1).redacted_at is not None
    assert "hunter2" not in str(page.save())


def test_an_archived_store_is_only_looked_at(lab: Lab, notes: mk.Store) -> None:
    notes.archive()
    page, root = browser(lab)
    open_memory(root, "units.md")
    expect(root).to_contain_text("archived, so read only")
    look_at(root, 1)
    expect(content(root)).to_contain_text("feet")
    for name in ("New…", "Edit", "Rename…", "Delete…", "Restore…", "Redact…"):
        expect(button(root, name).filter(visible=True)).to_have_count(0)
    page.screenshot("browser-archived", root)


# -- around it -------------------------------------------------------------------------------------


def test_without_a_store_in_use_one_is_chosen(lab: Lab, notes: mk.Store, somebody_else: mk.Connection) -> None:
    somebody_else.create_store("Handbook", description="House rules")
    page = lab.open(["%memory"])
    page.run(1)
    root = page.widget(1)
    expect(root).to_contain_text("House rules")
    page.screenshot("browser-stores", root)
    root.get_by_role("button", name=re.compile("Team notes")).click()
    expect(memory(root, "units.md")).to_be_visible()
    button(root, "Stores").click()
    expect(root).to_contain_text("House rules")


def test_where_it_is_narrow_there_is_one_pane_at_a_time(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab, size=(760, 900))
    expect(root.get_by_role("tree")).to_be_visible()
    expect(root.get_by_role("listbox")).to_be_hidden()
    memory(root, "units.md").click()
    expect(content(root)).to_be_visible()
    expect(root.get_by_role("tree")).to_be_hidden()
    page.screenshot("browser-narrow", root)
    root.get_by_role("button", name=re.compile("history", re.IGNORECASE)).click()
    expect(version(root, 2)).to_be_visible()


def test_stored_text_is_never_markup(lab: Lab, notes: mk.Store) -> None:
    evil = "<img src=x onerror=alert(1)> [link](http://example.org/x) <script>document.title='bad'</script> \u202eabc\0"
    notes.write("/<b>bold<b>.md", evil)
    page, root = browser(lab)
    open_memory(root, "<b>bold<b>.md")
    for view in ("Preview", "Source"):
        button(root, view).click()
        expect(content(root)).to_contain_text("<img src=x onerror=alert(1)>")
        assert content(root).locator("img, script, a").count() == 0
    expect(content(root)).to_contain_text("⟨U+202E⟩abc⟨NUL⟩")
    page.screenshot("browser-evil", root)


def test_python_and_the_page_see_the_same(lab: Lab, notes: mk.Store) -> None:
    page, root = browser(lab, IMPORT, BROWSER)
    open_memory(root, "units.md")
    page.tab.wait_for_timeout(300)
    assert page.value("box.selected") == "'/units.md'"
    page.value("setattr(box, 'selected', '/plan.md')")
    expect(root).to_have_attribute("data-ready", "/plan.md@2")
    notes.write("/plan.md", "# New plan\n")
    page.value("box.refresh()")
    expect(content(root)).to_contain_text("New plan")


def test_it_reads_well_when_it_is_opened_again(lab: Lab, notes: mk.Store, tmp_path: Path) -> None:
    page, root = browser(lab)
    open_memory(root, "units.md")
    page.save()
    again = lab.reopen(page)
    expect(again.static(2)).to_contain_text("/team/people.md")
    again.screenshot("browser-reopened")
