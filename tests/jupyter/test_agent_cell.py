"""%%agent in a real kernel, with the scripted model behind the real SDK."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import memkernel as mk
from memkernel.agent.script import Failure, ToolUse, reply
from memkernel.jupyter.widgets.outputs import VIEW_TYPE
from tests.fix_agent import Scripted
from tests.fix_kernel import Kernel, kernel_environment

BADGE = "scripted, not a language model"


def test_what_the_agent_does_appears_as_a_widget_and_its_copy_is_complete_at_the_end(
    kernel: Kernel, somebody_else: mk.Connection
) -> None:
    answer = kernel.run("%%agent -o run\nRemember that I prefer SI units\n")
    assert answer.status == "ok"
    widget, _ = answer.outputs
    assert (VIEW_TYPE in widget, widget["text/plain"]) == (True, "")
    assert answer.updates >= 1
    for shown in (answer.text, answer.html):
        assert BADGE in shown
        assert "Remember that I prefer SI units" in shown
        assert "memory" in shown
        assert "done" in shown
        assert "tokens in" in shown
    assert not re.search(r"<script|https?://", answer.html)
    assert "SI units" in "".join(each for each in _texts(somebody_else))
    assert kernel.run("print(run.status, len(run.changes))").stdout == "done 1\n"


def _texts(somebody_else: mk.Connection) -> Iterator[str]:
    store = somebody_else.store("Team notes")
    return (store.read(memory.path) for memory in store.ls(depth=0))


def test_a_conversation_goes_on_until_a_new_one_is_asked_for(kernel: Kernel) -> None:
    kernel.run("%%agent -o first\nRemember that I prefer SI units\n")
    kernel.run("%%agent -o second\nRemember that the standup is at 9:30\n")
    kernel.run("%%agent --new -o third\nWhat do you remember about units?\n")
    prompts = "[sum(m['role'] == 'user' and isinstance(m['content'], list) and m['content'][-1]['type'] == 'text' "
    asked = kernel.run(prompts + "for m in run.messages) for run in (first, second, third)]").text
    assert asked == "[1, 2, 1]"
    assert "SI units" in kernel.run("print(third.text)").stdout


ONE_RUN = """
import time
print("begun", flush=True)
get_ipython().run_cell_magic("agent", "-o run --new", "What do you remember about everything?")
time.sleep(5)  # an interrupt that comes after the run
"""


def test_an_interrupt_of_a_run_is_two_lines_whenever_it_comes(kernel: Kernel) -> None:
    for delay_s in (0.0, 0.05, 0.2, 0.6):
        message_id = kernel.send(ONE_RUN)
        kernel.wait_until(message_id, lambda reply: "begun" in reply.stdout)
        time.sleep(delay_s)
        kernel.interrupt()
        reply = kernel.reply(message_id)
        assert reply.ename in ("AgentError", "KeyboardInterrupt")
        # Before and after the run it is IPython's own traceback; in the run it is ours.
        assert len(reply.traceback) == 2 or not re.search(r"memkernel/\w+/", "".join(reply.traceback))
        assert kernel.run("print(globals()['run'].status if 'run' in globals() else 'none')").stdout != "running\n"
    assert "done" in kernel.run("%%agent --new\nWhat do you remember about units?\n").text


def test_quiet_shows_nothing_and_static_shows_once(kernel: Kernel) -> None:
    quiet = kernel.run("%%agent -q -o run\nRemember that I prefer SI units\n")
    assert (quiet.outputs, quiet.stdout, quiet.updates) == ([], "", 0)
    kernel.run("%memory config render static")
    static = kernel.run("%%agent\nRemember that the standup is at 9:30\n")
    assert (len(static.outputs), static.updates) == (1, 0)
    assert BADGE in static.text


def test_a_cell_without_a_prompt_a_store_or_a_known_model_is_told_so(kernel: Kernel) -> None:
    assert "has no prompt" in kernel.run("%%agent\n\n").stderr
    assert kernel.run("%%agent -s nowhere\nHello\n").ename == "StoreNotFoundError"
    reply = kernel.run("%%agent --model claude-sonnet-5-5\nHello\n")
    assert (reply.ename, len(reply.traceback)) == ("NoApiKeyError", 2)
    assert "unrecognized arguments: --bogus" in kernel.run("%%agent --bogus\nHello\n").stderr
    assert "--max-turns" in kernel.run("%%agent --help\nx\n").stdout


def test_a_scoped_agent_sees_only_its_directory(kernel: Kernel, somebody_else: mk.Connection) -> None:
    kernel.run("%%memory put /secret.md\nnot yours\n")
    kernel.run("%%agent --scope ann\nRemember that I prefer SI units\n")
    store = somebody_else.store("Team notes")
    written = [memory.path for memory in store.ls(depth=0)]
    assert "/secret.md" in written
    assert [path for path in written if path.startswith("/ann/")]
    assert "not yours" not in kernel.run("%%agent --scope ann --new\nWhat do you remember about everything?\n").text


# -- with a model of our own behind the address that the SDK is given -----------------------------


@pytest.fixture
def endpoint(scripted: Scripted, dsn: str, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel whose Anthropic API is a scripted model that answers slowly, then fails, then answers."""
    slow = reply("One moment, please. " * 10, ToolUse("memory", {"command": "view", "path": "/memories"}), pause_s=0.05)
    model = scripted(
        slow,
        reply("I am " + "still talking. " * 400, pause_s=0.05),
        Failure(400, "invalid_request_error"),
        reply("Well again."),
    )
    environment = kernel_environment(
        tmp_path, MEMKERNEL_DSN=dsn, ANTHROPIC_API_KEY="test-key", ANTHROPIC_BASE_URL=model.url
    )
    kernel = Kernel(environment, tmp_path)
    kernel.run("%load_ext memkernel")
    kernel.run('%memory use "Team notes" --create -q')
    try:
        yield kernel
    finally:
        kernel.close()


def test_a_run_is_interrupted_shown_and_goes_on_after_a_failure(endpoint: Kernel) -> None:
    message_id = endpoint.send("%%agent -o run\nTalk to me\n")
    endpoint.wait_until(message_id, lambda reply: "still talking" in reply.html)
    endpoint.interrupt()
    stopped = endpoint.reply(message_id)
    assert (stopped.status, stopped.ename) == ("error", "AgentError")
    assert len(stopped.traceback) == 2
    assert "stopped" in stopped.text
    assert "still talking" in stopped.text
    assert BADGE not in stopped.text
    assert endpoint.run("print(run.status)").stdout == "stopped\n"
    failed = endpoint.run("%%agent\nGo on\n")
    assert (failed.status, failed.ename, len(failed.traceback)) == ("error", "ModelRequestError", 2)
    assert "Well again." in endpoint.run("%%agent\nAnd now?\n").text


def test_without_a_widget_words_come_at_most_about_ten_times_a_second_and_the_last_ones_are_shown(
    endpoint: Kernel,
) -> None:
    endpoint.run("%memory config render static\nimport memkernel as mk")
    message_id = endpoint.send("mk.Agent(store=mk.connect().store('Team notes')).run('Talk to me')")
    endpoint.wait_until(message_id, lambda reply: "still talking" in reply.html)
    begun, so_far = time.monotonic(), endpoint.updates(message_id)
    endpoint.wait_until(message_id, lambda reply: reply.updates >= so_far + 15)
    took_s = time.monotonic() - begun
    endpoint.interrupt()
    reply = endpoint.reply(message_id)
    assert took_s > 1.2
    last_words = endpoint.run("print(_.text[-30:].strip())").stdout.strip()
    assert last_words in reply.html
