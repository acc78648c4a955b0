"""VersionDiff in JupyterLab: step, mark, fold, compare with any version, restore, redact, copy (UX section 3.2)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from tests.fix_lab import Lab
from tests.lab_page import PATIENCE_S, NotebookPage

INTRO = "".join(f"- rule {number}\n" for number in range(1, 31))
TEXTS = (
    f"# Units\nUse SI units.\n{INTRO}Answer in one line.\n",
    f"# Units\nUse SI units, always.\n{INTRO}Answer in one line.\n",
    f"# Units\nUse SI units, always.\n{INTRO}Answer  in one  line.\nAsk when unsure.\n",
    f"# Units\nUse metric units, always.\n{INTRO}Answer in two lines.\nAsk when unsure.\n",
)
SECRET = "The key is 4711.\n"


@pytest.fixture
def notes(somebody_else: mk.Connection) -> mk.Store:
    """A store of the kernel's database, with one memory of four versions."""
    store = somebody_else.store("Team notes", create=True)
    for text in TEXTS:
        store.write("/units.md", text)
    return store


def opened(lab: Lab, line: str = "%memory diff /units.md", **how: object) -> tuple[NotebookPage, Locator]:
    """The widget that a line shows, once it is painted."""
    page = lab.open(['%memory use "Team notes"', f"found = {line}\nw = found.show()"], **how)  # pyright: ignore[reportArgumentType]  # Lab.open's own options
    page.run(1)
    page.run(2)
    return page, page.widget(2)


def ready(widget: Locator, token: str) -> None:
    """Until the view of this version is painted in this layout."""
    expect(widget).to_have_attribute("data-ready", token, timeout=PATIENCE_S * 1000)


def said(widget: Locator, words: str | re.Pattern[str]) -> None:
    """Until it is told to those who do not see it."""
    expect(widget.locator("[role=status]").last).to_have_text(words, timeout=PATIENCE_S * 1000)


def words(widget: Locator, tag: str) -> list[str]:
    """The words that are marked as having changed."""
    return widget.locator(f"{tag}.mk-word").all_inner_texts()


# -- looking -------------------------------------------------------------------------------------


def test_the_last_change_is_seen_side_by_side_with_its_words(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    ready(widget, "3:split")
    expect(widget.get_by_text("+2 −2 in 2 places")).to_be_visible()
    assert words(widget, "del")[:1] == ["SI"]
    assert words(widget, "ins")[:1] == ["metric"]
    expect(widget.locator("thead th").first).to_contain_text("@3 modified by user_")
    expect(widget.locator("thead th").last).to_contain_text("@4 modified by user_")
    assert not page.static(2).is_visible()
    page.screenshot("version-diff-light", widget)


def test_in_a_dark_lab_it_is_dark(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, dark=True)
    ready(widget, "3:split")
    page.screenshot("version-diff-dark", widget)
    background, text = widget.evaluate("root => [getComputedStyle(root).backgroundColor, getComputedStyle(root).color]")
    assert brightness(background) < 60
    assert brightness(text) > 180


def brightness(colour: str) -> float:
    red, green, blue = (int(each) for each in re.findall(r"\d+", colour)[:3])
    return (red + green + blue) / 3


def test_steps_by_key_by_button_and_by_slider(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    widget.locator(".mk-diff-box").focus()
    widget.press("[")
    ready(widget, "2:split")
    said(widget, re.compile(r"@3.*: \d lines? added, \d removed in \d places?"))
    widget.press("Home")
    ready(widget, "0:split")
    expect(widget.locator("thead th").first).to_have_text("nothing")
    widget.get_by_role("button", name="Newer version").or_(widget.get_by_title("Newer version (])")).first.click()
    ready(widget, "1:split")
    assert words(widget, "ins") == [", always"]
    slider = widget.get_by_role("slider", name="Version")
    slider.fill("3")
    ready(widget, "2:split")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"@3.*modified"))
    slider.press("End")
    ready(widget, "3:split")
    assert page.value("(w.index, w.base)") == "(3, 'prev')"


def test_what_python_sets_is_seen_and_what_the_person_does_is_told(lab: Lab, notes: mk.Store) -> None:
    page = lab.open(
        [
            '%memory use "Team notes"',
            "w = (%memory diff /units.md)"
            if False
            else "from IPython import get_ipython\n"
            "w = get_ipython().run_line_magic('memory', 'diff /units.md').show()\n"
            "told = []\nw.on_event(lambda name, facts: told.append((name, facts['index'], facts['base'])))",
            "w.index, w.base = 2, 0",
        ]
    )
    for index in (1, 2):
        page.run(index)
    widget = page.widget(2)
    ready(widget, "3:split")
    page.run(3)
    ready(widget, "2:split")
    expect(widget.locator("thead th").first).to_contain_text("@1 created by user_")
    widget.locator(".mk-diff-box").focus()
    widget.press("[")
    ready(widget, "1:split")
    assert page.value("told[-1]") == "('step', 1, 0)"


def test_any_version_is_the_base(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, "%memory diff /units.md@2 @4")
    ready(widget, "3:split")
    expect(widget.locator("thead th").first).to_contain_text("@2 modified")
    base = widget.get_by_label("compared with")
    base.select_option("0")
    expect(widget.locator("thead th").first).to_contain_text("@1 created")
    widget.locator(".mk-diff-box").focus()
    widget.press("[")
    ready(widget, "2:split")
    expect(widget.locator("thead th").first).to_contain_text("@1 created")
    widget.press("b")
    expect(widget.locator("thead th").first).to_contain_text("@2 modified")
    base.select_option("")
    expect(widget.locator("thead th").first).to_have_text("nothing")
    assert page.value("w.base") == "''"


def test_words_white_space_layout_and_wrapping_are_toggled_and_remembered(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, "%memory diff /units.md@2 @3")
    ready(widget, "2:split")
    box = widget.locator(".mk-diff-box")
    box.focus()
    expect(widget.locator(".mk-stats")).to_have_text("+2 −1 in 1 place")
    widget.press("i")
    expect(widget.locator(".mk-stats")).to_have_text("+1 −0 in 1 place")
    widget.press("u")
    ready(widget, "2:unified")
    for key, name in (("w", "Words"), ("l", "Wrap"), ("f", "Fold")):
        button = widget.get_by_role("button", name=name, exact=True)
        expect(button).to_have_attribute("aria-pressed", "true")
        widget.press(key)
        expect(button).to_have_attribute("aria-pressed", "false")
    expect(widget.locator(".mk-fold")).to_have_count(0)
    expect(widget.locator("tbody tr")).to_have_count(len(TEXTS[2].splitlines()))
    page.screenshot("version-diff-unified", widget)
    remembered = "[get_ipython().find_line_magic('memory')(f'config diff_{name}') for name in ('mode', 'whitespace')]"
    assert page.value("(w.mode, w.word_level, w.fold, w.ignore_ws, w.wrap)") == "('unified', False, False, True, False)"
    assert re.findall(r"diff_\w+ +(\w+)", page.value(remembered)) == ["unified", "ignore"]


def test_folded_lines_are_shown_ten_at_a_time_or_all(lab: Lab, notes: mk.Store) -> None:
    _, widget = opened(lab)
    ready(widget, "3:split")
    fold = widget.locator(".mk-fold")
    expect(fold).to_contain_text("24 unchanged lines")
    fold.get_by_role("button", name="↓ 10").click()
    expect(fold).to_contain_text("14 unchanged lines")
    fold.get_by_role("button", name="↑ 10").click()
    rest = fold.get_by_role("button", name=re.compile("⋯ 4 unchanged lines"))
    rest.click()
    expect(fold).to_have_count(0)
    shown = widget.locator("tbody .mk-cell").all_inner_texts()
    assert [line for line in shown[::2] if line.startswith("- rule")] == INTRO.splitlines()


def test_changes_are_walked_by_key(lab: Lab, notes: mk.Store) -> None:
    _, widget = opened(lab)
    ready(widget, "3:split")
    widget.locator(".mk-diff-box").focus()
    widget.press("n")
    said(widget, "Change 1 of 2")
    widget.press("F7")
    said(widget, "Change 2 of 2")
    expect(widget.locator("tr:focus")).to_contain_text("Answer")
    widget.press("Shift+F7")
    said(widget, "Change 1 of 2")
    widget.press("?")
    keys = widget.get_by_role("dialog", name="Keys")
    for title in ("Older version", "Next change", "Words", "Copy the patch"):
        expect(keys.get_by_text(title)).to_be_visible()
    widget.press("Escape")
    expect(keys).to_be_hidden()


def test_the_patch_is_copied(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    ready(widget, "3:split")
    lab.browser.grant_permissions(["clipboard-read", "clipboard-write"])
    widget.get_by_role("button", name="Copy patch").click()
    said(widget, "The patch is on the clipboard")
    assert page.tab.evaluate("() => navigator.clipboard.readText()") == notes.diff("/units.md").patch


def test_a_narrow_page_gets_one_column(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab, size=(640, 900))
    ready(widget, "3:unified")
    page.screenshot("version-diff-narrow", widget)
    signs = widget.locator("tbody .mk-went, tbody .mk-came").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    assert [sign.strip('" ')[0] for sign in signs] == ["−", "+", "−", "+"]


def test_stored_text_is_never_markup_and_what_cannot_be_seen_is_marked(lab: Lab, notes: mk.Store) -> None:
    notes.write("/odd.md", "a line\n")
    notes.write(
        "/odd.md", "<img src=http://192.0.2.1/x onerror=alert(1)>\u202eevil\x1b[31m [link](http://192.0.2.1/)\n"
    )
    page, widget = opened(lab, "%memory diff /odd.md")
    ready(widget, "1:split")
    assert widget.locator("img, a, script").count() == 0
    assert widget.locator(".mk-mark").all_inner_texts() == ["⟨U+202E⟩", "⟨ESC⟩"]
    page.screenshot("version-diff-marks", widget)


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [("x " * 51_200, "y " + "x " * 51_199, 1), ("a\n" * 51_200, "b\n" * 51_200, 200)],
    ids=["one line of 102,400 bytes", "50,000 lines of one character"],
)
def test_the_worst_texts_stay_responsive(lab: Lab, notes: mk.Store, old: str, new: str, rows: int) -> None:
    notes.write("/worst.md", old)
    notes.write("/worst.md", new)
    page, widget = opened(lab, "%memory diff /worst.md")
    ready(widget, "1:split")
    expect(widget.locator("tbody tr")).to_have_count(rows, timeout=PATIENCE_S * 1000)
    if rows > 1:
        widget.get_by_role("button", name="Show next rows, 102,200 are left").click()
        said(widget, "2,000 more rows")
    assert widget.evaluate("root => root.querySelectorAll('*').length") < 20_000
    widget.locator(".mk-diff-box").focus()
    widget.press("[")
    ready(widget, "0:split")
    assert page.value("w.index") == "0"


# -- changing ------------------------------------------------------------------------------------


def test_restore_writes_a_new_version_and_shows_it(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    expect(widget.get_by_role("button", name="Restore…")).to_be_disabled()
    widget.locator(".mk-diff-box").focus()
    widget.press("Home")
    ready(widget, "0:split")
    widget.get_by_role("button", name="Restore…").click()
    dialog = widget.get_by_role("alertdialog")
    expect(dialog).to_contain_text("Write the text of @1 as a new version of /units.md?")
    page.screenshot("version-diff-restore", widget)
    dialog.get_by_role("button", name="Restore", exact=True).click()
    ready(widget, "4:split")
    expect(widget.locator(".mk-facts")).to_have_text("@5 of 5")
    assert notes.read("/units.md") == TEXTS[0]
    assert len(notes.log("/units.md")) == 5


def test_fault_25_a_head_that_moved_is_told_and_asked_about_once_more(lab: Lab, notes: mk.Store) -> None:
    """Fault 25."""
    _, widget = opened(lab)
    widget.locator(".mk-diff-box").focus()
    widget.press("Home")
    ready(widget, "0:split")
    notes.write("/units.md", "Written meanwhile.\n")
    widget.get_by_role("button", name="Restore…").click()
    dialog = widget.get_by_role("alertdialog")
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(dialog).to_contain_text("Meanwhile there is @5 modified by user_")
    assert notes.read("/units.md") == "Written meanwhile.\n"
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(dialog).to_have_count(0)
    assert notes.read("/units.md") == TEXTS[0]


def test_a_redaction_wants_its_number_and_clears_what_is_shown_and_saved(lab: Lab, notes: mk.Store) -> None:
    for text in ("first\n", SECRET, "gone\n", SECRET, "gone again\n"):
        notes.write("/keys.md", text)
    page, widget = opened(lab, "%memory diff /keys.md@2 @3")
    ready(widget, "2:split")
    expect(widget.get_by_text("The key is 4711.")).to_be_visible()
    widget.locator(".mk-diff-box").focus()
    widget.press("[")
    ready(widget, "1:split")
    widget.get_by_role("button", name="Redact…").click()
    dialog = widget.get_by_role("alertdialog", name="Redact @2")
    expect(dialog).to_contain_text("Notebooks that were saved earlier keep what they showed.")
    erase = dialog.get_by_role("button", name="Redact for ever")
    expect(erase).to_be_disabled()
    dialog.get_by_role("textbox").fill("3")
    expect(erase).to_be_disabled()
    dialog.get_by_label("also redact the other version holding this text").check()
    dialog.get_by_role("textbox").fill("2")
    page.screenshot("version-diff-redact", widget)
    erase.click()
    expect(dialog).to_have_count(0)
    expect(widget.get_by_text(re.compile("@2: redacted by user_.*notebooks saved earlier keep"))).to_be_visible()
    page.screenshot("version-diff-redacted", widget)
    assert "4711" not in widget.inner_text()
    assert [version.redacted_at is None for version in notes.log("/keys.md")] == [True, False, True, False, True]
    assert "4711" not in str(page.save())
    widget.locator(".mk-diff-box").focus()
    widget.press("]")
    ready(widget, "2:split")
    assert "4711" not in widget.inner_text()


def test_the_head_is_not_redacted_and_the_way_out_is_told(lab: Lab, notes: mk.Store) -> None:
    _, widget = opened(lab)
    widget.get_by_role("button", name="Redact…").click()
    dialog = widget.get_by_role("alertdialog")
    expect(dialog).to_contain_text("@4 is the current text of /units.md")
    expect(dialog).to_contain_text("Restore another version or edit the memory first")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


# -- without its kernel --------------------------------------------------------------------------


def test_the_saved_notebook_shows_what_was_looked_at_last(lab: Lab, notes: mk.Store) -> None:
    page, widget = opened(lab)
    widget.locator(".mk-diff-box").focus()
    widget.press("Home")
    ready(widget, "0:split")
    widget.press("]")
    ready(widget, "1:split")
    expect(page.static(2)).to_contain_text("@1 → @2", timeout=PATIENCE_S * 1000)
    page.save()
    again = lab.reopen(page)
    assert again.static(2).is_visible()
    assert "+ Use SI units, always." in again.text(2)
    again.screenshot("version-diff-reopened", again.output(2))
    bare = lab.untrusted(again)
    assert "+ Use SI units, always." in bare.text(2)
    bare.screenshot("version-diff-untrusted", bare.output(2))


def test_a_kernel_that_is_gone_is_said_in_one_line(lab: Lab, notes: mk.Store) -> None:
    _, widget = opened(lab)
    ready(widget, "3:split")
    lab.kill_kernels()
    widget.get_by_role("button", name="Copy patch").click()
    line = widget.get_by_role("alert")
    expect(line).to_contain_text(re.compile("the kernel is busy or gone; what is shown is as of 20"), timeout=60_000)
    expect(line.get_by_role("button", name="Retry")).to_be_visible()
    expect(widget.get_by_text("+2 −2 in 2 places")).to_be_visible()
