"""A notebook that is open in JupyterLab in a browser, as the tests see it; `tests/fix_lab.py` opens it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import nbformat
from playwright.sync_api import ConsoleMessage, Locator, Page, expect

PATIENCE_S: Final = 60.0
_LABS_OWN: Final = (
    # A notebook without a kernel has no session, and is asked for that session's kernel.
    r"null \(reading 'kernel'\)(?s:.*)jupyterlab-manager/static",
    # A notebook that is opened again, with a new kernel: Lab tells it on the page (where our copy stands), and here.
    r"widget model not found(?s:.*)jupyterlab-manager/static",
)
"""Errors of Lab itself, as patterns over the message and where it came from."""

_PANEL: Final = ".jp-NotebookPanel:not(.lm-mod-hidden)"
_READY: Final = """async kernel => {
  jupyterapp.shell.collapseLeft();
  const {context, sessionContext} = jupyterapp.shell.currentWidget;
  await context.ready;
  await sessionContext.ready;
  if (!kernel) return;
  const isIdle = () => sessionContext.session?.kernel?.status === 'idle';
  if (!isIdle()) {
    await new Promise(resolve => sessionContext.statusChanged.connect(() => { if (isIdle()) resolve(); }));
  }
  await sessionContext.session.kernel.info;
}"""
_RUN: Final = """async ([index, wait]) => {
  const panel = jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = index;
  const ran = jupyterapp.commands.execute('notebook:run-cell');
  if (wait) await ran;
}"""
_VALUE: Final = """async expression => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const asked = {code: '', silent: true, store_history: false, user_expressions: {value: expression}};
  return (await kernel.requestExecute(asked).done).content.user_expressions.value;
}"""
OPEN_WITHOUT_KERNEL: Final = """async path => {
  await jupyterapp.restored;
  const kernelPreference = {shouldStart: false, canStart: false, autoStartDefault: false};
  await jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook', kernelPreference});
}"""
_COMMAND: Final = (
    "async ([command, wait]) => { const done = jupyterapp.commands.execute(command); if (wait) await done; }"
)


@dataclass
class Seen:
    """What pages did that no page of ours may do."""

    errors: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])

    def watch(self, tab: Page) -> None:
        """Take notes of a page from now on."""
        tab.on("pageerror", lambda error: self._note(f"page error: {error}\n{error.stack}"))
        tab.on("console", self._hear)
        tab.on("request", lambda request: self._ask(request.url))
        tab.on("websocket", lambda socket: self._ask(socket.url))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(f"console: {message.text} ({message.location.get('url')})")

    def _note(self, error: str) -> None:
        if not any(re.search(own, error) for own in _LABS_OWN):
            self.errors.append(error)

    def _ask(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.requests.append(url)


class NotebookPage:
    """A notebook that is open in the browser. Cell 0 is `%load_ext memkernel`; a test's own begin with 1.

    Attributes:
        tab: playwright's page, for whatever has no method here.
        path: the notebook's file.
    """

    def __init__(self, tab: Page, path: Path, screenshots: Path) -> None:
        self.tab = tab
        self.path = path
        self._screenshots = screenshots

    # -- cells

    def cell(self, index: int) -> Locator:
        """A cell with its outputs."""
        return self.tab.locator(f"{_PANEL} .jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """The outputs of a cell."""
        return self.cell(index).locator(".jp-OutputArea").first

    def number(self, index: int) -> str:
        """What stands before a cell: `[3]`, or `[*]` while it waits or runs."""
        return self.cell(index).locator(".jp-InputArea-prompt").first.inner_text().strip().rstrip(":")

    def text(self, index: int) -> str:
        """The text of a cell's outputs, as it is seen."""
        return "\n".join(self.output(index).locator(".jp-OutputArea-output").filter(visible=True).all_inner_texts())

    def widget(self, index: int, nth: int = 0) -> Locator:
        """The root of a widget of ours below a cell, once it is painted."""
        root = self.output(index).locator(".mk[data-ready]").nth(nth)
        root.wait_for(timeout=PATIENCE_S * 1000)
        return root

    def static(self, index: int, nth: int = 0) -> Locator:
        """A static copy below a cell; it is there whether or not it is shown."""
        return self.output(index).locator(".mk-static").nth(nth)

    def run(self, index: int) -> Locator:
        """Run a cell and wait until it is over; its outputs. A cell that fails fails in its outputs."""
        self.tab.evaluate(_RUN, [index, True])
        self._wait_for_number(index)
        return self.output(index)

    def start(self, index: int) -> None:
        """Run a cell and wait for nothing."""
        self.tab.evaluate(_RUN, [index, False])

    def start_all(self) -> None:
        """Run all cells and wait for nothing."""
        self.command("notebook:run-all-cells", wait=False)

    def run_all(self) -> None:
        """Run all cells and wait until the last is over."""
        self.command("notebook:run-all-cells")
        self._wait_for_number(self.tab.locator(f"{_PANEL} .jp-CodeCell").count() - 1)

    def interrupt(self) -> None:
        """The stop button of the notebook."""
        self.command("notebook:interrupt-kernel")

    def command(self, name: str, *, wait: bool = True) -> None:
        """One of Lab's commands, as its menus give them."""
        self.tab.evaluate(_COMMAND, [name, wait])

    def value(self, expression: str) -> str:
        """What an expression of Python is in the kernel, as its repr: for looking behind the page."""
        answer = self.tab.evaluate(_VALUE, expression)
        assert answer["status"] == "ok", answer
        return answer["data"]["text/plain"]

    # -- the file

    def save(self) -> dict[str, Any]:
        """Save the notebook as a person does; what is in the file."""
        self.command("docmanager:save")
        return self.saved()

    def saved(self) -> dict[str, Any]:
        """What is in the file."""
        formats: Any = nbformat  # has no types; it joins the lines that the file keeps apart
        return formats.read(self.path, as_version=4)

    # -- what is seen

    def screenshot(self, name: str, of: Locator | None = None) -> Path:
        """A picture of the window, or of a part of it; where it is kept."""
        return self.keep(of or self.tab, name)

    def keep(self, seen: Page | Locator, name: str) -> Path:
        """A picture of any page."""
        path = self._screenshots / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        seen.screenshot(path=path)
        return path

    def wait(self, *, kernel: bool) -> Self:
        """Until the notebook is there, and its kernel takes input."""
        self.tab.wait_for_selector("#jupyterlab-splash", state="detached", timeout=PATIENCE_S * 1000)
        self.tab.wait_for_selector(f"{_PANEL} .jp-Notebook .jp-Cell", timeout=PATIENCE_S * 1000)
        self.tab.evaluate(_READY, kernel)
        return self

    def _wait_for_number(self, index: int) -> None:
        """The page shows the number a moment after the kernel has answered."""
        prompt = self.cell(index).locator(".jp-InputArea-prompt").first
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=PATIENCE_S * 1000)
