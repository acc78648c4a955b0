"""A run in the browser: it streams, its button stops a plain cell, it shows what its calls changed, and it stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from memkernel.agent.script import Failure, Reply, Thinking, ToolUse, reply
from tests.fix_agent import Scripted
from tests.fix_lab import Lab
from tests.lab_page import PATIENCE_S, NotebookPage

USE = '%memory use "Team notes" --create -q'
CREATE = {"command": "create", "path": "/memories/units.md", "file_text": "Lengths in metres.\nMasses in kilograms.\n"}
CHANGE = {
    "command": "str_replace",
    "path": "/memories/units.md",
    "old_str": "Masses in kilograms.",
    "new_str": "Masses in grams.",
}
MISSING = {"command": "view", "path": "/memories/nowhere.md"}
DONE = reply("I changed the masses. Stored text is never markup: <b>bold</b> \u202e and so on.")

expect.set_options(timeout=PATIENCE_S * 1000)

Speaks = Callable[..., Lab]


@pytest.fixture
def speaks(lab: Lab, scripted: Scripted) -> Speaks:
    """Let the kernels' Anthropic API answer so."""

    def follow(*replies: Reply | Failure) -> Lab:
        lab.environment |= {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": scripted(*replies).url}
        return lab

    return follow


def whole_run(speaks: Speaks) -> Lab:
    """A run of several turns, with a thought, calls that change and one that fails."""
    return speaks(
        reply(Thinking("They asked for grams."), "I look at it first.", ToolUse("memory", CREATE)),
        reply(ToolUse("memory", CHANGE), ToolUse("memory", MISSING)),
        DONE,
    )


def entries(widget: Locator) -> Locator:
    """What was said and done."""
    return widget.locator(".mk-run-entry")


def begin(page: NotebookPage, index: int, words: str) -> Locator:
    """Start a cell with a run, and wait until it says something; its widget."""
    page.start(index)
    widget = page.widget(index)
    expect(widget.locator(".mk-run-text").last).to_contain_text(words)
    return widget


# -- stop ----------------------------------------------------------------------------------------------


def test_the_button_stops_a_plain_cell_while_it_runs(speaks: Speaks) -> None:
    lab = speaks(reply("I talk and talk. " * 5, breaks="hangs"), reply("Well again."))
    page = lab.open([USE, "%%agent -o run\nTalk to me", "%%agent\nAnd now?"])
    page.run(1)
    widget = begin(page, 2, "I talk and talk.")
    expect(page.cell(2).locator(".jp-InputArea-prompt").first).to_have_text("[*]:")
    widget.get_by_role("button", name="Stop").click()
    expect(widget).to_have_attribute("data-status", "stopped")
    expect(entries(widget).last).to_contain_text("Stopped by the user.")
    expect(widget.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.cell(2).locator(".jp-InputArea-prompt").first).to_have_text(re.compile(r"\[\d+\]"))
    assert "the run was stopped" in page.text(2)
    page.run(3)
    expect(page.widget(3)).to_contain_text("Well again.")


def test_the_button_stops_a_run_of_a_thread(speaks: Speaks) -> None:
    lab = speaks(reply("I talk and talk. " * 5, breaks="hangs"))
    page = lab.open(
        [USE, "import memkernel as mk\nrun = mk.Agent(store=mk.connect().store('Team notes')).start('Talk')"]
    )
    page.run(1)
    page.run(2)
    widget = page.widget(2)
    expect(widget).to_contain_text("I talk and talk.")
    widget.get_by_role("button", name="Stop").click()
    expect(widget).to_have_attribute("data-status", "stopped")
    assert page.value("run.wait(30).status") == "'stopped'"


def test_the_notebooks_own_interrupt_stops_it_too(speaks: Speaks) -> None:
    lab = speaks(reply("I talk and talk. " * 5, breaks="hangs"))
    page = lab.open([USE, "%%agent\nTalk to me"])
    page.run(1)
    widget = begin(page, 2, "I talk and talk.")
    page.interrupt()
    expect(widget).to_have_attribute("data-status", "stopped")


# -- what is seen ----------------------------------------------------------------------------------------


def test_a_run_shows_its_turns_calls_and_tokens_and_opens_what_a_call_changed(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, "%%agent -o run\nChange the masses to grams"])
    page.run(1)
    page.run(2)
    widget = page.widget(2)
    expect(widget).to_have_attribute("data-status", "done")
    head = widget.locator(".mk-bar").first
    for words in ("claude-sonnet-5-5", "on Team notes", "done", "turn 3 of 50", "tokens in"):
        expect(head).to_contain_text(words)
    thinking = widget.locator(".mk-run-thinking")
    expect(thinking.locator(".mk-run-words")).to_be_hidden()
    thinking.locator("summary").click()
    expect(thinking.locator(".mk-run-words")).to_have_text("They asked for grams.")
    calls = widget.locator(".mk-run-tool > details")
    expect(calls).to_have_count(3)
    calls.nth(2).locator("summary").click()
    expect(calls.nth(2)).to_contain_text("error")
    expect(calls.nth(2).get_by_role("region", name="Error")).to_contain_text("/memories/nowhere.md does not exist")
    expect(widget.locator(".mk-run-text").last).to_contain_text("never markup: <b>bold</b> ⟨U+202E⟩ and so on.")
    version = widget.get_by_role("button", name="/units.md @2")
    expect(version).to_contain_text("+1 −1")
    version.click()
    diff = widget.locator(".mk-diff")
    expect(diff.locator("del")).to_contain_text("kilograms")
    expect(diff.locator("ins")).to_contain_text("grams")
    version.click()
    expect(diff).to_have_count(0)


def test_a_retry_drops_what_its_turn_had_said(speaks: Speaks) -> None:
    lab = speaks(reply("Half a sent", breaks="error"), reply("A whole sentence."))
    page = lab.open([USE, "%%agent\nSay something"])
    page.run(1)
    page.run(2)
    widget = page.widget(2)
    expect(widget).to_have_attribute("data-status", "done")
    expect(widget).to_contain_text("trying again")
    expect(widget).not_to_contain_text("Half a sent")
    assert "Half a sent" not in page.static(2).inner_text()


def test_it_follows_the_newest_until_the_reader_scrolls_up(speaks: Speaks) -> None:
    lab = speaks(reply("A line of many.\n" * 2_000, pause_s=0.02))
    page = lab.open([USE, "%%agent\nTalk to me"])
    page.run(1)
    widget = begin(page, 2, "A line of many.")
    log = widget.get_by_role("log")
    at_end = "log => log.scrollTop > 200 && log.scrollTop + log.clientHeight >= log.scrollHeight - 30"
    page.tab.wait_for_function(at_end, arg=log.element_handle())
    log.evaluate("log => { log.scrollTop = 0; }")
    newest = widget.get_by_role("button", name="Newest")
    expect(newest).to_be_visible()
    words = log.inner_text()
    page.tab.wait_for_function("([log, words]) => log.innerText !== words", arg=[log.element_handle(), words])
    assert log.evaluate("log => log.scrollTop") == 0
    newest.click()
    page.tab.wait_for_function(at_end, arg=log.element_handle())
    page.interrupt()
    expect(widget).to_have_attribute("data-status", "stopped")


def test_a_view_that_is_opened_in_the_middle_shows_what_was_missed(speaks: Speaks) -> None:
    lab = speaks(reply("I talk and talk. " * 5, breaks="hangs"))
    page = lab.open([USE, "%%agent\nTalk to me"])
    page.run(1)
    begin(page, 2, "I talk and talk.")
    page.tab.evaluate("jupyterapp.commands.execute('notebook:create-output-view')")
    other = page.tab.locator(".jp-LinkedOutputView .mk[data-ready]")
    expect(other.locator(".mk-run-text")).to_contain_text("I talk and talk. I talk and talk.")
    other.get_by_role("button", name="Stop").click()
    for widget in (page.widget(2), other):
        expect(widget).to_have_attribute("data-status", "stopped")


# -- what stays ------------------------------------------------------------------------------------------


def test_it_stays_readable_when_the_kernel_is_gone_and_when_it_was_never_there(speaks: Speaks) -> None:
    lab = whole_run(speaks)
    page = lab.open([USE, "%%agent -o run\nChange the masses to grams"])
    page.run(1)
    page.run(2)
    expect(page.widget(2)).to_have_attribute("data-status", "done")
    expect(page.static(2)).to_be_hidden()
    page.save()
    again = lab.reopen(page)
    expect(again.static(2)).to_be_visible()
    for words in (
        "done",
        "memory create /memories/units.md",
        "+ /units.md @1 +2 −0",
        "I changed the masses.",
        "tokens in",
    ):
        expect(again.static(2)).to_contain_text(words)
    expect(lab.untrusted(again).static(2)).to_contain_text("I changed the masses.")


# -- pictures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures(speaks: Speaks, dark: bool) -> None:
    lab = speaks(
        reply(Thinking("They asked for grams."), "I look at it first.", ToolUse("memory", CREATE)),
        reply(ToolUse("memory", CHANGE), ToolUse("memory", MISSING)),
        DONE,
        reply("Half a sent", breaks="error"),
        reply("I talk and talk. " * 40, breaks="hangs"),
    )
    page = lab.open(
        [USE, "%%agent\nChange the masses to grams", "%%agent\nTalk to me", "%%agent -m scripted\nRemember x"],
        dark=dark,
    )
    theme = "dark" if dark else "light"
    page.run(1)
    page.run(2)
    widget = page.widget(2)
    expect(widget).to_have_attribute("data-status", "done")
    widget.locator(".mk-run-tool > details").nth(2).locator("summary").click()
    widget.get_by_role("button", name="/units.md @2").click()
    expect(widget.locator(".mk-diff ins")).to_be_visible()
    page.screenshot(f"agent-run-{theme}", widget)
    talking = begin(page, 3, "I talk and talk.")
    page.screenshot(f"agent-run-running-{theme}", talking)
    page.tab.set_viewport_size({"width": 620, "height": 900})
    page.screenshot(f"agent-run-narrow-{theme}", talking)
    page.tab.set_viewport_size({"width": 1280, "height": 900})
    talking.get_by_role("button", name="Stop").click()
    expect(talking).to_have_attribute("data-status", "stopped")
    page.run(4)
    expect(page.widget(4)).to_contain_text("scripted, not a language model")
    page.screenshot(f"agent-run-scripted-{theme}", page.output(4))
