"""The lines of %%sandbox and %sandbox: what they mean, what is refused before anything starts, how help reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from IPython.core.error import UsageError

from memkernel import errors
from memkernel.jupyter import usage
from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands import table
from memkernel.jupyter.sandboxes import Ask, Stores
from tests.fix_kernel import Shell

COMMANDS = [command for magic in table.MAGICS.values() for command in magic.all_commands()]


def parsed(line: str) -> dict[str, Any]:
    """The arguments of a `%%sandbox` cell's first line."""
    return vars(cast("Command", table.SANDBOX.cell).parser.parse_line(line))


def usage_error(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        parsed(line)
    return str(caught.value)


# -- the line of a cell ----------------------------------------------------------------------------


def test_every_option_of_the_issue_is_there() -> None:
    given = parsed(
        "--bash --store team-notes -s 'House rules' --ro handbook --timeout 2.5 --name dev "
        "--on-conflict merge --allow-wipe -o result"
    )
    assert given["bash"] is True
    assert given["store"] == ["team-notes", "House rules"]
    assert given["ro"] == ["handbook"]
    assert given["timeout"] == 2.5
    assert (given["name"], given["on_conflict"], given["allow_wipe"]) == ("dev", "merge", True)
    assert given["variable"] == "result"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--timeout soon", "'soon' is not a number of seconds"),
        ("--timeout 0", "'0' is not a number of seconds"),
        ("--timeout nan", "'nan' is not a number of seconds"),
        ("--on-conflict mine", "invalid choice: 'mine'"),
        ("--backend podman", "invalid choice: 'podman'"),
        ("--pids 0", "'0' is not a positive number"),
        ("-o 1x", "'1x' is not a variable's name"),
        ("--timeot 3", "unrecognized arguments: --timeot 3 (near: --timeout)"),
        ("print(1)", "unrecognized arguments: print(1)"),
    ],
)
def test_a_faulty_line_is_two_lines_that_name_the_fault(line: str, said: str) -> None:
    message = usage_error(line)
    assert said in message
    assert len(message.splitlines()) == 2
    assert message.splitlines()[1].startswith("Usage: %%sandbox ")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.magic)
def test_every_command_of_every_magic_explains_itself(command: Command) -> None:
    text = command.parser.format_help()
    assert command.summary in text
    for example in command.examples:
        name = f"{command.of} {command.name}".strip()
        assert example.startswith((f"%{name}", f"%%{name}") if command.body == "either" else command.magic)
        rest = example.lstrip("%").removeprefix(name)
        Parser.parse_line(command.parser, rest)


def test_the_overview_has_a_line_for_each_command_and_the_grammar() -> None:
    text = usage.overview(table.SANDBOX)
    for name in ["start", "stop", "ls", "status", "mounts", "sync", "changes", "resolve", "reset", "logs"]:
        assert f"%sandbox {name} " in text
    assert "%%sandbox" in text
    assert max(map(len, text.splitlines())) <= 120


def test_help_is_found_in_every_way_that_people_ask_for_it(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("%sandbox help", "%sandbox --help"):
        shell.run(line)
        assert "%sandbox resolve" in capsys.readouterr().out
    for line in ("%sandbox help sync", "%sandbox sync --help"):
        shell.run(line)
        assert "--allow-wipe" in capsys.readouterr().out
    for line in ("%%sandbox --help\n1\n", "%sandbox help sandbox", "%memory help sandbox"):
        shell.run(line)
        assert "--on-conflict" in capsys.readouterr().out
    assert "%sandbox resolve" in (shell.ipython.find_line_magic("sandbox").__doc__ or "")


def test_other_words_lead_to_the_commands(shell: Shell) -> None:
    for word, command in {"conflicts": "changes", "staus": "status", "list": "ls"}.items():
        with pytest.raises(UsageError, match=f"Near: .*{command}"):
            shell.run(f"%sandbox {word}")
    with pytest.raises(UsageError, match=r"Commands: start, stop.*; or a cell: %%sandbox"):
        shell.run("%sandbox zzz")
    with pytest.raises(UsageError, match="status takes no cell body\nWrite it in a line of its own: `%sandbox status"):
        shell.run("%%sandbox status\nprint(1)\n")
    with pytest.raises(UsageError, match="%%sandbox has no code"):
        shell.run("%%sandbox\n\n")


# -- what a running sandbox can be asked ---------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """As much of a store as is asked."""

    id: str

    @property
    def slug(self) -> str:
        return self.id


def stores(**accesses: str) -> Stores:
    return cast("Stores", tuple((Named(name), access) for name, access in accesses.items()))


RUNNING = Ask(
    stores(notes="read_write", rules="read_only"),
    {"backend": "docker", "image": None, "network": "none", "memory": "1g", "cpus": 2, "pids": 256, "packages": ()},
)


@pytest.mark.parametrize(
    ("ask", "clash"),
    [
        (Ask(), ""),
        (Ask(stores(notes="read_write", rules="read_only")), ""),
        (Ask(stores(rules="read_only", notes="read_write"), {"backend": "docker", "network": "none"}), ""),
        (Ask(options={"memory": "1g", "cpus": 2.0, "pids": 256}), ""),
        (Ask(stores(notes="read_write")), "with notes (writable), rules (read-only) and not with notes (writable)"),
        (Ask(stores(notes="read_only", rules="read_only")), "not with notes (read-only), rules (read-only)"),
        (Ask(options={"memory": "2g"}), "but not with memory 2g"),
        (Ask(options={"backend": "local"}), "but not with backend local"),
        (Ask(options={"image": "mine:1"}), "but not with image mine:1"),
        (Ask(options={"packages": ("numpy", "scipy")}), "but not with packages numpy scipy"),
    ],
)
def test_what_is_asked_of_a_running_sandbox_has_to_be_what_it_is(ask: Ask, clash: str) -> None:
    found = ask.clash(RUNNING)
    assert found == clash or (clash and clash in found)


# -- refused before anything starts ---------------------------------------------------------------------


def test_without_a_store_in_use_one_has_to_be_named(
    bare_shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)
    bare_shell.run("%load_ext memkernel")
    with pytest.raises(errors.NoStoreInUseError):
        bare_shell.run("%%sandbox\n1\n")


def test_a_store_that_is_not_there_and_a_sandbox_that_does_not_run_are_told(shell: Shell) -> None:
    with pytest.raises(errors.StoreNotFoundError):
        shell.run("%%sandbox --ro nowhere\n1\n")
    for line in ("sync", "mounts", "changes", "logs", "reset", "stop", "resolve /a.md mine"):
        with pytest.raises(errors.SandboxClosedError, match="no sandbox is running"):
            shell.run(f"%sandbox {line}")
    with pytest.raises(UsageError, match=r"there is no sandbox 'dev'\nNone is running\. `%sandbox start dev`"):
        shell.run("%sandbox sync --name dev")


def test_what_is_left_in_the_variable_is_never_an_older_result(shell: Shell) -> None:
    shell.ipython.user_ns["result"] = "older"
    with pytest.raises(errors.MemkernelError):
        shell.run("%%sandbox --network host -o result\n1\n")
    assert shell.value("result") is None


def test_a_bare_sandbox_says_how_to_begin(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run("%sandbox") is None
    assert "`%sandbox start`" in capsys.readouterr().out
    assert shell.run("%sandbox ls") == []
    assert "No sandbox is running" in capsys.readouterr().out


OFFERS = {
    "%sandbox st": ["start", "stop", "status"],
    "%sandbox help re": ["reset", "resolve"],
    "%%sandbox --store te": ["team-notes"],
    "%%sandbox --ro te": ["team-notes"],
    "%%sandbox --on-conflict ": ["error", "merge"],
    "%%sandbox --on-conflict=m": ["merge"],
    "%%sandbox --al": ["--allow-wipe"],
    "%sandbox start --backend ": ["docker", "local"],
    "%sandbox resolve /a.md ": ["mine", "theirs", "both"],
    "%sandbox resolve ": [],
    "%sandbox stop ": [],
}


def test_what_can_stand_there_is_offered(shell: Shell) -> None:
    assert {line: shell.complete(line) for line in OFFERS} == OFFERS
