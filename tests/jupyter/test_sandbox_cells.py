"""%%sandbox in real kernels, with real sandboxes: what a person sees while a cell runs, and what is true afterwards."""

from __future__ import annotations

import re
import time

import pytest

import memkernel as mk
from memkernel.jupyter.progress import Progress
from tests.fix_kernel import Kernel, Reply

FOLDER = "/mnt/memory/team-notes"


def notes(somebody_else: mk.Connection) -> mk.Store:
    """The store that is mounted, as somebody else holds it."""
    return somebody_else.store("Team notes")


def write(path: str, text: str) -> str:
    """The line of Python that writes a file in the sandbox."""
    return f"_ = open({FOLDER + path!r}, 'w').write({text!r})\n"


# -- what a cell shows -------------------------------------------------------------------------------


def test_output_appears_while_the_cell_runs_and_both_streams_arrive(sandboxed: Kernel) -> None:
    message = sandboxed.send(
        "%%sandbox\nimport sys, time\nprint('first', flush=True)\ntime.sleep(3)\nprint('second', file=sys.stderr)\n"
    )
    seen: list[str] = []

    def first_came(reply: Reply) -> bool:
        seen.append(reply.stderr)
        return "first" in reply.stdout

    sandboxed.wait_until(message, first_came)
    assert "second" not in seen[-1]
    reply = sandboxed.reply(message)
    assert (reply.status, reply.stdout, reply.stderr) == ("ok", "first\n", "second\n")


def test_a_written_file_is_a_version_of_the_session_and_a_line_of_the_report(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    reply = sandboxed.run("%%sandbox\n" + write("/units.md", "SI\nmetres\n") + "print('done')\n'a value'\n")
    assert reply.status == "ok"
    assert reply.stdout == "done\n"
    *_, value, report = reply.outputs  # above them: the panel
    assert value["text/plain"] == "'a value'"
    assert re.search(r"\+ created +/units\.md +\+2 +@1 +10 B", report["text/plain"])
    assert report["text/plain"].startswith("sandbox main · ")
    assert "/units.md" in report["text/html"]
    assert not re.search(r"<script|https?://", report["text/html"])
    (version,) = notes(somebody_else).log("/units.md")
    assert (version.operation, version.created_by and version.created_by.type) == ("created", "session_actor")
    changed = sandboxed.run("%%sandbox\n" + write("/units.md", "SI\nfeet\n"))
    assert re.search(r"~ modified +/units\.md +\+1 −1 +@2 +8 B", changed.text)
    gone = sandboxed.run(f"%%sandbox --bash\nrm {FOLDER}/units.md\necho gone > {FOLDER}/why.md\n")
    assert re.search(r"− deleted +/units\.md +−2 +@3", gone.text)


def test_variables_live_from_cell_to_cell_and_apart_from_the_notebook(sandboxed: Kernel) -> None:
    sandboxed.run("x = 'the notebook'")
    assert sandboxed.run("%%sandbox\nx = 'the sandbox'\n").status == "ok"
    assert sandboxed.run("%%sandbox\nprint(x)\n").stdout == "the sandbox\n"
    assert sandboxed.run("print(x)").stdout == "the notebook\n"
    assert "nothing changed" in sandboxed.run("%%sandbox\n1;\n").text


def test_no_html_and_no_script_leaves_and_pictures_are_replaced_in_place(sandboxed: Kernel) -> None:
    reply = sandboxed.run(
        "%%sandbox\nfrom IPython.display import HTML, Javascript, display\n"
        "display(HTML('<b>bold</b>'))\ndisplay(Javascript('alert(1)'))\n"
        "shown = display('one', display_id=True)\nshown.update('two')\n"
    )
    assert reply.status == "ok"
    assert "bold" not in reply.html
    assert "alert" not in reply.html
    assert "text/html" in reply.stderr
    texts = [output["text/plain"] for output in reply.outputs]
    assert "'two'" in texts
    assert "'one'" not in texts


def test_quiet_shows_nothing_and_the_result_is_in_the_variable(sandboxed: Kernel) -> None:
    reply = sandboxed.run("%%sandbox -q -o r\n" + write("/a.md", "A\n") + "print('hello')\n")
    assert (reply.status, reply.stdout, reply.stderr, reply.outputs) == ("ok", "", "", [])
    assert sandboxed.run("print(r.status, repr(r.stdout), r.ok)").stdout == "ok 'hello\\n' True\n"
    shown = sandboxed.run("r")
    assert "hello" in shown.text
    assert "created" in shown.text
    assert "created" in shown.html


# -- cells that fail ---------------------------------------------------------------------------------


def test_a_cell_that_fails_shows_its_own_traceback_saves_its_files_and_stops_the_next_ones(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    failing = sandboxed.send("%%sandbox -o r\n" + write("/a.md", "A\n") + "nothing = 1 / 0\n")
    following = sandboxed.send("print('must not run')")
    reply = sandboxed.reply(failing)
    assert (reply.status, reply.ename) == ("error", "CellFailedError")
    assert "ZeroDivisionError: division by zero" in reply.evalue
    traceback = "\n".join(reply.traceback)
    assert "nothing" in traceback
    assert "memkernel" not in traceback
    assert "created" in reply.text
    assert sandboxed.reply(following).status == "aborted"
    assert notes(somebody_else).read("/a.md") == "A\n"
    assert sandboxed.run("print(r.status, r.error.ename)").stdout == "error ZeroDivisionError\n"


def test_a_script_that_fails_is_told_by_its_exit_status(sandboxed: Kernel) -> None:
    reply = sandboxed.run("%%sandbox --bash -o r\necho so far; exit 3\n")
    assert reply.stdout == "so far\n"
    assert reply.traceback[0] == "CellFailedError: the script ended with exit status 3"
    assert sandboxed.run("print(r.exit_code)").stdout == "3\n"


def test_f265_a_cell_that_takes_too_long_is_ended_its_files_are_saved_and_its_variables_kept(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    sandboxed.run("%%sandbox\nx = 1\n")
    reply = sandboxed.run("%%sandbox --timeout 1 -o r\n" + write("/a.md", "A\n") + "import time\ntime.sleep(60)\n")
    assert reply.ename == "CellFailedError"
    assert reply.traceback[0].startswith("CellFailedError: the cell took too long and was ended after 1")
    assert len(reply.traceback) == 2
    assert notes(somebody_else).read("/a.md") == "A\n"
    assert sandboxed.run("print(r.status)").stdout == "timeout\n"
    assert sandboxed.run("%%sandbox\nprint(x)\n").stdout == "1\n"


def test_the_stop_button_ends_the_cell_of_the_sandbox_and_still_saves(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    sandboxed.run("%%sandbox\nimport time\nx = 1\n")
    message = sandboxed.send("%%sandbox -o r\n" + write("/a.md", "A\n") + "print('now', flush=True)\ntime.sleep(60)\n")
    sandboxed.wait_until(message, lambda reply: "now" in reply.stdout)
    begun = time.monotonic()
    sandboxed.interrupt()
    reply = sandboxed.reply(message)
    assert time.monotonic() - begun < 10
    assert reply.ename == "CellFailedError"
    assert reply.traceback[0].startswith("CellFailedError: the cell was interrupted after ")
    assert len(reply.traceback) == 2
    assert "created" in reply.text
    assert notes(somebody_else).read("/a.md") == "A\n"
    assert sandboxed.run("print(r.status)").stdout == "interrupted\n"
    assert sandboxed.run("%%sandbox\nprint(x)\n").stdout == "1\n"


ONE_CELL = """
import time
print("begun", flush=True)
get_ipython().run_cell_magic("sandbox", "", "import time; time.sleep(30)")
"""


def test_a_cell_that_no_interrupt_ends_loses_its_kernel_and_nothing_says_otherwise(sandboxed: Kernel) -> None:
    deaf = "import time\nprint('begun', flush=True)\nwhile True:\n    try:\n        time.sleep(60)\n"
    message = sandboxed.send(f"%%sandbox -o r\nx = 1\n{deaf}    except KeyboardInterrupt:\n        pass\n")
    sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
    for _ in range(3):
        sandboxed.interrupt()
        time.sleep(0.5)
    reply = sandboxed.reply(message)
    assert reply.traceback[0].startswith("CellFailedError: the cell was interrupted after ")
    assert "its state is lost" in reply.stderr
    assert "kept" not in "".join(reply.traceback)
    assert sandboxed.run("%%sandbox\nprint('x' in globals())\n").stdout.endswith("False\n")


def test_an_interrupt_at_any_moment_leaves_a_sandbox_that_works(sandboxed: Kernel) -> None:
    for delay_s in (0.0, 0.005, 0.02, 0.1, 0.4):
        message = sandboxed.send(ONE_CELL)
        sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
        time.sleep(delay_s)
        sandboxed.interrupt()
        reply = sandboxed.reply(message)
        assert reply.ename in ("CellFailedError", "SandboxError", "KeyboardInterrupt")
        assert len(reply.traceback) == 2 or reply.ename == "KeyboardInterrupt"
        assert sandboxed.run("%%sandbox\nprint('works')\n").stdout == "works\n"


# -- two who change the same text --------------------------------------------------------------------


def conflict(sandboxed: Kernel, store: mk.Store, *, mine: str, theirs: str, options: str = "") -> Reply:
    """What a cell shows that writes /plan.md while somebody else changes it in the store."""
    message = sandboxed.send(
        f"%%sandbox -o r {options}\nimport time\nprint('begun', flush=True)\ntime.sleep(2)\n" + write("/plan.md", mine)
    )
    sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
    store.write("/plan.md", theirs)
    return sandboxed.reply(message)


def test_a_conflict_is_an_error_after_the_report_and_both_texts_are_there(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    store = notes(somebody_else)
    store.write("/plan.md", "one\ntwo\nthree\n")
    reply = conflict(sandboxed, store, mine="one\nMINE\nthree\n", theirs="one\nTHEIRS\nthree\n")
    assert (reply.status, reply.ename) == ("error", "SyncConflictError")
    assert len(reply.traceback) == 2
    assert "/plan.md" in reply.traceback[0]
    assert "✗ not saved" in reply.text
    assert store.read("/plan.md") == "one\nTHEIRS\nthree\n"
    assert sandboxed.run("print(r.status, r.ok, r.report.ok)").stdout == "ok False False\n"
    assert sandboxed.complete("%sandbox resolve /pl")[0] == ["/plan.md"]
    changes = sandboxed.run("%sandbox changes /plan.md")
    for shown in (changes.text, changes.html):
        assert "MINE" in shown
        assert "THEIRS" in shown
        assert "%sandbox resolve PATH mine" in shown
    assert sandboxed.run(f"%%sandbox\nprint(open('{FOLDER}/plan.md').read())\n").stdout == "one\nTHEIRS\nthree\n\n"
    settled = sandboxed.run("%sandbox resolve /plan.md both")
    assert settled.status == "ok"
    texts = {memory.path: store.read(memory.path) for memory in store.ls(depth=0)}
    assert sorted(texts.values()) == ["one\nMINE\nthree\n", "one\nTHEIRS\nthree\n"]
    assert sandboxed.run("%sandbox resolve /plan.md mine").ename == "NotFoundError"


def test_changes_of_different_lines_are_merged_where_that_is_asked_for(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    store = notes(somebody_else)
    store.write("/plan.md", "one\ntwo\nthree\nfour\n")
    reply = conflict(
        sandboxed,
        store,
        mine="ONE\ntwo\nthree\nfour\n",
        theirs="one\ntwo\nthree\nFOUR\n",
        options="--on-conflict merge",
    )
    assert reply.status == "ok"
    assert "merged" in reply.text
    assert store.read("/plan.md") == "ONE\ntwo\nthree\nFOUR\n"


# -- the other cells of the notebook -----------------------------------------------------------------


def test_fault_43_every_cell_of_the_notebook_ends_with_a_sync_and_keeps_its_own_status(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    store = notes(somebody_else)
    for number, (cell, status) in enumerate(
        {
            "print('mine')": "ok",
            "1 / 0": "error",
            "not python": "error",
            "raise KeyboardInterrupt": "error",
            "import asyncio; await asyncio.sleep(0)": "ok",
        }.items()
    ):
        store.write(f"/{number}.md", "news\n")
        reply = sandboxed.run(cell, stop_on_error=False)
        assert reply.status == status
        told = [line for line in reply.stdout.splitlines() if line.startswith("sandbox main: ")]
        assert told == [f"sandbox main: 1 file brought up to team-notes (/{number}.md)"]
    assert sandboxed.run("print('quiet')").stdout == "quiet\n"


def test_what_the_sandbox_writes_between_two_cells_is_saved_by_the_next_one(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    later = f"import threading\nthreading.Timer(0.5, lambda: open('{FOLDER}/late.md', 'w').write('late\\n')).start()\n"
    assert sandboxed.run("%%sandbox\n" + later).status == "ok"
    reply = sandboxed.run("import time; time.sleep(2)")
    assert reply.stdout == "sandbox main: 1 change saved in team-notes (/late.md)\n"
    assert notes(somebody_else).read("/late.md") == "late\n"


def test_what_an_agents_calls_did_in_a_cell_is_told_in_one_line(
    sandboxed: Kernel, somebody_else: mk.Connection, backend: str
) -> None:
    sandboxed.run("import memkernel as mk")
    box = f"mk.Sandbox(mk.connect().store('Other', create=True), name='mine', backend='{backend}')"
    sandboxed.run(f"bash, read, write = (mine := {box}).tools()[:3]")
    calls = [
        f"write.call({{'file_path': '/mnt/memory/other/{name}.md', 'content': '{text}'}})"
        for name, text in [("a", "1"), ("b", "1"), ("a", "2")]
    ]
    reply = sandboxed.run("_ = " + ", ".join(calls))
    assert reply.status == "ok", reply.traceback
    assert reply.stdout == "sandbox mine: 2 changes saved in other (/a.md, /b.md)\n"
    assert len(somebody_else.store("Other").log()) == 3
    assert sandboxed.run("%sandbox stop mine").status == "ok"


def test_a_sandbox_that_was_made_in_python_is_one_of_the_notebook_too(
    sandboxed: Kernel, somebody_else: mk.Connection, backend: str
) -> None:
    made = sandboxed.run(
        "import memkernel as mk\n"
        f"mine = mk.Sandbox(mk.connect().store('Other', create=True), name='mine', backend='{backend}').start()"
    )
    assert made.status == "ok", made.traceback
    somebody_else.store("Other").write("/a.md", "news\n")
    assert "sandbox mine: 1 file brought up to other (/a.md)" in sandboxed.run("None").stdout
    assert (
        sandboxed.run("%%sandbox --name mine\nimport os\nprint(os.listdir('/mnt/memory/other'))\n").stdout
        == "['a.md']\n"
    )
    assert sandboxed.run("%sandbox stop mine").status == "ok"


def test_a_reload_keeps_the_sandbox_and_an_unload_ends_the_syncs(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    sandboxed.run("%%sandbox\nx = 1\n")
    sandboxed.run("%reload_ext memkernel")
    assert sandboxed.run("%%sandbox\nprint(x)\n").stdout == "1\n"
    assert "Still running: sandbox main." in sandboxed.run("%unload_ext memkernel").stdout
    notes(somebody_else).write("/a.md", "news\n")
    assert sandboxed.run("print('quiet')").stdout == "quiet\n"
    assert sandboxed.run("len(get_ipython().events.callbacks['post_run_cell'])").text == "0"
    sandboxed.run("%load_ext memkernel")
    assert sandboxed.run("len(get_ipython().events.callbacks['post_run_cell'])").text == "1"


# -- how far a start is ------------------------------------------------------------------------------

BUILD = """
import time
from memkernel.jupyter.progress import Progress
progress = Progress(live=True)
for step in range(1, 6):
    progress(f"Step {step}/5 : RUN <b>pip</b>", step / 5)
    time.sleep(0.15)
progress.end("The image is built")
"""


def test_a_build_is_a_bar_in_one_output_that_grows_and_leaves_one_line(kernel: Kernel) -> None:
    message = kernel.send(BUILD)
    seen: list[str] = []

    def half(reply: Reply) -> bool:
        seen.append(reply.text)
        return "60%" in reply.text

    kernel.wait_until(message, half)
    assert "█" in seen[-1]
    assert "░" in seen[-1]
    assert "Step 3/5" in seen[-1]
    reply = kernel.reply(message)
    assert (len(reply.outputs), reply.updates) == (1, 5)
    assert reply.text.startswith("The image is built (")
    assert "<b>" not in reply.html


def test_in_a_terminal_a_bar_is_one_line_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(live=False)
    progress("Step 1/2 : \x1b[31mred", 0.5)
    progress.end("The image is built")
    lines = capsys.readouterr().out.split("\r\x1b[2K")
    assert lines[1].startswith("████████████░░░░░░░░░░░░  50%  Step 1/2 : ⟨ESC⟩[31mred")
    assert lines[2].startswith("The image is built (")
    Progress(live=False).end("nothing was built, nothing is said")
    assert capsys.readouterr().out == ""
