"""%%agent and %agent in a real kernel: approval, the background, other kernels, recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memkernel as mk
from memkernel.agent.script import Failure, Reply, ToolUse, reply
from memkernel.jupyter.widgets.outputs import VIEW_TYPE
from tests.fix_agent import Scripted
from tests.fix_kernel import Kernel, kernel_environment

CREATE = {"command": "create", "path": "/memories/units.md", "file_text": "SI\n"}
VIEW = {"command": "view", "path": "/memories"}
SI = "Remember that I prefer SI units"

Talks = Callable[..., Kernel]


@pytest.fixture
def talks(scripted: Scripted, dsn: str, tmp_path: Path) -> Iterator[Talks]:
    """Kernels on one database whose Anthropic API answers with these replies: `talks(reply(…), …)`."""
    kernels: list[Kernel] = []

    def make(*replies: Reply | Failure) -> Kernel:
        model = scripted(*replies)
        keys = {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": model.url}
        kernels.append(Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=dsn, **keys), tmp_path))
        kernels[-1].run("%load_ext memkernel")
        kernels[-1].run('%memory use "Team notes" --create -q')
        return kernels[-1]

    yield make
    for kernel in kernels:
        kernel.close()


# -- approval ------------------------------------------------------------------------------------------


def test_a_call_is_asked_about_and_runs_or_does_not(kernel: Kernel, somebody_else: mk.Connection) -> None:
    kernel.run("%memory config render static")
    asked = kernel.run(f"%%agent --approve ask -o run\n{SI}\n", answers=["y", "n  not yet ", "n", "n", "n"])
    assert asked.status == "ok"
    assert "✓ approved" in asked.text
    assert "✗ denied: not yet" in asked.text
    assert somebody_else.store("Team notes").ls() == []
    assert "Not run: this call was not approved: not yet." in kernel.run("print(run.messages)").stdout


def test_all_calls_of_a_tool_are_approved_of_at_once_for_the_conversation(kernel: Kernel) -> None:
    kernel.run("%memory config render static")
    assert kernel.run(f"%%agent --approve ask -o run\n{SI}\n", answers=["a"]).status == "ok"
    again = kernel.run("%%agent --approve ask\nRemember that the standup is at 9:30\n")
    assert "denied" not in again.text
    assert "denied" in kernel.run(f"%%agent --approve ask --new\n{SI}\n").text


def test_where_nobody_can_be_asked_it_is_denied_in_one_line_a_call(
    kernel: Kernel, somebody_else: mk.Connection
) -> None:
    told = kernel.run(f"%%agent --approve ask -q -o run\n{SI}\n")
    assert (told.status, told.outputs) == ("ok", [])
    calls = kernel.run("print(sum(type(each).__name__ == 'ToolCalled' for each in run.events))").stdout
    assert told.stdout.count("\n") == int(calls)
    assert told.stdout.startswith("Denied: memory view /memories. Nobody can be asked here;")
    assert somebody_else.store("Team notes").ls() == []


def test_a_widget_whose_page_says_nothing_leaves_the_question_to_text(kernel: Kernel) -> None:
    asked = kernel.run(f"%%agent --approve ask -o run\n{SI}\n", answers=["a"])
    assert (asked.status, VIEW_TYPE in asked.outputs[0]) == ("ok", True)
    assert "approved" in asked.text
    assert "+ /notes.md @1" in asked.text


def test_an_interrupt_of_the_question_stops_the_run(kernel: Kernel) -> None:
    kernel.run("%memory config render static")
    sent = kernel.send(f"%%agent --approve ask -o run\n{SI}\n", allow_stdin=True)
    assert kernel.question().startswith("memory would run:\n  command: view\n  path: /memories\nLet it run?")
    kernel.interrupt()
    answer = kernel.reply(sent)
    assert (answer.ename, len(answer.traceback)) == ("AgentError", 2)
    assert kernel.run("print(run.status)").stdout == "stopped\n"


def test_what_never_may_run_does_not_and_nobody_is_asked(kernel: Kernel, somebody_else: mk.Connection) -> None:
    told = kernel.run(f"%%agent --approve-tool memory=never\n{SI}\n")
    assert told.stdout == ""
    assert "✗ not allowed" in told.text
    assert somebody_else.store("Team notes").ls() == []
    unknown = kernel.run(f"%%agent --approve-tool bash=ask\n{SI}\n")
    assert (unknown.ename, len(unknown.traceback)) == ("InvalidInputError", 2)


def test_without_a_widget_the_versions_of_a_run_stand_below_its_calls(kernel: Kernel) -> None:
    kernel.run("%memory config render static")
    told = kernel.run(f"%%agent -o run\n{SI}\n")
    assert (len(told.outputs), told.updates) == (1, 0)
    for shown in (told, kernel.run("run")):
        assert "\n  + /notes.md @1 +1 −0\n" in shown.text
        assert "+ /notes.md @1 +1 −0" in shown.html


# -- the background ------------------------------------------------------------------------------------


def run_until(kernel: Kernel, condition: str) -> None:
    """Wait in the kernel until a condition on `run` holds."""
    code = (
        f"import time\nfor _ in range(1500):\n    if {condition}: break\n    time.sleep(0.02)\nelse: raise TimeoutError"
    )
    assert kernel.run(code).status == "ok"


@pytest.mark.parametrize("render", ["widget", "static"])
def test_a_run_in_the_background_shows_itself_in_its_own_cell_and_can_be_stopped(talks: Talks, render: str) -> None:
    words = reply("I am talking. " * 400, ToolUse("memory", VIEW), pause_s=0.02)
    kernel = talks(words, reply("Well again."))
    kernel.run(f"%memory config render {render}")
    begun = kernel.send("%%agent --bg -o run\nTalk to me\n")
    assert kernel.reply(begun).status == "ok"
    run_until(kernel, "'talking' in str(run)")
    between = kernel.send("import time; time.sleep(1.5); print('between')")
    answer = kernel.reply(between)
    assert (answer.stdout, answer.outputs, answer.updates) == ("between\n", [], 0)
    assert answer.owners == {begun, between}
    refused = kernel.run("%%agent\nAnd now?\n")
    assert (refused.ename, len(refused.traceback)) == ("AgentError", 2)
    stopped = kernel.run("%agent stop")
    assert stopped.text.endswith("has ended: stopped by the user.")
    assert kernel.run("print(run.status)").stdout == "stopped\n"
    assert "no run goes on in this kernel" in kernel.run("%agent stop").stderr
    assert "Well again." in kernel.run("%%agent\nAnd now?\n").text


def test_a_call_of_a_run_in_the_background_is_approved_of_in_a_later_cell(
    talks: Talks, somebody_else: mk.Connection
) -> None:
    calls = [ToolUse("memory", CREATE), ToolUse("memory", {"command": "delete", "path": "/memories/units.md"})]
    kernel = talks(reply(*calls), reply("Done."))
    kernel.run("%memory config render static")
    kernel.run("%%agent --bg --approve ask -o run\nNote it\n")
    run_until(kernel, "run.approvals.waiting")
    assert "waits for your approval" in kernel.run("%agent show").text
    assert kernel.run("%agent approve").text == "Approved: memory create /memories/units.md."
    run_until(kernel, "run.approvals.waiting")
    assert kernel.run('%agent deny last --reason "keep it"').text == "Denied: memory delete /memories/units.md."
    kernel.run("run.wait(30)")
    assert somebody_else.store("Team notes").read("/units.md") == "SI\n"
    assert "keep it" in kernel.run("%agent show").text
    assert "no run goes on" in kernel.run("%agent approve").stderr


def test_of_several_runs_one_has_to_be_named(talks: Talks) -> None:
    kernel = talks(*[reply("I am talking. " * 400, pause_s=0.02)] * 2)
    kernel.run("%%agent --bg -q -o first\nTalk to me\n")
    kernel.run("%%agent --bg -q --new -o second\nTalk to me\n")
    told = kernel.run("%agent stop").stderr
    assert "2 runs go on here" in told
    first = kernel.run("print(first.id)").stdout.strip()
    assert first in told
    assert kernel.run(f"%agent stop {first}").text.startswith(f"{first} has ended")
    assert "has ended" in kernel.run("%agent stop").text


def test_a_run_of_another_kernel_is_shown_and_stopped(talks: Talks) -> None:
    looks = [reply("I look. ", ToolUse("memory", VIEW), pause_s=0.1)] * 200
    kernel = talks(*looks)
    other = talks(reply("unused"))
    kernel.run("%%agent --bg -q --max-turns 200 -o run\nLook for ever\n")
    run_until(kernel, "run.turns > 1")
    assert "memory view /memories" in other.run("%agent show").text
    assert "was asked to stop it" in other.run("%agent stop last").text
    kernel.run("run.wait(30)")
    assert kernel.run("print(run.status)").stdout == "stopped\n"
    assert [line.split()[2] for line in other.run("%agent ls").text.splitlines()[2:]] == ["stopped"]


# -- a conversation goes on ----------------------------------------------------------------------------


def test_a_conversation_goes_on_after_a_restart_of_the_kernel(kernel: Kernel) -> None:
    kernel.run(f"%%agent -o run\n{SI}\n")
    session = kernel.run("print(run.session_id)").stdout
    kernel.restart()
    kernel.run("%load_ext memkernel")
    assert kernel.run("%%agent --resume -o run\nWhat do you remember about units?\n").status == "ok"
    assert kernel.run("print(run.session_id)").stdout == session
    assert SI in kernel.run("print(run.messages[0])").stdout
    kernel.run("%%agent -o next -s team-notes\nAnd else?\n")
    assert kernel.run("print(next.previous_run_id == run.id)").stdout == "True\n"
    owed = kernel.run("%agent --resume last")
    assert (owed.status, len(owed.traceback)) == ("error", 2)


def test_other_options_go_on_with_the_conversation(kernel: Kernel) -> None:
    kernel.run(f"%%agent -o first\n{SI}\n")
    kernel.run("%%agent --max-turns 7 -o second\nRemember that the standup is at 9:30\n")
    told = kernel.run("print(second.previous_run_id == first.id, second.session_id == first.session_id)").stdout
    assert told == "True True\n"
    assert kernel.run("print(second.limits.max_turns, SI in str(second.messages))", stop_on_error=False).status
    assert SI in kernel.run("print(second.messages)").stdout


# -- what is sent, recordings --------------------------------------------------------------------------


def test_a_dry_run_sends_nothing_and_shows_what_would_be(talks: Talks) -> None:
    kernel = talks()
    shown = kernel.run("%%agent --dry-run -o dry --system-var words\nTidy <b>up</b>\n")
    assert "there is no variable words" in shown.stderr
    kernel.run("words = 'Be brief.'")
    shown = kernel.run("%%agent --dry-run -o dry --system-var words -m claude-sonnet-5-5\nTidy <b>up</b>\n")
    assert shown.status == "ok", shown
    assert shown.text.startswith("Not sent. claude-sonnet-5-5 · ")
    assert "Tidy <b>up</b>" in shown.text
    assert "&lt;b&gt;up" in shown.html
    assert "test-key" not in shown.text + shown.html
    assert kernel.run("print(dry.request['model'], dry.tokens > 0)").stdout == "claude-sonnet-5-5 True\n"
    assert "No run of an agent was kept" in kernel.run("%agent ls").text
    assert "no prompt" in kernel.run("%%agent --dry-run\n\n").stderr


def test_a_run_is_recorded_and_replayed_with_real_calls(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.run(f"%%agent --record run.jsonl\n{SI}\n").status == "ok"
    assert (tmp_path / "run.jsonl").is_file()
    kernel.run("%memory create Other\n%memory use other")
    again = kernel.run("%agent --replay run.jsonl --speed 50 -o run")
    assert again.status == "ok", again
    assert "recorded, no model answers now" in again.text
    assert "+ /notes.md @1" in again.text
    assert kernel.run("print(run.kind, len(run.changes), run.prompt)").stdout == f"recorded 1 {SI}\n"
    unfit = kernel.run("%%agent --replay run.jsonl --speed 50\nSomething else\n")
    assert (unfit.ename, len(unfit.traceback)) == ("RecordingError", 2)
    missing = kernel.run("%agent --replay nowhere")
    assert (missing.ename, len(missing.traceback)) == ("RecordingError", 2)


def test_a_dry_run_is_shown_also_where_nobody_counts(dsn: str, tmp_path: Path) -> None:
    nowhere = {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=dsn, **nowhere), tmp_path)
    try:
        kernel.run("%load_ext memkernel")
        shown = kernel.run("%memory use Notes --create -q\n").status, kernel.run("%%agent --dry-run\nTidy up\n")
    finally:
        kernel.close()
    assert shown[0] == "ok"
    assert "its tokens could not be counted: " in shown[1].text
    assert "Tidy up" in shown[1].text


def test_the_demo_is_one_line(kernel: Kernel) -> None:
    told = kernel.run("%agent --replay demo --speed 100 -o run")
    assert (told.status, kernel.run("print(run.status)").stdout) == ("ok", "done\n")
    assert "recorded, no model answers now" in told.text
    assert kernel.run("%agent replay last --speed 100").text.startswith("\n[shown again, nothing runs now · recorded")


def test_an_agent_in_a_sandbox_writes_to_its_mounts(dsn: str, open_home: Path, somebody_else: mk.Connection) -> None:
    home = str(open_home / "memkernel")
    kernel = Kernel(kernel_environment(open_home, MEMKERNEL_DSN=dsn, MEMKERNEL_HOME=home), open_home)
    try:
        kernel.run('%load_ext memkernel\n%memory use "Team notes" --create -q')
        missing = kernel.run("%%agent --sandbox main\nList the files\n")
        assert "`%sandbox start main` starts it." in missing.stderr
        assert kernel.run("%%agent --sandbox\nList the files\n").ename == "SandboxClosedError"
        assert kernel.run("%sandbox start --backend local -q").status == "ok"
        told = kernel.run("%agent --replay sandbox --speed 100 --sandbox main -o run")
        assert told.status == "ok", told
        assert "+ /weather.csv @1 +4 −0" in told.text
        notes = somebody_else.store("Team notes")
        made = kernel.run("print(run.id, run.session_id)").stdout.split()
        versions = notes.log("/weather.csv")
        assert versions[0].created_by is not None
        assert versions[0].created_by.id == made[1]
        assert made[0] in kernel.run("%memory log /weather.csv").text
        refused = kernel.run("%%agent --sandbox -s team-notes --approve-tool bash=never\nRun `ls`\n")
        assert "✗ not allowed" in refused.text
        kernel.run("%sandbox stop -q")
    finally:
        kernel.close()


def test_a_run_that_fails_keeps_its_transcript(talks: Talks) -> None:
    kernel = talks(reply("First a note.", ToolUse("memory", CREATE)), Failure(404, "not_found_error", "model: nope"))
    failed = kernel.run("%%agent -m nope -o run\nNote it\n")
    assert (failed.ename, len(failed.traceback)) == ("ModelRequestError", 2)
    assert "+ /units.md @1" in failed.text
    assert kernel.run("print(run.status, len(run.changes))").stdout == "error 1\n"
    assert "failed" in kernel.run("%agent ls").text


def test_tools_of_the_notebook_are_called_and_what_they_raise_is_told(talks: Talks) -> None:
    calls = [ToolUse("weather", {"city": "Bern"}), ToolUse("broken", {})]
    kernel = talks(reply(*calls), reply("It is fine."))
    kernel.run(
        "from anthropic import beta_tool\n"
        "@beta_tool\ndef weather(city: str) -> str:\n    'The weather.'\n    return f'{city}: sunny'\n"
        "@beta_tool\ndef broken() -> str:\n    'Broken.'\n    raise ValueError('no such thing')\n"
        "both, nonsense = [weather, broken], print"
    )
    told = kernel.run("%%agent --tool both\nHow is it?\n")
    assert told.status == "ok", told
    assert "Bern: sunny" in told.text
    assert "no such thing" in told.text
    refused = kernel.run("%%agent --tool nonsense\nHow is it?\n")
    assert (refused.ename, len(refused.traceback)) == ("InvalidInputError", 2)
