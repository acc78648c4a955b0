"""What every sandbox does, whoever provides it: one suite for Docker, both levels of local, and a bare kernel.

A sandbox is shared by the tests of this module; a test that kills its kernel leaves the next one a new kernel.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from memkernel.errors import InvalidInputError, SandboxClosedError, SandboxError
from memkernel.models import CellResult
from memkernel.sandbox.base import Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.kernel import KernelSandbox
from tests.sandbox.places import HereSandbox, Make

MiB = 1 << 20
SPEC = SandboxSpec("sesn_contract", "memkernel-tests", limits=SandboxLimits(mount_files=2_000, mount_bytes=64 * MiB))


@pytest.fixture(scope="module")
def folders(make: Make, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The stores' folders: `notes` can be written, `rules` cannot."""
    owner = make(SPEC).owner
    found: dict[str, Path] = {}
    for name in ("notes", "rules"):
        found[name] = tmp_path_factory.mktemp("memory") / name
        found[name].mkdir(mode=0o700)
        (found[name] / "first.md").write_text(f"the first of {name}\n")
        if os.getuid() == 0:
            os.chown(found[name], *owner)
            os.chown(found[name] / "first.md", *owner)
    return found


@pytest.fixture(scope="module")
def mounted(folders: dict[str, Path]) -> SandboxSpec:
    mounts = tuple(
        Mount(path, f"/mnt/memory/{name}", read_only=name == "rules") for name, path in sorted(folders.items())
    )
    return replace(SPEC, mounts=mounts)


@pytest.fixture(scope="module")
def box(make: Make, mounted: SandboxSpec) -> Iterator[KernelSandbox]:
    sandbox = make(mounted)
    sandbox.start()
    yield sandbox
    sandbox.stop()


def run(box: KernelSandbox, code: str, **how: Any) -> CellResult:
    return box.run(code, **how)


def within(seconds: float) -> Any:
    """The block takes at most that long."""

    class Within:
        def __enter__(self) -> None:
            self.began = time.monotonic()

        def __exit__(self, *error: object) -> None:
            if error[0] is None:
                assert time.monotonic() - self.began < seconds

    return Within()


# -- cells -----------------------------------------------------------------------------------------


def test_a_cell_gives_its_result_its_streams_and_its_outputs(box: KernelSandbox) -> None:
    result = run(box, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert (result.status, result.stdout, result.stderr, result.result) == ("ok", "out\n", "err\n", "42")
    assert [output["output_type"] for output in result.outputs][-1] == "execute_result"
    assert result.error is None
    assert result.exit_code is None
    assert result.notes == ()
    assert result.ok


def test_state_lives_from_cell_to_cell(box: KernelSandbox) -> None:
    run(box, "kept = 'x' * 3")
    assert run(box, "kept").result == "'xxx'"


def test_an_error_is_a_result(box: KernelSandbox) -> None:
    result = run(box, "print('before')\n1 / 0")
    assert result.status == "error"
    assert result.error is not None
    assert (result.error.ename, result.error.evalue) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in re.sub("\x1b[^m]*m", "", "".join(result.error.traceback)).replace("1/0", "1 / 0")
    assert result.stdout == "before\n"
    assert run(box, "1").status == "ok"


def test_a_syntax_error_is_a_result(box: KernelSandbox) -> None:
    result = run(box, "def (")
    assert result.error is not None
    assert result.error.ename == "SyntaxError"


def test_an_empty_cell_is_ok(box: KernelSandbox) -> None:
    assert (run(box, "").status, run(box, "  \n").result) == ("ok", None)


def test_text_of_every_script_comes_through(box: KernelSandbox) -> None:
    assert run(box, "print('żółw 🐢 \\u202e 日本')").stdout == "żółw 🐢 \u202e 日本\n"


def test_output_comes_while_the_cell_runs(box: KernelSandbox) -> None:
    seen: list[tuple[float, str]] = []
    began = time.monotonic()

    def sink(output: dict[str, Any]) -> None:
        seen.append((time.monotonic() - began, output["text"]))

    result = run(box, "import time\nprint('one', flush=True)\ntime.sleep(1)\nprint('two')", on_output=sink)
    assert "".join(text for _, text in seen) == result.stdout == "one\ntwo\n"
    assert seen[0][0] < 0.9 < seen[-1][0]


def test_what_the_sink_raises_ends_the_cell_and_is_raised(box: KernelSandbox) -> None:
    def sink(output: dict[str, Any]) -> None:
        raise LookupError("no front end")

    with within(5), pytest.raises(LookupError, match="no front end"):
        run(box, "import time\nprint('x', flush=True)\ntime.sleep(60)", on_output=sink)
    assert run(box, "1").result == "1"


def test_a_magic_and_a_shell_escape_work(box: KernelSandbox) -> None:
    assert run(box, "!echo from a shell").stdout.strip() == "from a shell"
    assert run(box, "%%time\n1").status == "ok"


# -- what may leave --------------------------------------------------------------------------------


def test_html_and_scripts_stay_and_it_is_said(box: KernelSandbox) -> None:
    result = run(
        box,
        "from IPython.display import *\ndisplay(HTML('<script>1</script>'), Javascript('1'), SVG('<svg/>'),"
        " Markdown('# x'))\ndisplay({'text/html': '<b>', 'text/plain': 'plain'}, raw=True)",
    )
    assert {mime for output in result.outputs for mime in output["data"]} == {"text/plain"}
    [note] = result.notes
    for mime in ("text/html (2)", "application/javascript", "image/svg+xml", "text/markdown"):
        assert mime in note


def test_images_latex_and_json_leave(box: KernelSandbox) -> None:
    png = "iVBORw0KGgo="
    result = run(
        box,
        f"from IPython.display import display\ndisplay({{'image/png': {png!r}, 'text/latex': '$x$',"
        " 'application/json': {'a': [1]}}, raw=True, metadata={'image/png': {'width': 3, 'onload': 'x'}})",
    )
    [output] = result.outputs
    assert output["data"] == {"image/png": png, "text/latex": "$x$", "application/json": {"a": [1]}}
    assert output["metadata"] == {"image/png": {"width": 3}}


def test_input_is_refused_and_the_next_cells_text_is_not_set(box: KernelSandbox) -> None:
    asked = run(box, "input('who? ')")
    assert asked.error is not None
    assert asked.error.ename == "StdinNotImplementedError"
    written = run(box, "get_ipython().set_next_input('rm -rf /')")
    assert written.status == "ok"
    assert "set_next_input" in written.notes[0]


def test_clear_output_clears(box: KernelSandbox) -> None:
    result = run(box, "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('there')")
    assert (result.stdout, len(result.outputs)) == ("there\n", 1)


def test_a_display_is_updated_under_a_name_of_its_own(box: KernelSandbox) -> None:
    seen: list[dict[str, Any]] = []
    result = run(
        box,
        "from IPython.display import display\nimport time\nh = display('a', display_id='the-notebooks')\n"
        "time.sleep(0.3)\nh.update('b')",
        on_output=seen.append,
    )
    assert result.outputs[0]["data"]["text/plain"] == "'b'"
    assert "transient" not in result.outputs[0]
    assert [each["output_type"] for each in seen] == ["display_data", "update_display_data"]
    ids = {each["transient"]["display_id"] for each in seen}
    assert len(ids) == 1
    assert "the-notebooks" not in ids


# -- floods ----------------------------------------------------------------------------------------


def test_a_hundred_megabytes_of_output_are_cut_and_said(box: KernelSandbox) -> None:
    result = run(box, "for _ in range(1000):\n    print('x' * 100_000)", timeout_s=60)
    assert result.status == "ok"
    assert len(result.stdout) <= SPEC.limits.output_bytes
    assert "left out" in result.notes[-1]
    assert run(box, "1").result == "1"


def test_one_message_of_thirty_megabytes_is_left_out_and_said(box: KernelSandbox) -> None:
    result = run(box, "print('x' * 30_000_000)\n7", timeout_s=60)
    assert (result.status, result.result) == ("ok", "7")
    assert len(result.stdout) <= SPEC.limits.output_bytes
    assert re.match("left out: (20|30).* MB", result.notes[-1])


def test_a_storm_of_clear_output_ends_with_the_last_output(box: KernelSandbox) -> None:
    seen: list[dict[str, Any]] = []
    result = run(
        box,
        "from IPython.display import clear_output\nfor n in range(5000):\n    clear_output(wait=True)\n    print(n)",
        on_output=seen.append,
        timeout_s=60,
    )
    assert result.stdout == "4999\n"
    assert seen[-1]["text"].endswith("4999\n")


def test_ten_thousand_outputs_are_kept(box: KernelSandbox) -> None:
    result = run(box, "from IPython.display import display\nfor n in range(10_000):\n    display(n)", timeout_s=60)
    assert len(result.outputs) == 10_000


# -- time-outs -------------------------------------------------------------------------------------


def test_a_time_out_interrupts_and_the_state_stays(box: KernelSandbox) -> None:
    run(box, "kept = 5")
    with within(2):
        result = run(box, "import time\nprint('began', flush=True)\ntime.sleep(60)", timeout_s=0.5)
    assert (result.status, result.stdout) == ("timeout", "began\n")
    assert run(box, "kept").result == "5"


def test_a_cell_that_ignores_its_time_out_costs_the_kernel_and_it_is_said(box: KernelSandbox) -> None:
    run(box, "kept = 5")
    with within(20):
        result = run(
            box,
            "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(0.1)",
            timeout_s=0.3,
        )
    assert result.status == "timeout"
    assert "state is lost" in result.notes[0]
    assert run(box, "'kept' in globals()").result == "False"


def test_code_that_holds_the_interpreter_is_ended_too(box: KernelSandbox) -> None:
    """A regular expression that never ends, in C: no signal handler runs, and no message is answered."""
    with within(20):
        result = run(box, "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", timeout_s=0.3)
    assert result.status == "timeout"
    assert run(box, "1").result == "1"


def test_a_time_out_ends_what_the_cell_started_and_nothing_else(box: KernelSandbox, folders: dict[str, Path]) -> None:
    """FAULTS 38."""
    late = folders["notes"] / "late.md"
    run(box, "import subprocess\nearlier = subprocess.Popen(['sleep', '60'])")
    result = run(
        box,
        "import time\nsubprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" INT TERM; sleep 2; echo late >"
        " /mnt/memory/notes/late.md'])\ntime.sleep(60)",
        timeout_s=0.5,
    )
    assert result.status == "timeout"
    assert run(box, "earlier.poll()").result is None
    time.sleep(2.5)
    assert not late.exists()
    run(box, "earlier.kill(); earlier.wait()")


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
def test_a_time_out_that_is_none_is_refused(box: KernelSandbox, timeout_s: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0"):
        box.run("1", timeout_s=timeout_s)


STOP_THE_HELPER = """
import os, signal, time
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) not in (1, os.getpid()) and os.getppid() in (int(name), 1):
        if 'KILL_SINCE' in open(f'/proc/{name}/cmdline').read() and int(name) != os.getpid():
            os.kill(int(name), signal.SIGSTOP)
time.sleep(60)
"""


def test_a_stopped_helper_does_not_keep_a_time_out(box: KernelSandbox) -> None:
    with within(20):
        assert run(box, STOP_THE_HELPER, timeout_s=1).status == "timeout"
    assert run(box, "1").result == "1"


STOP_THE_HELPER_SOON = f"import threading\nthreading.Timer(0.3, exec, [{STOP_THE_HELPER!r}, {{}}]).start()"


def test_a_stopped_helper_that_reads_nothing_does_not_keep_a_time_out(box: KernelSandbox) -> None:
    run(box, STOP_THE_HELPER_SOON)
    time.sleep(1)
    with within(20):
        result = run(box, f"x = {'1' * 8_000_000!r}", timeout_s=1)
    assert result.status == "timeout"
    assert "state is lost" in result.notes[0]
    assert run(box, "1").result == "1"


def test_a_stopped_helper_that_reads_nothing_does_not_keep_a_stop(make: Make) -> None:
    box = make(SPEC)
    box.start()
    box.run(STOP_THE_HELPER_SOON)
    time.sleep(1)
    errors: list[BaseException] = []

    def script() -> None:
        try:
            box.bash(f": {'1' * 8_000_000}")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=script)
    thread.start()
    time.sleep(0.5)
    with within(10):
        box.interrupt()
        box.stop()
        thread.join()
    assert isinstance(errors[0], SandboxClosedError)


def test_what_is_no_text_is_refused(box: KernelSandbox) -> None:
    for wrong in (5, None, b"1", ["1"], "\ud800"):
        for call in (box.run, box.bash):
            with pytest.raises(InvalidInputError, match="no text"):
                call(cast("str", wrong))
    with pytest.raises(InvalidInputError, match="no text"):
        box.exec(["echo", "\ud800"])


# -- interrupts ------------------------------------------------------------------------------------


def test_an_interrupt_from_another_thread_ends_the_cell(box: KernelSandbox) -> None:
    run(box, "kept = 6")
    timer = threading.Timer(0.5, box.interrupt)
    timer.start()
    with within(3):
        result = run(box, "import time\ntime.sleep(60)")
    timer.join()
    assert result.status == "interrupted"
    assert run(box, "kept").result == "6"


def test_an_interrupt_reaches_the_processes_of_the_cell(box: KernelSandbox) -> None:
    timer = threading.Timer(0.7, box.interrupt)
    timer.start()
    with within(4):
        result = run(box, "import subprocess\nsubprocess.run(['sleep', '60'])")
    timer.join()
    assert result.status == "interrupted"


def test_a_keyboard_interrupt_of_the_caller_interrupts_the_cell(box: KernelSandbox) -> None:
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with within(3):
        result = run(box, "import time\ntime.sleep(60)")
    timer.join()
    assert result.status == "interrupted"
    assert run(box, "1").result == "1"


def test_a_second_interrupt_ends_a_cell_that_ignores_the_first(box: KernelSandbox) -> None:
    timers = [threading.Timer(delay, box.interrupt) for delay in (0.4, 1.0)]
    for timer in timers:
        timer.start()
    with within(20):
        result = run(
            box, "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(0.1)"
        )
    assert result.status == "interrupted"
    assert "state is lost" in result.notes[0]
    assert run(box, "1").result == "1"


def test_an_interrupt_while_nothing_runs_is_nothing(box: KernelSandbox) -> None:
    box.interrupt()
    assert run(box, "1").result == "1"


# -- deaths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(3)",
        "import os; os.abort()",
        "import ctypes; ctypes.string_at(0)",
        "import os; os.kill(os.getpid(), 15)",
    ],
)
def test_a_death_is_a_result_in_under_a_second_and_the_next_cell_has_a_new_kernel(
    box: KernelSandbox, code: str
) -> None:
    run(box, "kept = 7")
    with within(1):
        result = run(box, f"print('before', flush=True)\n{code}")
    assert result.status == "died"
    assert "the kernel died" in result.notes[0]
    assert box.status().state == "dead"
    after = run(box, "'kept' in globals()")
    assert (after.status, after.result) == ("ok", "False")
    assert "state of the old one is lost" in after.notes[0]
    assert box.status().state == "running"


def test_a_restart_is_a_new_kernel_on_the_same_mounts(box: KernelSandbox) -> None:
    run(box, "kept = 8\nopen('/mnt/memory/notes/kept.md', 'w').write('kept')")
    box.restart()
    assert run(box, "'kept' in globals(), open('/mnt/memory/notes/kept.md').read()").result == "(False, 'kept')"


# -- forged, broken and withheld messages ----------------------------------------------------------

FORGE = """
from ipykernel.kernelapp import IPKernelApp
kernel = IPKernelApp.instance().kernel
parent = kernel.get_parent()
def forge(kind, content, parent=parent):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, ident=kind.encode())
"""


def test_a_forged_idle_ends_no_cell_and_the_next_one_works(box: KernelSandbox) -> None:
    result = run(box, FORGE + "import time\nforge('status', {'execution_state': 'idle'})\ntime.sleep(0.5)\n9")
    assert (result.status, result.result) == ("ok", "9")
    assert run(box, "10").result == "10"


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("stream", "{}"),
        ("stream", "{'name': 5, 'text': {'a': 1}}"),
        ("stream", "{'name': 'stdout', 'text': None}"),
        ("display_data", "{'data': [1], 'metadata': 'x'}"),
        ("display_data", "{'data': {'text/plain': 5, 'image/png': '\\\"><script>', 'x': 1}}"),
        ("execute_result", "{'data': {'text/plain': 'forged'}, 'execution_count': 'x'}"),
        ("update_display_data", "{'data': {}, 'transient': 3}"),
        ("error", "{'ename': 1, 'evalue': [], 'traceback': 'x'}"),
        ("error", "{}"),
        ("clear_output", "{'wait': 'x'}"),
        ("comm_open", "{'comm_id': 'x', 'target_name': 'jupyter.widget'}"),
        ("no_such_type", "{}"),
        ("status", "{'execution_state': {}}"),
        ("input_request", "{'prompt': 'password? ', 'password': True}"),
    ],
)
def test_a_message_that_makes_no_sense_breaks_nothing(box: KernelSandbox, message: str, content: str) -> None:
    result = run(box, FORGE + f"forge({message!r}, {content})\nprint('after')")
    assert result.status in ("ok", "error")
    assert result.stdout.endswith("after\n")
    assert run(box, "10").result == "10"


def test_frames_that_are_no_messages_break_nothing(box: KernelSandbox) -> None:
    code = """
import os
for frames in ([b'x'], [b''] * 40, [b'<IDS|MSG>'], [b'<IDS|MSG>', b'bad', b'{}', b'{}', b'{}', b'{}'],
               [b'<IDS|MSG>', b'', b'\\xff', b'{', b'[]', b'1'], [os.urandom(5000) for _ in range(100)]):
    kernel.iopub_socket.send_multipart(frames)
print('after')
"""
    assert run(box, FORGE + code).stdout == "after\n"
    assert run(box, "10").result == "10"


def test_a_message_with_a_key_of_somebody_elses_is_dropped(box: KernelSandbox) -> None:
    code = """
from jupyter_client.session import Session
Session(key=b'another').send(kernel.iopub_socket, 'stream', {'name': 'stdout', 'text': 'forged'}, parent=parent)
print('real')
"""
    assert run(box, FORGE + code).stdout == "real\n"


def test_a_cell_whose_idle_never_comes_ends(box: KernelSandbox) -> None:
    mute = "send = kernel.session.send\nkernel.session.send = lambda *a, **k: None if {!r} in a else send(*a, **k)\n11"
    for withheld in ("status", "execute_reply"):
        with within(4):
            assert run(box, FORGE + mute.format(withheld)).result == "11"
        box.restart()


def test_a_cell_that_says_nothing_at_all_is_ended_by_its_time_out(box: KernelSandbox) -> None:
    with within(20):
        result = run(box, FORGE + "kernel.session.send = lambda *a, **k: None", timeout_s=1)
    assert result.status == "timeout"
    assert "state is lost" in result.notes[0]
    assert run(box, "10").result == "10"


def test_late_output_of_a_thread_is_not_shown_with_another_cell_and_is_said(box: KernelSandbox) -> None:
    run(
        box,
        FORGE + "import threading\nthreading.Timer(0.3, forge, ['stream', {'name': 'stdout', 'text': 'late'}]).start()",
    )
    time.sleep(0.6)
    result = run(box, "print('mine')")
    assert result.stdout == "mine\n"
    assert "earlier" in result.notes[0]


def test_a_helper_that_is_killed_ends_the_kernel_and_the_next_cell_works(box: KernelSandbox) -> None:
    code = """
import os, signal
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) not in (1, os.getpid()):
        try:
            command = open(f'/proc/{name}/cmdline').read()
            if 'KILL_SINCE' in command and int(name) == int(os.environ.get('X', name)):
                parent = open(f'/proc/{os.getpid()}/stat').read().split()[3]
                if parent in (name, '1'):
                    os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass
import time
time.sleep(30)
"""
    with within(5):
        assert run(box, code).status == "died"
    assert run(box, "10").result == "10"


def test_the_log_has_a_crashs_last_words_and_how_the_kernel_ended(box: KernelSandbox) -> None:
    run(box, "import os\nos.write(2, b'of a cell'); os.system('echo of a child >&2')")
    assert box.logs() == ""
    assert run(box, "import ctypes\nctypes.string_at(0)").status == "died"
    log = box.logs().splitlines()
    assert log[0] == "Fatal Python error: Segmentation fault"
    assert log[-1] == "the kernel died with exit code 139"
    assert run(box, "10").result == "10"


@pytest.mark.parametrize("code", ["exit()", "quit()"])
def test_exit_ends_the_kernel_with_that_cell(box: KernelSandbox, code: str) -> None:
    run(box, "kept = 7")
    with within(5):
        result = run(box, f"print('before')\n{code}")
    assert (result.status, result.stdout) == ("ok", "before\n")
    assert result.notes == ("the kernel ended: exit() was called",)
    assert box.status().state == "dead"
    after = run(box, "'kept' in globals()")
    assert after.result == "False"
    assert "state of the old one is lost" in after.notes[0]
    assert run(box, "1").notes == ()


def test_an_exit_that_keeps_the_kernel_does(box: KernelSandbox) -> None:
    run(box, "kept = 8")
    assert run(box, "exit(keep_kernel=True)").notes == ()
    assert run(box, "kept").result == "8"


def test_a_cell_whose_end_is_withheld_ends_all_the_same_and_says_so(box: KernelSandbox) -> None:
    """Whatever became of the kernel's outputs: the reply alone ends it after a while."""
    with within(10):
        result = run(box, "get_ipython().kernel.iopub_thread.socket.close()\n1")
    assert result.status == "ok"
    assert "did not tell the end" in result.notes[0]
    box.restart()
    assert run(box, "10").result == "10"


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.1, 0.15])
def test_a_kernel_that_dies_while_it_is_frozen_is_followed_by_a_new_one(box: KernelSandbox, delay_s: float) -> None:
    run(box, f"import os, threading\nthreading.Timer({delay_s} + 0.05, os._exit, [3]).start()")
    with within(20):
        with box.frozen():
            time.sleep(0.2)
        deadline = time.monotonic() + 5
        while box.status().state == "running" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert box.status().state == "dead"
        assert run(box, "10").result == "10"


def test_a_frozen_sandbox_can_be_restarted_and_ended(make: Make) -> None:
    box = make(SPEC)
    box.start()
    with within(30):
        with box.frozen():
            box.restart()
            assert box.run("1").result == "1"
        assert box.run("2").result == "2"
        with box.frozen():
            box.stop()
    assert box.status().state == "closed"


# -- commands --------------------------------------------------------------------------------------


def test_bash_is_a_result_with_an_exit_code(box: KernelSandbox) -> None:
    result = box.bash("echo out; echo err >&2; exit 4")
    assert (result.status, result.stdout, result.stderr, result.exit_code) == ("error", "out\n", "err\n", 4)
    good = box.bash("cd /tmp; pwd | tr a-z A-Z")
    assert (good.status, good.exit_code) == ("ok", 0)


def test_a_bash_script_may_be_longer_than_an_argument(box: KernelSandbox) -> None:
    script = "\n".join(f"x={n}" for n in range(50_000)) + "\necho $x $1 end"
    assert box.bash(script).stdout == "49999 end\n"


def test_a_command_may_have_long_words(box: KernelSandbox) -> None:
    words = ["x" * size for size in (100_000, 60_000, 5)]
    assert box.exec(["sh", "-c", 'echo "$@" | wc -c', "sh", *words]).stdout.strip() == b"160008"


def test_what_children_write_comes_as_fast_as_elsewhere_and_is_no_log(box: KernelSandbox) -> None:
    with within(10):
        result = run(box, "import os\nos.system('yes | head -c 8000000')\nNone", timeout_s=30)
    assert len(result.stdout) == 8_000_000
    assert "y\ny\n" not in box.logs()


def test_what_children_write_goes_nowhere_else(box: KernelSandbox) -> None:
    """The fds that ipykernel copies it to are those of its streams, and no socket that took their numbers."""
    copies = "[os.readlink(f'/proc/self/fd/{s._original_stdstream_copy}') for s in (sys.stdout, sys.stderr)]"
    assert run(box, f"import os, sys\n{copies}").result == "['/dev/null', '/dev/null']"
    result = run(box, "for _ in range(3000): os.write(2, b'x' * 1000 + b'\\n')", timeout_s=30)
    assert (result.status, len(result.stderr)) == ("ok", 3_003_000)


def test_bash_has_no_input(box: KernelSandbox) -> None:
    assert box.bash("cat; echo done", timeout_s=10).stdout == "done\n"


def test_bash_times_out_with_all_that_it_started(box: KernelSandbox, folders: dict[str, Path]) -> None:
    """FAULTS 38."""
    with within(6):
        result = box.bash(
            "(trap '' INT TERM; sleep 3; echo late > /mnt/memory/notes/late.md) & sleep 60", timeout_s=0.5
        )
    assert result.status == "timeout"
    time.sleep(3)
    assert not (folders["notes"] / "late.md").exists()
    assert run(box, "1").result == "1"


def test_bash_is_interrupted(box: KernelSandbox) -> None:
    timer = threading.Timer(0.5, box.interrupt)
    timer.start()
    with within(3):
        result = box.bash("echo began; sleep 60")
    timer.join()
    assert (result.status, result.stdout) == ("interrupted", "began\n")


def test_bash_streams(box: KernelSandbox) -> None:
    seen: list[str] = []
    box.bash("echo one; sleep 0.5; echo two", on_output=lambda output: seen.append(output["text"]))
    assert seen == ["one\n", "two\n"]


def test_a_command_gets_its_input_and_gives_its_bytes(box: KernelSandbox) -> None:
    data = bytes(range(256)) * 4000
    done = box.exec(["cat"], stdin=data)
    assert (done.exit_code, done.stdout, done.stderr, done.timed_out) == (0, data, b"", False)


def test_a_command_has_its_folder_and_its_variables(box: KernelSandbox) -> None:
    done = box.exec(["sh", "-c", "pwd; echo $COLOUR"], cwd="/mnt/memory/notes", environment={"COLOUR": "blue"})
    assert done.stdout == b"/mnt/memory/notes\nblue\n"


def test_a_command_that_is_not_there_ends_as_in_a_shell(box: KernelSandbox) -> None:
    done = box.exec(["no-such-command", "x"])
    assert (done.exit_code, done.stderr) == (127, b"no-such-command: command not found\n")
    assert box.exec(["true"], cwd="/no/such/folder").stderr == b"/no/such/folder: no such folder\n"


def test_a_command_is_killed_with_all_that_it_started_when_its_time_is_up(box: KernelSandbox) -> None:
    with within(4):
        done = box.exec(
            ["sh", "-c", "echo began; setsid sh -c 'trap \"\" TERM INT; sleep 61' & sleep 60"], timeout_s=0.5
        )
    assert (done.timed_out, done.stdout, done.exit_code) == (True, b"began\n", -9)
    assert b"sleep 61" not in box.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).stdout.replace(
        b'trap "" TERM INT; sleep 61\'', b""
    ).replace(b"sleep 61' &", b"")


def test_a_command_may_leave_a_service_running(box: KernelSandbox) -> None:
    with within(3):
        done = box.exec(["sh", "-c", "sleep 60 & echo $!"])
    assert box.exec(["sh", "-c", f"kill {done.stdout.decode()}"]).exit_code == 0


def test_a_command_that_says_too_much_keeps_its_tail(box: KernelSandbox) -> None:
    done = box.exec(["sh", "-c", "head -c 30000000 /dev/zero; echo end"])
    assert done.truncated
    assert len(done.stdout) == SPEC.limits.output_bytes
    assert done.stdout.endswith(b"end\n")


def test_commands_run_while_a_cell_does(box: KernelSandbox) -> None:
    results: list[CellResult] = []
    thread = threading.Thread(target=lambda: results.append(run(box, "import time\ntime.sleep(1)\n'slept'")))
    thread.start()
    time.sleep(0.2)
    with within(1):
        assert box.exec(["echo", "x"]).stdout == b"x\n"
    thread.join()
    assert results[0].result == "'slept'"


# -- mounts ----------------------------------------------------------------------------------------


def test_stores_are_where_they_belong(box: KernelSandbox, folders: dict[str, Path]) -> None:
    assert run(box, "open('/mnt/memory/notes/first.md').read()").result == "'the first of notes\\n'"
    assert box.bash("echo new > /mnt/memory/notes/new.md").status == "ok"
    assert (folders["notes"] / "new.md").read_text() == "new\n"


def test_a_mount_that_grows_without_end_ends_the_kernel(box: KernelSandbox, folders: dict[str, Path]) -> None:
    """Decision 5."""
    code = "import os\nos.makedirs('/mnt/memory/notes/many', exist_ok=True)\nn = 0\n"
    with within(10):
        result = run(box, code + "while True:\n    open(f'/mnt/memory/notes/many/{n}', 'w').close(); n += 1")
    assert result.status == "died"
    assert "/mnt/memory/notes grew by more than 2,000 files, the limit" in result.notes[0]
    assert box.bash("rm -r /mnt/memory/notes/many").status == "ok"
    with within(20):
        code = "f = open('/mnt/memory/notes/%d' % n, 'wb'); f.write(b'x' * (8 << 20)); f.close(); n += 1"
        result = run(box, f"n = 0\nwhile True: {code}")
    assert "/mnt/memory/notes grew by more than 64 MiB, the limit" in result.notes[0]
    for file in folders["notes"].glob("[0-9]*"):
        file.unlink()
    assert run(box, "1").result == "1"


# -- life ------------------------------------------------------------------------------------------


def test_before_its_start_and_after_its_end_a_sandbox_is_closed(make: Make) -> None:
    box = make(SPEC)
    assert box.status().state == "new"
    with pytest.raises(SandboxClosedError):
        box.run("1")
    box.start()
    box.start()
    assert box.run("1").result == "1"
    box.stop()
    box.stop()
    assert box.status().state == "closed"
    for call in (lambda: box.run("1"), lambda: box.bash("true"), lambda: box.exec(["true"]), box.restart, box.start):
        with pytest.raises(SandboxClosedError):
            call()
    box.interrupt()


def test_a_stop_ends_the_cell_that_runs(make: Make) -> None:
    box = make(SPEC)
    box.start()
    errors: list[BaseException] = []

    def cell() -> None:
        try:
            box.run("import time\ntime.sleep(60)")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=cell)
    thread.start()
    time.sleep(0.5)
    with within(5):
        box.stop()
        thread.join()
    assert isinstance(errors[0], SandboxClosedError)


def test_nothing_of_a_sandbox_is_left(make: Make) -> None:
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        box = make(SPEC)
        box.start()
        box.run("1")
        box.exec(["true"])
        box.restart()
        box.stop()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and threading.active_count() > threads:
        time.sleep(0.05)
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files + 2  # the engine's client keeps connections


def test_many_sandboxes_at_once_keep_apart(make: Make) -> None:
    boxes = [make(replace(SPEC, session_id=f"sesn_contract{n}")) for n in range(4)]
    results: dict[int, list[str | None]] = {}

    def work(number: int) -> None:
        boxes[number].start()
        boxes[number].run(f"mine = {number}")
        results[number] = [boxes[number].run("mine").result for _ in range(20)]

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for box in boxes:
        box.stop()
    assert results == {number: [str(number)] * 20 for number in range(4)}


def test_cells_of_several_threads_run_one_after_the_other(box: KernelSandbox) -> None:
    run(box, "order = []")
    results: list[str | None] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(
                run(box, "import time\norder.append('in'); time.sleep(0.1); order.append('out')\n1").result
            )
        )
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["1"] * 5
    assert run(box, "order == ['in', 'out'] * 5").result == "True"


def test_a_forked_child_cannot_use_it_and_does_not_keep_it(box: KernelSandbox) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # the child
        try:
            box.run("1")
        except SandboxClosedError as error:
            os.write(write, str(error).encode())
        finally:
            box.stop()
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert "belongs to the process that started it" in answer.read()
    assert run(box, "1").result == "1"


def test_the_bare_kernel_is_a_sandbox_too(tmp_path: Path) -> None:
    """The smallest Place there is: the one of these tests."""
    box = HereSandbox(SPEC, tmp_path)
    box.start()
    assert box.run("1").result == "1"
    box.stop()
