"""The extension in a real kernel: what a front end sees."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import memkernel as mk
from memkernel import cluster
from tests.bench.bench_load_ext import HEAVY
from tests.cluster.homes import wait_until
from tests.fix_kernel import Kernel, kernel_environment
from tests.fix_postgres import PostgresServer

# -- loading ---------------------------------------------------------------------------------------


def test_load_ext_prints_exactly_one_line_and_no_password(bare_kernel: Kernel) -> None:
    reply = bare_kernel.run("%load_ext memkernel")
    assert reply.status == "ok"
    assert len(reply.stdout.splitlines()) == 1
    assert reply.stdout.startswith("PostgreSQL at ")
    assert (reply.stderr, reply.outputs) == ("", [])


def test_loading_twice_duplicates_nothing_and_unloading_takes_everything_back(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\ntext\n")
    assert len(kernel.run("%reload_ext memkernel").stdout.splitlines()) == 1
    assert kernel.run("%memory use").status == "ok"
    assert kernel.complete("%memory cat /")[0] == ["/a.md"]
    assert kernel.run("len(get_ipython().Completer.custom_matchers)").text == "1"
    assert kernel.run("browsed = %memory browse\nshown = browsed.show()").status == "ok"
    assert kernel.run("print(browsed.show() is None)").stdout == "False\n"
    assert kernel.run("%unload_ext memkernel").status == "ok"
    assert kernel.run("%memory ls").status == "error"
    assert kernel.run("print(browsed.show() is None)").stdout.endswith("\nTrue\n")
    assert kernel.run("len(get_ipython().Completer.custom_matchers)").text == "0"


def test_with_the_database_down_the_magics_are_there_and_work_once_it_is_back(
    server: PostgresServer, dsn: str, tmp_path: Path
) -> None:
    away = dsn.replace(f"host={server.directory}", f"host={tmp_path}/socket")
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=away), tmp_path)
    try:
        reply = kernel.run("%load_ext memkernel")
        assert (reply.status, len(reply.stdout.splitlines())) == ("ok", 2)
        assert reply.stdout.startswith("DatabaseUnavailableError: ")
        reply = kernel.run("%memory stores")
        assert (reply.status, len(reply.traceback)) == ("error", 2)
        (tmp_path / "socket").symlink_to(server.directory)
        assert kernel.run("%memory stores").status == "ok"
    finally:
        kernel.close()


@pytest.fixture
def home() -> Iterator[Path]:
    """A memkernel home that the account which PostgreSQL runs as can enter; pytest's directories are private."""
    with tempfile.TemporaryDirectory(prefix="mk-home-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


def test_the_embedded_server_is_started_by_the_first_load_and_let_go_by_unloading(home: Path, tmp_path: Path) -> None:
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_HOME=str(home), MEMKERNEL_LINGER_S="0"), tmp_path)
    server = cluster.EmbeddedCluster(home=home)
    try:
        reply = kernel.run("%load_ext memkernel")
        assert len(reply.stdout.splitlines()) == 1
        assert ", embedded, data in " in reply.stdout
        assert kernel.run("%memory use Notes --create").status == "ok"
        assert server.status().running
        assert kernel.run("%reload_ext memkernel").status == "ok"
        assert kernel.run("%memory use").status == "ok"
        assert kernel.run("%unload_ext memkernel").status == "ok"
        deadline = time.monotonic() + 60
        while server.status().running:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert len(kernel.run("%load_ext memkernel").stdout.splitlines()) == 1
        assert kernel.run("%memory ls").status == "ok"
    finally:
        kernel.close()
        server.stop()


def test_load_ext_imports_no_heavy_library(bare_kernel: Kernel) -> None:
    bare_kernel.run("%load_ext memkernel")
    bare_kernel.run("%memory use Notes --create")
    bare_kernel.run("%%memory put /a.md\ntext\n")
    loaded = bare_kernel.run(f"import sys; [name for name in {HEAVY} if name in sys.modules]").text
    assert loaded == "[]"


def test_fault_48_without_ipywidgets_and_outside_a_notebook_everything_works(dsn: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['ipywidgets'] = sys.modules['anywidget'] = None\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ('%load_ext memkernel', '%memory use Notes --create', '%%memory put /a.md\\ntext\\n',\n"
        "             '%memory', '%memory ls', '%memory log', '%memory diff /a.md', '%memory cat /a.md'):\n"
        "    shell.run_cell(cell).raise_error()\n"
    )
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=kernel_environment(tmp_path, MEMKERNEL_DSN=dsn, PYTHONWARNINGS="error"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "/a.md" in finished.stdout


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_is_two_lines_with_status_error_unless_the_traceback_is_asked_for(kernel: Kernel) -> None:
    kernel.run("%%memory put /units.md\nSI\n")
    reply = kernel.run("%memory cat /unit.md")
    assert (reply.status, reply.ename) == ("error", "MemoryNotFoundError")
    assert reply.traceback == [
        "MemoryNotFoundError: there is no memory /unit.md in team-notes",
        "Near: /units.md",
    ]
    reply = kernel.run("%memory cat --bogus /units.md")
    assert (reply.status, reply.outputs) == ("error", [])
    assert [line.partition(" ")[0] for line in reply.stderr.splitlines()] == ["UsageError:", "Usage:"]
    kernel.run("%memory config traceback on")
    assert "Traceback (most recent call last)" in "".join(kernel.run("%memory cat /unit.md").traceback)
    kernel.run("%memory config traceback off")
    assert len(kernel.run("%memory cat /unit.md").traceback) == 2


def run_all(kernel: Kernel, gate: Path, *cells: str) -> list[str]:
    """The statuses of cells that all wait in the kernel before the first of them runs, as Run All has them."""
    first = kernel.send(f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)")
    ids = [kernel.send(cell) for cell in cells]
    gate.touch()
    kernel.reply(first)
    return [kernel.reply(message_id).status for message_id in ids]


def test_run_all_stops_at_an_error(kernel: Kernel, tmp_path: Path) -> None:
    cells = ("%memory cat /missing.md", "print('after')", "%memory cat --bogus", "1")
    assert run_all(kernel, tmp_path / "one", *cells) == ["error", "aborted", "aborted", "aborted"]
    assert run_all(kernel, tmp_path / "two", "%memory nonsense", "print('after')") == ["error", "aborted"]


def test_fault_43_after_any_cell_the_next_command_works_and_nothing_is_printed_below_it(kernel: Kernel) -> None:
    awaits = "import asyncio\nawait asyncio.sleep(0)"
    for cell in ("1/0", "def", "", awaits, "raise KeyboardInterrupt", "import sys; sys.exit(1)"):
        reply = kernel.run(cell)
        assert "memkernel" not in reply.stdout + "".join(reply.traceback)
        assert kernel.run("%%memory put /a.md\ntext\n").status == "ok"


# -- questions -------------------------------------------------------------------------------------


def test_a_question_is_asked_where_somebody_can_answer_and_refused_elsewhere(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\none\n")
    kernel.run("%%memory put /a.md\ntwo\n")
    assert kernel.run("%memory rm /a.md").traceback == [
        "NotConfirmedError: rm of /a.md has to be confirmed, and nobody can be asked here",
        "Add -y to confirm it in the command.",
    ]
    refused = kernel.run("%memory rm /a.md", answers=["n"])
    assert (refused.status, refused.ename) == ("error", "NotConfirmedError")
    assert kernel.run("%memory redact /a.md@1", answers=["2"]).ename == "NotConfirmedError"
    assert kernel.run("%memory redact /a.md@1", answers=["1"]).status == "ok"
    assert kernel.run("%memory rm /a.md", answers=["y"]).status == "ok"
    assert kernel.run("%memory drop team-notes", answers=["y"]).ename == "NotConfirmedError"
    assert kernel.run("%memory drop team-notes", answers=["Team notes"]).status == "ok"


# -- journeys --------------------------------------------------------------------------------------


def test_a_memory_is_written_changed_compared_and_restored(kernel: Kernel, somebody_else: mk.Connection) -> None:
    kernel.run("%%memory put /units.md\nfeet\n")
    kernel.run("%memory replace /units.md feet metres")
    diff = kernel.run("%memory diff /units.md")
    assert "-feet" in diff.text
    assert "+metres" in diff.text
    assert kernel.run("%memory restore /units.md@1").status == "ok"
    log = kernel.run("%memory log /units.md")
    assert re.search(r"created|modified", log.text)
    assert somebody_else.store("Team notes").read("/units.md") == "feet\n"
    assert kernel.run("x = %memory cat /units.md\nprint(repr(x.content))").stdout == "'feet\\n'\n"
    assert kernel.run("%memory cat /units.md").status == "ok"
    assert kernel.run("print(_.path)").stdout == "/units.md\n"


def test_fault_45_every_result_has_text_and_html_with_the_same_facts(kernel: Kernel) -> None:
    kernel.run("%%memory put /projects/units.md\n<b>feet</b> & inches\n")
    kernel.run("%%memory put /projects/units.md\n<b>metres</b>\n")
    for line, fact in {
        "": "Team notes",
        "stores": "Team notes",
        "use": "Team notes",
        "status": "server version",
        "ls /projects": "/projects/units.md",
        "tree": "units.md",
        "cat /projects/units.md": "metres",
        "cat /projects/units.md@1": "inches",
        "grep metres": "/projects/units.md",
        "log": "modified",
        "diff /projects/units.md": "metres",
        "restore /projects/units.md@1": "/projects/units.md",
    }.items():
        reply = kernel.run(f"%memory {line}")
        assert len(reply.outputs) == (2 if line in ("", "diff /projects/units.md") else 1), line  # a view, and its copy
        assert fact in reply.text, line
        assert fact in reply.html, line
        assert not re.search(r"<b>(feet|metres)", reply.html), line
        assert not re.search(r"<script|https?://|javascript:", reply.html), line
        assert len(reply.html) <= 24_576, line
        assert len(reply.text.splitlines()) <= 62, line
    reply = kernel.run("%%memory sql\nSELECT path, operation FROM memory_versions")
    assert "/projects/units.md" in reply.text
    assert "/projects/units.md" in reply.html


def test_lists_show_at_most_60_rows_and_say_so(kernel: Kernel, somebody_else: mk.Connection) -> None:
    store = somebody_else.store("Team notes")
    for number in range(300):
        store.write("/counter.md", f"{number}\n")
    reply = kernel.run("%memory log /counter.md")
    assert "60 of 300 shown" in reply.text
    assert re.search(r"\d\d of 300 shown", reply.html)  # as many as fit into 24 KB
    assert kernel.run("print(len(_))").stdout == "300\n"
    kernel.run("%memory config limit 5")
    assert "5 of 300 shown" in kernel.run("%memory log /counter.md").text


def test_completion_and_help_reach_the_front_end(kernel: Kernel) -> None:
    kernel.run("%memory put '/my notes/units.md' --var __name__")
    assert kernel.complete("%memory cat /my") == ([r"/my\ notes/", r"/my\ notes/units.md"], 12)
    assert kernel.complete("x = %memory cat /my")[1] == 16
    assert kernel.complete("%%memory put /my")[0][0] == r"/my\ notes/"
    assert kernel.complete("%memory st")[0] == ["status", "stores"]
    assert "%memory restore" in kernel.inspect("%memory")
    assert "%%agent" in kernel.inspect("%%agent")
    assert "Usage" in kernel.run("%memory diff --help").stdout or "usage" in kernel.run("%memory diff --help").stdout


def test_fault_23_the_library_works_inside_a_running_loop(kernel: Kernel) -> None:
    reply = kernel.run(
        "import asyncio, memkernel as mk\n"
        "async def work():\n"
        "    await asyncio.sleep(0)\n"
        "    notes = mk.connect().store('Team notes')\n"
        "    notes.write('/a.md', 'from a coroutine\\n')\n"
        "    return notes.read('/a.md')\n"
        "print(await work())\n"
        "%memory cat /a.md -q"
    )
    assert (reply.status, reply.stdout) == ("ok", "from a coroutine\n\n")


# -- interrupts and a lost database ----------------------------------------------------------------


def test_fault_22_an_interrupted_query_leaves_the_kernel_usable(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\ntext\n")
    kernel.run("%%memory sql -q\nSELECT 1")
    message_id = kernel.send(
        "print('begun', flush=True)\n"
        "endless = 'SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b'\n"
        "get_ipython().run_cell_magic('memory', 'sql', endless)"
    )
    kernel.wait_until(message_id, lambda reply: "begun" in reply.stdout)
    kernel.interrupt()
    assert kernel.reply(message_id).status == "error"
    assert "/a.md" in kernel.run("%memory ls").text
    assert kernel.run("%%memory put /a.md\nnew\n").status == "ok"
    assert "1" in kernel.run("%%memory sql\nSELECT 1 AS one").text


def test_fault_22_a_change_that_waits_for_a_lock_can_be_interrupted(
    kernel: Kernel, server: PostgresServer, dsn: str
) -> None:
    kernel.run("%%memory put /a.md\none\n")
    with server.connect(dsn.partition("@/")[2].partition("?")[0]) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE memkernel.memories IN ACCESS EXCLUSIVE MODE")
        message_id = kernel.send(
            "print('begun', flush=True)\nget_ipython().run_cell_magic('memory', 'put /a.md', 'two')"
        )
        kernel.wait_until(message_id, lambda reply: "begun" in reply.stdout)
        wait_until(lambda: other.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None)
        kernel.interrupt()
        reply = kernel.reply(message_id)
        assert (reply.status, reply.ename) == ("error", "KeyboardInterrupt")
        other.execute("ROLLBACK")
    assert "one" in kernel.run("%memory cat /a.md").text
    assert kernel.run("%%memory put /a.md\nthree\n").status == "ok"


def test_fault_30_a_change_is_told_as_not_saved_while_the_server_is_away_and_works_when_it_is_back(
    kernel: Kernel, server: PostgresServer
) -> None:
    kernel.run("%%memory put /a.md\none\n")
    server.stop()
    try:
        reply = kernel.run("%%memory put /a.md\ntwo\n")
        assert (reply.ename, len(reply.traceback)) == ("DatabaseUnavailableError", 2)
        assert kernel.complete("%memory cat /")[0] == []
    finally:
        server.start()
    reply = kernel.run("%memory cat /a.md")
    assert "one" in reply.text
    assert kernel.run("%%memory put /a.md\nthree\n").status == "ok"


def test_fault_30_an_unknown_outcome_is_settled_once_at_the_next_contact(
    kernel: Kernel, server: PostgresServer, dsn: str
) -> None:
    kernel.run("%%memory put /a.md\none\n")
    other = server.connect(dsn.partition("@/")[2].partition("?")[0])
    other.execute("CHECKPOINT")  # this server does not sync: what is not written yet would be lost
    other.execute("BEGIN")
    other.execute("LOCK TABLE memkernel.memories IN ACCESS EXCLUSIVE MODE")
    message_id = kernel.send("print('begun', flush=True)\nget_ipython().run_cell_magic('memory', 'put /a.md', 'two')")
    kernel.wait_until(message_id, lambda reply: "begun" in reply.stdout)
    _wait_until_somebody_waits(server)
    server.stop(signal.SIGQUIT)
    other.close()
    try:
        reply = kernel.reply(message_id)
        assert reply.ename == "DatabaseUnavailableError"
        assert "unknown" in reply.traceback[0]
        assert kernel.run("%reload_ext memkernel").stdout.startswith("DatabaseUnavailableError: ")
    finally:
        server.start()
    reply = kernel.run("%memory ls")
    assert reply.stdout == "Not saved: %memory put /a.md\n"
    assert kernel.run("%memory ls").stdout == ""
    assert "one" in kernel.run("%memory cat /a.md").text


def _wait_until_somebody_waits(server: PostgresServer) -> None:
    deadline = time.monotonic() + 30
    with server.connect() as admin:
        while admin.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
            assert time.monotonic() < deadline
            time.sleep(0.02)


# -- many kernels, and none ------------------------------------------------------------------------


def test_fault_50_kernels_load_side_by_side_into_an_empty_database(empty_dsn: str, tmp_path: Path) -> None:
    kernels = [Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=empty_dsn), tmp_path) for _ in range(4)]
    cells = ("%load_ext memkernel", "%memory use Notes --create -q", "%memory put /{number}.md --var number")
    try:
        for number, kernel in enumerate(kernels):
            kernel.run(f"number = '{number}'")
        for cell in cells:
            sent = [kernel.send(cell) for kernel in kernels]
            assert {kernel.reply(each).status for kernel, each in zip(kernels, sent, strict=True)} == {"ok"}
        assert kernels[0].run("len(get_ipython().run_line_magic('memory', 'ls'))").text == "4"
        assert kernels[0].run("len(get_ipython().run_line_magic('memory', 'stores'))").text == "1"
    finally:
        for kernel in kernels:
            kernel.close()


def test_fault_45_a_saved_notebook_reads_well_without_a_kernel(dsn: str, tmp_path: Path) -> None:
    cells = (
        "%load_ext memkernel",
        "%memory use Notes --create",
        "%%memory put /units.md\n<i>feet</i>\n",
        "%%memory put /units.md\n<i>metres</i>\n",
        "%memory diff /units.md",
        "%%agent\nWhat do you remember about metres?\n",
    )
    v4: Any = nbformat.v4  # its functions are annotated in part only
    book = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    manager = KernelManager(transport="ipc", connection_file=f"{tmp_path}/kernel.json")
    client = NotebookClient(book, km=manager, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=kernel_environment(tmp_path, MEMKERNEL_DSN=dsn), cleanup_kc=True)
    nbformat.validate(book)
    assert book.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]  # fault 47
    page: str = HTMLExporter().from_notebook_node(book)[0]
    for fact in ("&lt;i&gt;metres", "memory view /memories", "scripted, not a language model"):
        assert fact in page
    # The state of the views is data, in a script of that type, where `</` is escaped.
    shown = re.sub(
        r'<script type="application/vnd\.jupyter\.widget-state\+json">.*?</script>', "", page, flags=re.DOTALL
    )
    assert len(shown) < len(page)
    assert "<i>metres" not in shown
    assert "model not found" not in page
