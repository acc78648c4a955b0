"""What a line of %%agent says, and what it cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from IPython.core.error import UsageError

from memkernel.jupyter.commands import agent_options, table
from memkernel.jupyter.commands.agent import AGENT
from memkernel.jupyter.notebook import Notebook
from tests.fix_kernel import Shell

MEANS: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "-m claude-sonnet-5-5 --max-turns 3": {"model": "claude-sonnet-5-5", "max_turns": 3},
    "--max-total-tokens 5000 --max-cost $0.50 --max-time 1.5": {
        "max_total_tokens": 5000,
        "max_cost_usd": 0.5,
        "max_time_s": 1.5,
    },
    "--approve ask": {"approve": "ask"},
    "--approve-tool bash=ask --approve-tool=write=never": {"approve": {"*": "auto", "bash": "ask", "write": "never"}},
    "--approve never --approve-tool memory=auto": {"approve": {"*": "never", "memory": "auto"}},
    "--replay demo --speed 5x": {"replay": "demo", "speed": 5.0},
    "--record run.jsonl --scope ann": {"record": "run.jsonl", "scope": "ann"},
    "--allow-unisolated": {"allow_unisolated": True},
    "--new --bg -q -o run": {},
    "--resume --max-turns 2": {"max_turns": 2},
}


@pytest.fixture
def notebook(bare_shell: Shell) -> Notebook:
    """The state of a notebook that is connected to nothing."""
    return Notebook(bare_shell.ipython)


def options(notebook: Notebook, line: str) -> dict[str, Any]:
    args = AGENT.parser.parse_line(line)
    agent_options.check(args)
    return agent_options.options_of(notebook, args)


def test_a_line_says_what_an_agent_is_made_with(notebook: Notebook) -> None:
    assert {line: options(notebook, line) for line in MEANS} == MEANS


def test_the_preferred_model_holds_where_the_line_names_none(notebook: Notebook) -> None:
    notebook.preferences.set("model", "claude-opus-5-5")
    assert options(notebook, "") == {"model": "claude-opus-5-5"}
    assert options(notebook, "-m scripted") == {"model": "scripted"}
    assert options(notebook, "--replay demo") == {"replay": "demo"}


def test_tools_and_prompts_come_from_variables_and_files(notebook: Notebook, tmp_path: Path) -> None:
    one, two = object(), object()
    notebook.shell.user_ns.update(one=one, both=[one, two], words="Be brief.")
    (tmp_path / "prompt.md").write_text("Be kind.")
    assert options(notebook, "--tool one --tool both") == {"tools": [one, one, two]}
    assert options(notebook, "--system-var words") == {"system": "Be brief."}
    assert options(notebook, f"--system {tmp_path}/prompt.md") == {"system": "Be kind."}


def test_resume_may_name_a_run_and_need_not(notebook: Notebook) -> None:
    assert AGENT.parser.parse_line("--resume --bg").resume == "last"
    assert AGENT.parser.parse_line("--resume run_1").resume == "run_1"
    assert AGENT.parser.parse_line("--resume=run_1 -o run").resume == "run_1"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--max-cost 0", "'0' is not a number of US dollars"),
        ("--max-cost nan", "'nan' is not a number of US dollars"),
        ("--max-cost -1", "'-1' is not a number of US dollars"),
        ("--max-time inf", "'inf' is not a number of seconds"),
        ("--max-turns 0", "'0' is not a positive number"),
        ("--max-total-tokens 1.5", "'1.5' is not a positive number"),
        ("--approve maybe", "invalid choice: 'maybe'"),
        ("--approve-tool bash", "'bash' is not NAME=ask"),
        ("--approve-tool =ask", "'=ask' is not NAME=ask"),
        ("--speed fast --replay demo", "'fast' is not a speed"),
        ("--tool not-a-name", "is not a variable's name"),
        ("--tool nowhere", "there is no variable nowhere"),
        ("--system-var nowhere", "there is no variable nowhere"),
        ("--system /nowhere/at/all.md", "cannot be read"),
        ("--system a --system-var b", "not allowed with"),
        ("--speed 2", "--speed needs --replay"),
        ("--replay demo --record f", "--replay and --record do not go together"),
        ("--replay demo -m scripted", "--replay and --model do not go together"),
        ("--replay demo --resume", "--replay and --resume do not go together"),
        ("--new --resume", "--new and --resume do not go together"),
        ("--dry-run --bg", "--dry-run and --bg do not go together"),
        ("--max-tokens 5", "unrecognized arguments: --max-tokens 5"),
    ],
)
def test_what_cannot_be_is_said_in_two_lines(notebook: Notebook, line: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        options(notebook, line)
    assert said in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 2


def test_every_command_tells_what_it_does_and_how(bare_shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    bare_shell.run("%load_ext memkernel")
    bare_shell.run("%agent help")
    overview = capsys.readouterr().out
    for name, command in table.AGENT.commands.items():
        assert f"%agent {name}" in overview
        bare_shell.run(f"%agent {name} --help")
        told = capsys.readouterr().out
        assert command.summary in told
        assert all(example in told for example in command.examples)
    bare_shell.run("%agent help agent")
    assert "--max-cost USD" in capsys.readouterr().out


def test_other_words_lead_to_the_commands(bare_shell: Shell) -> None:
    for typed, near in {"kill": "stop", "list": "ls", "rum": "rm", "costs": "cost"}.items():
        with pytest.raises(UsageError, match=f"Near: .*{near}"):
            table.AGENT.find(typed)
