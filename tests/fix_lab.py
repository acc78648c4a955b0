"""JupyterLab in a real browser: a server a worker, Debian's Chromium, and a page a test.

`lab` opens notebooks whose kernels use the test's own database and an empty home. At the end of a test it asserts that
the pages raised no error, that their consoles show none, and that they asked no other host for anything.
Screenshots are kept in the folder named by MEMKERNEL_SCREENSHOTS, and without it in the test's `tmp_path`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.fix_kernel import kernel_environment
from tests.fix_postgres import end_with_parent
from tests.lab_page import OPEN_WITHOUT_KERNEL, PATIENCE_S, NotebookPage, Seen

Size = tuple[int, int]
ForcedColors = Literal["active", "none"]

_CHROMIUM_OPTIONS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what asks for another host fails, and is found
)
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # every cell stays where a test can find it
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},  # a test saves when it says so
}

# -- the server ----------------------------------------------------------------------------------


class LabServer:
    """JupyterLab in folders of its own, with a token of its own, on a free port of 127.0.0.1.

    Its kernels' messages travel over ipc sockets, and a port that another process took meanwhile is given up for
    another one: nothing here can be taken by somebody else (fault 50).
    """

    def __init__(self) -> None:
        self._top = tempfile.TemporaryDirectory(prefix="mkl")  # short: a socket's path has at most 107 bytes
        self.directory = Path(self._top.name)
        self.notebooks = self._made("nb")
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        for name, setting in _SETTINGS.items():
            self.set(name, setting)
        self.port = self._start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def address(self, notebook: Path | None = None) -> str:
        """Where Lab is opened in a workspace of its own, with a notebook or with nothing."""
        place = f"/tree/{notebook.relative_to(self.notebooks)}" if notebook else ""
        return f"{self.url}/lab/workspaces/{secrets.token_hex(8)}{place}?token={self._token}"

    def set(self, name: str, setting: dict[str, Any]) -> None:
        """Settings of a plugin of Lab, for pages that are opened from now on."""
        path = self._made("cfg") / f"lab/user-settings/{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting))

    def add_kernel(self, name: str, environment: dict[str, str]) -> None:
        """A kernel that a notebook can name, with these variables."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": command, "display_name": name, "language": "python", "env": environment}
        directory = self._made("data") / "kernels" / name
        directory.mkdir(parents=True)
        (directory / "kernel.json").write_text(json.dumps(spec))

    def ask(self, method: str, path: str) -> Any:
        """What its API answers."""
        headers = {"Authorization": f"token {self._token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def end_kernels(self) -> None:
        """End all sessions and their kernels: a notebook that is opened again would get the one that runs."""
        for session in self.ask("GET", "/api/sessions"):
            self.ask("DELETE", f"/api/sessions/{session['id']}")

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE_S)
        self._top.cleanup()

    def _made(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path

    def _start(self) -> int:
        for _ in range(5):
            self._process = self._popen()
            port = self._port_of(self._process)
            if port:
                return port
        raise RuntimeError((self.directory / "log").read_text())

    def _popen(self) -> subprocess.Popen[bytes]:
        options = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": "0",
            "ServerApp.port_retries": "0",
            "ServerApp.root_dir": str(self.notebooks),
            "ServerApp.answer_yes": "True",
            "IdentityProvider.token": self._token,
            "KernelManager.transport": "ipc",
            "LabApp.extension_manager": "readonly",
            "LabApp.expose_app_in_browser": "True",
        }
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen[bytes](
                [*command, *(f"--{name}={value}" for name, value in options.items())],
                env=kernel_environment(self._made("home")) | self._folders(),
                cwd=self.notebooks,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the test run ends the tests, and those end the server
                preexec_fn=end_with_parent,  # one call of the C library; a killed test run leaves no server
            )

    def _folders(self) -> dict[str, str]:
        names = {"JUPYTER_CONFIG_DIR": "cfg", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run"}
        return {variable: str(self._made(name)) for variable, name in names.items()}

    def _port_of(self, process: subprocess.Popen[bytes]) -> int | None:
        """Its port once it serves; None where it ended, because another process took the port."""
        told = self.directory / "run" / f"jpserver-{process.pid}.json"
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text())
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return json.loads(told.read_text())["port"]
            time.sleep(0.05)
        return None


# -- the fixtures --------------------------------------------------------------------------------


class Lab:
    """Opens notebooks on the test's database.

    Attributes:
        directory: where its notebooks are.
        browser: for pages that are not Lab's.
        environment: what the kernels see; a change is for notebooks that are opened afterwards.
        seen: what the pages did.
    """

    def __init__(
        self, server: LabServer, context: BrowserContext, environment: dict[str, str], screenshots: Path
    ) -> None:
        self._server = server
        self.browser = context
        self._screenshots = screenshots
        self._tabs: list[Page] = []
        self.environment = environment
        self.directory = server.notebooks / secrets.token_hex(8)
        self.directory.mkdir()
        self.seen = Seen()

    def open(
        self,
        cells: list[str],
        *,
        dark: bool = False,
        size: Size = (1280, 900),
        forced_colors: ForcedColors = "none",
        load: bool = True,
        save_widgets: bool = False,
    ) -> NotebookPage:
        """A fresh notebook: `%load_ext memkernel` as cell 0, which is run, then these.

        Args:
            cells: sources of code cells; they get the numbers from 1 on.
            dark: Lab's dark theme in a dark browser.
            size: width and height of the window in CSS pixels.
            forced_colors: "active" as in a high contrast theme of the desktop.
            load: whether cell 0 is run.
            save_widgets: whether Lab saves the state of the widgets with the notebook; by default it does not.
        """
        name = f"test-{secrets.token_hex(8)}"
        more = {each: os.environ[each] for each in ("DOCKER_HOST", "MEMKERNEL_SANDBOX_IMAGE") if each in os.environ}
        self._server.add_kernel(name, more | self.environment)
        path = self.directory / f"{name}.ipynb"
        path.write_text(json.dumps(_notebook(name, ["%load_ext memkernel", *cells])))
        self._server.set("@jupyter-widgets/jupyterlab-manager/plugin", {"saveState": save_widgets})
        page = self.open_file(path, dark=dark, size=size, forced_colors=forced_colors)
        if load:
            page.run(0)
        return page

    def open_file(
        self,
        path: Path,
        *,
        dark: bool = False,
        size: Size = (1280, 900),
        kernel: bool = True,
        forced_colors: ForcedColors = "none",
    ) -> NotebookPage:
        """A notebook that is there, as Lab opens it.

        Args:
            path: its file, in `directory`.
            dark: Lab's dark theme in a dark browser.
            size: width and height of the window in CSS pixels.
            kernel: without one it is opened as with "No Kernel".
            forced_colors: "active" as in a high contrast theme of the desktop.
        """
        self._server.set(
            "@jupyterlab/apputils-extension/themes", {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"}
        )
        tab = self.browser.new_page()
        self._tabs.append(tab)
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.emulate_media(color_scheme="dark" if dark else "light", forced_colors=forced_colors)
        self.seen.watch(tab)
        tab.goto(self._server.address(path if kernel else None))
        if not kernel:
            tab.wait_for_function("() => window.jupyterapp", timeout=PATIENCE_S * 1000)
            tab.evaluate(OPEN_WITHOUT_KERNEL, str(path.relative_to(self._server.notebooks)))
        return NotebookPage(tab, path, self._screenshots).wait(kernel=kernel)

    def reopen(self, page: NotebookPage, *, kernel: bool = False, **options: Any) -> NotebookPage:
        """A saved notebook, opened again after its kernel has ended; `kernel` starts a new one."""
        page.tab.close()
        self._server.end_kernels()
        return self.open_file(page.path, kernel=kernel, **options)

    def untrusted(self, page: NotebookPage, **options: Any) -> NotebookPage:
        """A copy of a saved notebook as if somebody had sent it: Lab did not sign it."""
        notebook = page.saved()
        notebook["metadata"]["came"] = "by mail"  # the signature is over the contents
        path = page.path.with_name(f"untrusted-{page.path.name}")
        path.write_text(json.dumps(notebook))
        return self.open_file(path, kernel=False, **options)

    def kill_kernels(self) -> None:
        """The kernels of the open notebooks end without a word, as when the machine has no memory left."""
        for kernel in self._server.ask("GET", "/api/kernels"):
            self._server.ask("DELETE", f"/api/kernels/{kernel['id']}")

    def close(self) -> None:
        """Close the pages and end the kernels."""
        for tab in self._tabs:
            tab.close()
        self._server.end_kernels()
        shutil.rmtree(self.directory)


def _notebook(kernel: str, sources: list[str]) -> dict[str, Any]:
    empty: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [empty | {"id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="session")
def lab_server() -> Iterator[LabServer]:
    """This worker's JupyterLab."""
    server = LabServer()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def chromium() -> Iterator[BrowserContext]:
    """A fresh Debian Chromium, whose cache keeps Lab's own files from test to test.

    Not for the whole session: while playwright runs, its thread can run no other event loop.
    """
    with sync_playwright() as playwright, launch(playwright) as browser:
        yield browser.new_context()


def launch(playwright: Playwright) -> Browser:
    """Debian's Chromium without a window, which can reach this machine only."""
    executable = shutil.which("chromium")
    assert executable, "no chromium (Debian: apt-get install chromium)"
    return playwright.chromium.launch(executable_path=executable, args=list(_CHROMIUM_OPTIONS))


@pytest.fixture
def lab(lab_server: LabServer, chromium: BrowserContext, dsn: str, tmp_path: Path) -> Iterator[Lab]:
    """Opens notebooks on the test's database, `dsn`; afterwards the pages must have done nothing wrong."""
    kept = os.environ.get("MEMKERNEL_SCREENSHOTS")
    home = tmp_path / "lab-home"
    home.mkdir()
    environment = {"MEMKERNEL_DSN": dsn, "HOME": str(home), "IPYTHONDIR": str(home / "ipython")}
    lab = Lab(lab_server, chromium, environment, Path(kept) if kept else tmp_path / "screenshots")
    yield lab
    lab.close()
    assert lab.seen == Seen()
