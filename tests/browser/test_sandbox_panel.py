"""The panel of a sandbox in JupyterLab: a row a cell, what was put aside and its buttons, sync, interrupt, stop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

import memkernel as mk
from tests.fix_lab import Lab
from tests.lab_page import PATIENCE_S, NotebookPage

MOUNT = "/mnt/memory/team-notes"
USE = '%memory use "Team notes" --create -q'
START = "%sandbox start --backend local -o box -q"
CELL = "%%sandbox"
WRITES = f"{CELL}\nopen('{MOUNT}/plan.md', 'a').write('buy salt\\n'); open('{MOUNT}/new.md', 'w').write('# New\\n')"
CONFLICT = f"""\
store = box.stores[0].store
code = "open('{MOUNT}/plan.md', 'w').write('mine\\\\n'); print('go', flush=True)"
box.run(code, on_output=lambda output: store.write("/plan.md", "theirs\\n"))"""
SLEEPS = f"{CELL}\nopen('{MOUNT}/draft.md', 'w').write('draft\\n')\nimport time\ntime.sleep(120)"

expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture
def notes(dsn: str) -> Iterator[mk.Store]:
    """The store that the sandbox mounts, seen by somebody else."""
    with mk.connect(dsn) as connection:
        store = connection.store("Team notes", create=True)
        store.write("/plan.md", "# Plan\n\nbake bread\n")
        store.write("/b.md", "b\n")
        yield store


def opened(lab: Lab, *cells: str, dark: bool = False, size: tuple[int, int] = (1280, 900)) -> tuple[NotebookPage, int]:
    """A notebook with a sandbox and these cells, and the number of the first of them."""
    page = lab.open([USE, START, *cells], dark=dark, size=size)
    page.run(1)
    page.run(2)
    return page, 3


def cells(panel: Locator) -> Locator:
    return panel.get_by_role("region", name="Cells, newest first").locator("> ul > li")


def button(within: Locator, name: str) -> Locator:
    return within.get_by_role("button", name=name)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_row_a_cell_with_its_files_and_what_each_version_changed(lab: Lab, notes: mk.Store, dark: bool) -> None:
    page, first = opened(lab, WRITES, f"{CELL} --bash\nrm {MOUNT}/b.md; exit 3", "%sandbox status", dark=dark)
    page.run(first)
    panel = page.widget(first)
    expect(cells(panel)).to_have_count(1)
    page.run(first + 1)
    page.run(first + 2)
    expect(cells(panel)).to_have_count(2)
    assert page.output(first + 1).locator(".mk").count() == 0  # the panel that is there gets a row
    newest, oldest = cells(panel).all()
    expect(newest).to_contain_text("error · exit status 3")
    expect(newest).to_contain_text("− deleted")
    expect(oldest.locator(".mk-files > li").first).to_contain_text("~ modified")
    expect(oldest.locator(".mk-files > li").first).to_contain_text("+1 · @2")
    expect(panel.get_by_role("group", name="Stores")).to_contain_text("in sync")
    expect(panel).to_contain_text("local, not isolated")
    button(oldest, "/plan.md").click()
    expect(oldest.locator(".mk-diff")).to_contain_text("buy salt")
    page.screenshot(f"sandbox-panel-{'dark' if dark else 'light'}", panel)
    button(oldest, "/plan.md").click()
    expect(oldest.locator(".mk-diff")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("Mine", {"/plan.md": "mine\n"}),
        ("Both", {"/plan.md": "theirs\n", "/plan.conflict.md": "mine\n"}),
        ("Discard", {"/plan.md": "theirs\n"}),
    ],
)
def test_a_text_that_was_put_aside_is_compared_and_settled(
    lab: Lab, notes: mk.Store, name: str, texts: dict[str, str]
) -> None:
    page, first = opened(lab, f"{CELL}\n1", CONFLICT, dark=name == "Both")
    page.run(first)
    page.run(first + 1)
    panel = page.widget(first)
    conflict = panel.locator(".mk-aside > ul > li")
    expect(conflict).to_contain_text("/plan.md")
    expect(panel.get_by_role("group", name="Stores")).to_contain_text("1 put aside")
    button(conflict, "Show the difference").click()
    expect(conflict.locator(".mk-diff")).to_contain_text("theirs")
    expect(conflict.locator(".mk-diff")).to_contain_text("mine")
    page.screenshot(f"sandbox-panel-put-aside-{name.lower()}", panel)
    button(conflict, name).click()
    if name == "Discard":
        asked = panel.get_by_role("alertdialog")
        button(asked, "Cancel").click()
        expect(conflict).to_have_count(1)
        button(conflict, name).click()
        button(asked, "Discard").click()
    expect(conflict).to_have_count(0)
    assert {memory.path: notes.read(memory.path) for memory in notes.ls()} == texts | {"/b.md": "b\n"}
    expect(panel.get_by_role("group", name="Stores")).not_to_contain_text("put aside")


def test_mine_over_a_text_that_was_not_seen_is_a_line_with_retry(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, f"{CELL}\n1", CONFLICT)
    page.run(first)
    page.run(first + 1)
    panel = page.widget(first)
    conflict = panel.locator(".mk-aside > ul > li")
    button(conflict, "Show the difference").click()
    expect(conflict.locator(".mk-diff")).to_contain_text("theirs")
    notes.write("/plan.md", "theirs, once more\n")
    button(conflict, "Mine").click()
    expect(panel.get_by_role("alert")).to_contain_text("was changed in the store meanwhile")
    expect(conflict.locator(".mk-diff")).to_contain_text("theirs, once more")  # what it is compared with now
    page.screenshot("sandbox-panel-failure", panel)
    button(panel.get_by_role("alert"), "Retry").click()
    expect(conflict).to_have_count(0)
    assert notes.read("/plan.md") == "mine\n"


def test_sync_now_brings_what_the_store_has_and_held_back_deletions_are_made(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, f"{CELL} --bash\nrm {MOUNT}/*")
    page.run(first)
    panel = page.widget(first)
    held = panel.locator(".mk-dialog", has_text="held back")
    expect(held).to_contain_text("2 deletions held back in team-notes (/b.md, /plan.md)")
    page.screenshot("sandbox-panel-held-back", panel)
    button(held, "Delete them after all").click()
    expect(held).to_have_count(0)
    assert notes.ls() == []
    notes.write("/c.md", "c\n")
    button(panel, "Look anew at the stores").click()
    expect(panel.get_by_role("group", name="Stores")).to_contain_text("1 to bring")
    button(panel, "Sync now").click()
    expect(panel.locator("p.mk-dialog")).to_contain_text("1 file brought up to team-notes")
    expect(panel.get_by_role("group", name="Stores")).to_contain_text("in sync")


def test_a_cell_that_runs_is_interrupted_and_the_sandbox_stopped(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, SLEEPS, "'after'")
    page.start(first)
    panel = page.widget(first)
    expect(panel).to_contain_text("cell 1 runs since")
    expect(button(panel, "Sync now")).to_have_count(0)
    page.screenshot("sandbox-panel-busy", panel)
    button(panel, "Interrupt").click()
    expect(cells(panel)).to_contain_text("interrupted")
    page.run(first + 1)
    assert notes.read("/draft.md") == "draft\n"
    button(panel, "Stop").click()
    asked = panel.get_by_role("alertdialog")
    expect(asked).to_contain_text("Everything is saved first")
    page.screenshot("sandbox-panel-stop", panel)
    button(asked, "Stop").click()
    expect(panel.locator(".mk-bar").first).to_contain_text("stopped: since")
    expect(button(panel, "Stop")).to_have_count(0)
    assert page.value("box.is_open") == "False"


def test_reset_asks_inside_of_the_panel(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, f"{CELL}\n1", "'after'")
    page.run(first)
    panel = page.widget(first)
    button(panel, "Reset team-notes").click()
    asked = panel.get_by_role("alertdialog")
    expect(asked).to_contain_text("What is not saved there is put aside")
    button(asked, "Reset…").click()
    expect(panel.locator("p.mk-dialog")).to_contain_text("nothing to save, nothing to bring")


def test_without_its_kernel_the_copy_tells_all(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, WRITES, CONFLICT, "'after'")
    for number in range(first, first + 3):
        page.run(number)
    expect(page.widget(first).locator(".mk-aside > ul > li")).to_have_count(1)
    copy = page.static(first)
    expect(copy).to_contain_text("Put aside")  # it is kept in step
    page.save()
    again = lab.reopen(page)
    text = again.text(first)
    for part in ("sandbox main", MOUNT, "cell 1 · done", "+ created", "/new.md", "✗ not saved"):
        assert part in text
    again.screenshot("sandbox-panel-static", again.static(first))


def test_a_narrow_panel_keeps_everything_in_reach(lab: Lab, notes: mk.Store) -> None:
    page, first = opened(lab, WRITES, CONFLICT, size=(520, 900))
    page.run(first)
    page.run(first + 1)
    panel = page.widget(first)
    expect(panel.locator(".mk-aside > ul > li")).to_have_count(1)
    page.screenshot("sandbox-panel-narrow", panel)
    box = panel.bounding_box()
    last = button(panel.locator(".mk-aside > ul > li"), "Discard").bounding_box()
    assert box is not None
    assert last is not None
    assert last["x"] + last["width"] <= box["x"] + box["width"]


@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_a_container_shows_its_limits_and_its_cells(lab: Lab, notes: mk.Store, sandbox_image: str) -> None:
    lab.environment["MEMKERNEL_SANDBOX_IMAGE"] = sandbox_image
    page = lab.open([USE, WRITES, f"{CELL}\nimport os; os._exit(1)"])
    page.run(1)
    page.run(2)
    panel = page.widget(2)
    limits = panel
    for part in ("memory 512 MiB", "CPUs 2", "network none", "Docker container: no network"):
        expect(limits).to_contain_text(part)
    expect(cells(panel)).to_contain_text("+ created")
    page.run(3)
    expect(panel.locator(".mk-bar").first).to_contain_text("dead: the kernel died")
    expect(panel.locator(".mk-bar").first).to_contain_text("the next cell starts a new kernel")
    page.screenshot("sandbox-panel-docker", panel)
    button(panel, "Stop").click()
    button(panel.get_by_role("alertdialog"), "Stop").click()
    expect(panel.locator(".mk-bar").first).to_contain_text("stopped: since")
