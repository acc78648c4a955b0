"""A run in the browser: it streams, its button stops a plain cell, it shows what its calls changed, and it stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from memkernel.agent.script import Failure, Reply, Thinking, ToolUse, reply
from tests.browser.test_axe import CUT_OFF, violations
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


# -- approval ------------------------------------------------------------------------------------------

ASKING = "%%agent --approve ask -o run\nChange the masses to grams"


def waiting(page: NotebookPage, index: int) -> Locator:
    """Start a cell with a run, and wait until a call of it waits; its widget."""
    page.start(index)
    widget = page.widget(index)
    expect(widget).to_have_attribute("data-status", "waiting")
    return widget


def question(widget: Locator) -> Locator:
    """The answers that there are to the call that waits."""
    return widget.locator("[role=group]").filter(visible=True)


def test_a_call_is_approved_while_its_plain_cell_runs(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, ASKING])
    page.run(1)
    widget = waiting(page, 2)
    expect(page.cell(2).locator(".jp-InputArea-prompt").first).to_have_text("[*]:")
    expect(widget.locator(".mk-bar").first).to_contain_text("waiting for approval")
    expect(question(widget)).to_have_accessible_name("memory create /memories/units.md")
    expect(widget.get_by_role("region", name="Arguments")).to_contain_text("Lengths in metres.")
    question(widget).get_by_role("button", name="Approve", exact=True).click()
    expect(widget.locator(".mk-run-tool > details").nth(1)).to_contain_text("waits for your approval")
    expect(widget.locator(".mk-run-tool > details").nth(0)).to_contain_text("approved · ")
    expect(widget.get_by_role("button", name="/units.md @1")).to_be_visible()
    question(widget).get_by_role("button", name="Approve all of memory").click()
    expect(widget).to_have_attribute("data-status", "done")
    expect(widget.get_by_role("button", name="/units.md @2")).to_be_visible()


def test_a_call_is_denied_by_key_and_the_model_is_told_why(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, ASKING])
    page.run(1)
    widget = waiting(page, 2)
    expect(widget.get_by_role("status")).to_have_text("memory create /memories/units.md waits for your approval")
    widget.get_by_role("log").focus()
    page.tab.keyboard.press("a")
    expect(question(widget).get_by_role("button", name="Approve", exact=True)).to_be_focused()
    for _ in range(3):
        page.tab.keyboard.press("Tab")
    page.tab.keyboard.type("axb: no note?")  # none of these is a key of the view, or of the notebook
    page.tab.keyboard.press("Enter")
    denied = widget.locator(".mk-run-tool").first
    expect(denied.locator("summary")).to_contain_text("denied: axb: no note?")
    expect(denied.locator("summary")).to_be_focused()
    expect(widget).to_have_attribute("data-status", "waiting")
    page.tab.keyboard.press("a")
    page.tab.keyboard.press("Tab")
    page.tab.keyboard.press("Enter")
    expect(widget).to_have_attribute("data-status", "done")
    assert "not approved: axb: no note?" in page.value("str(run.messages)")
    assert page.value("len(run.changes)") == "0"


def test_a_run_that_waits_is_stopped(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, ASKING])
    page.run(1)
    widget = waiting(page, 2)
    widget.get_by_role("button", name="Stop").click()
    expect(widget).to_have_attribute("data-status", "stopped")
    expect(question(widget)).to_have_count(0)
    expect(widget.locator(".mk-run-tool summary").first).to_contain_text("not run")


def test_a_run_of_a_thread_is_answered_from_its_view(speaks: Speaks) -> None:
    agent = "mk.Agent(store=mk.connect().store('Team notes'), approve='ask')"
    page = whole_run(speaks).open([USE, f"import memkernel as mk\nrun = {agent}.start('Change the masses')"])
    page.run(1)
    page.run(2)
    widget = page.widget(2)
    question(widget).get_by_role("button", name="Approve all of memory").click()
    expect(widget).to_have_attribute("data-status", "done")
    assert page.value("run.wait(30).status") == "'done'"


def test_a_view_that_is_opened_while_a_call_waits_can_answer_it(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, ASKING])
    page.run(1)
    widget = waiting(page, 2)
    page.tab.evaluate("jupyterapp.commands.execute('notebook:create-output-view')")
    other = page.tab.locator(".jp-LinkedOutputView .mk[data-ready]")
    question(other).get_by_role("button", name="Approve all of memory").click()
    for view in (widget, other):
        expect(view).to_have_attribute("data-status", "done")


# -- the budget ------------------------------------------------------------------------------------------


def test_the_budget_warns_in_words_and_ends_the_run(speaks: Speaks) -> None:
    def used(tokens: int) -> dict[str, int]:
        return {"input_tokens": 1_000, "output_tokens": tokens}

    lab = speaks(
        reply("One.", ToolUse("memory", CREATE), usage=used(20_000)),
        reply("Two.", ToolUse("memory", CHANGE), usage=used(25_000)),
        reply("Three.", ToolUse("memory", MISSING), usage=used(9_000)),
    )
    lab.environment |= {"MEMKERNEL_PRICES": '{"claude-sonnet-5-5": [1, 10]}'}
    page = lab.open([USE, "%%agent --max-cost 0.5 --approve-tool memory=ask\nChange the masses to grams"])
    page.run(1)
    widget = waiting(page, 2)
    budget = widget.get_by_role("progressbar", name="Budget")
    head = widget.locator(".mk-bar").first
    expect(budget).to_have_attribute("data-level", "fine")
    expect(head).to_contain_text("$0.20 of $0.50 · 1,000 tokens in, 20,000 out")
    question(widget).get_by_role("button", name="Approve", exact=True).click()
    expect(budget).to_have_attribute("data-level", "near")
    expect(budget).to_have_attribute("aria-valuetext", "90 % of the budget used")
    expect(widget.get_by_role("status")).to_contain_text("waits for your approval")  # not talked over
    question(widget).get_by_role("button", name="Approve", exact=True).click()
    expect(budget).to_have_attribute("data-level", "full")
    question(widget).get_by_role("button", name="Approve", exact=True).click()
    expect(widget).to_have_attribute("data-status", "max_cost")
    expect(head).to_contain_text("out of budget")


# -- a run of before --------------------------------------------------------------------------------------


def test_a_kept_run_is_shown_again_and_nothing_is_executed(speaks: Speaks) -> None:
    page = whole_run(speaks).open(
        [USE, "%%agent -o run\nChange the masses to grams", "%agent replay last --speed 0.001", "%agent show last"]
    )
    page.run(1)
    page.run(2)
    page.start(3)
    widget = page.widget(3)
    head = widget.locator(".mk-bar").first
    expect(head).to_contain_text("shown again, nothing runs now")
    widget.get_by_role("button", name="Show the rest").click()
    expect(widget).to_have_attribute("data-status", "done")
    expect(widget.locator(".mk-run-tool")).to_have_count(3)
    widget.get_by_role("button", name="/units.md @2").click()
    expect(widget.locator(".mk-diff ins")).to_contain_text("grams")
    assert page.value("[version.ordinal for version in run.changes]") == "[1, 2]"
    page.run(4)
    expect(page.widget(4)).to_contain_text("I changed the masses.")


# -- a sandbox ----------------------------------------------------------------------------------------------


def test_a_call_of_a_sandbox_shows_what_it_changed(speaks: Speaks) -> None:
    folder = "/mnt/memory/team-notes"
    lab = speaks(
        reply(ToolUse("bash", {"command": f"printf 'grams\\n' > {folder}/masses.md; echo written"})),
        reply(ToolUse("read", {"file_path": f"{folder}/masses.md"})),
        reply("I wrote it."),
    )
    start = "%sandbox start dev --backend local --store team-notes -q"
    page = lab.open([USE, start, "%%agent --sandbox dev --allow-unisolated\nWrite the masses"])
    for index in (1, 2, 3):
        page.run(index)
    widget = page.widget(3)
    expect(widget).to_have_attribute("data-status", "done")
    calls = widget.locator(".mk-run-tool")
    expect(calls).to_have_count(2)
    expect(calls.nth(1).get_by_role("button")).to_have_count(0)
    calls.nth(0).get_by_role("button", name="/masses.md @1").click()
    expect(calls.nth(0).locator(".mk-diff ins")).to_contain_text("grams")


# -- from a version to its call --------------------------------------------------------------------------


def test_a_version_leads_to_the_call_that_made_it(speaks: Speaks) -> None:
    page = whole_run(speaks).open([USE, "%%agent\nChange the masses to grams", "%memory diff /units.md"])
    for index in (1, 2, 3):
        page.run(index)
    diff = page.widget(3)
    expect(diff.locator(".mk-dialog")).to_have_count(0)
    diff.get_by_role("button", name="@2 was made by").click()
    expect(page.widget(2).locator(".mk-run-tool summary").nth(1)).to_be_focused()
    pictures(page, diff, "diff-made-by")


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


def pictures(page: NotebookPage, widget: Locator, name: str) -> None:
    """A wide and a narrow one; nothing is cut off in either."""
    page.screenshot(name, widget)
    page.tab.set_viewport_size({"width": 620, "height": 900})
    page.screenshot(f"{name}-narrow", widget)
    assert widget.evaluate(CUT_OFF) == []
    page.tab.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.node
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
    pictures(page, talking, f"agent-run-running-{theme}")
    talking.get_by_role("button", name="Stop").click()
    expect(talking).to_have_attribute("data-status", "stopped")
    page.run(4)
    expect(page.widget(4)).to_contain_text("scripted, not a language model")
    page.screenshot(f"agent-run-scripted-{theme}", page.output(4))


@pytest.mark.node
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_of_a_call_that_waits_near_the_limit_and_of_a_run_of_before(speaks: Speaks, dark: bool) -> None:
    used = {"input_tokens": 1_000, "output_tokens": 42_000}
    lab = speaks(
        reply("I note it first.", ToolUse("memory", CREATE), usage=used),
        reply(Thinking("Grams."), "Then I change it.", ToolUse("memory", CHANGE)),
        DONE,
    )
    lab.environment |= {"MEMKERNEL_PRICES": '{"claude-sonnet-5-5": [1, 10]}'}
    limits = "--max-cost 0.5 --max-time 600 --approve ask"
    page = lab.open([USE, f"%%agent {limits}\nChange the masses to grams", "%agent replay last"], dark=dark)
    theme = "dark" if dark else "light"
    page.run(1)
    widget = waiting(page, 2)
    question(widget).get_by_role("button", name="Approve", exact=True).click()
    expect(widget.get_by_role("progressbar", name="Budget")).to_have_attribute("data-level", "near")
    expect(widget.locator(".mk-run-tool summary").nth(1)).to_contain_text("waits for your approval")
    pictures(page, widget, f"agent-run-waiting-{theme}")
    assert violations(page, widget) == []
    question(widget).get_by_label("Why not").fill("Not on a Friday")
    question(widget).get_by_role("button", name="Deny").click()
    expect(widget.locator(".mk-run-tool summary").nth(1)).to_contain_text("denied: Not on a Friday")
    expect(widget).to_have_attribute("data-status", re.compile("done|max_cost"))
    page.screenshot(f"agent-run-denied-{theme}", widget)
    page.run(3)
    again = page.widget(3)
    pictures(page, again, f"agent-run-again-{theme}")
    assert violations(page, again) == []
