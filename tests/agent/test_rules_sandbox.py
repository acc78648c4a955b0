"""The stand-in's rules for a sandbox: which call a sentence makes, and a conversation in a real local sandbox."""

from __future__ import annotations

from typing import Any

import pytest

import memkernel as mk
from memkernel.agent import asked, loop, prompt, rules
from memkernel.agent.events import ToolCalled
from memkernel.agent.run import Run
from memkernel.agent.script import ToolUse
from memkernel.agent.scripted import stand_in
from memkernel.models import Attachment
from tests.fix_sandbox import MakeBox

SIX = ("bash", "read", "write", "edit", "glob", "grep")
MOUNT = "/mnt/memory/team-notes"
ATTACHED = Attachment("memstore_1", "Team notes", "", "read_write", None, MOUNT)
SYSTEM = f"Be brief.\n\n{prompt.memory_section([ATTACHED])}"


def body(said: str, *tools: str, system: Any = SYSTEM) -> dict[str, Any]:
    named = [{"name": name} for name in tools or SIX]
    return {"messages": [{"role": "user", "content": said}], "tools": named, "system": system}


def first_call(said: str, *tools: str) -> tuple[str, Any]:
    (call,) = [block for block in rules.answer(body(said, *tools)).blocks if isinstance(block, ToolUse)]
    return call.name, call.input


@pytest.mark.parametrize(
    ("said", "tool", "given"),
    [
        ("Run `ls -l`", "bash", {"command": "ls -l"}),
        ("Please run the command `ls -l`.", "bash", {"command": "ls -l"}),
        ("run pytest -q.", "bash", {"command": "pytest -q"}),
        ("Run this:\n```bash\ncd /tmp\nls\n```", "bash", {"command": "cd /tmp\nls"}),
        ('Execute "date"', "bash", {"command": "date"}),
        ("Write “print(1)” to a/b.py", "write", {"file_path": "a/b.py", "content": "print(1)\n"}),
        ("Save `x = 1` into the file run.py.", "write", {"file_path": "run.py", "content": "x = 1\n"}),
        (
            "Write:\n```python\nimport this\n```\nto zen.py",
            "write",
            {"file_path": "zen.py", "content": "import this\n"},
        ),
        ("Read a/b.py", "read", {"file_path": "a/b.py"}),
        ("Then show me the file `notes.txt`.", "read", {"file_path": "notes.txt"}),
        ("List the files", "glob", {"pattern": "*"}),
        ("Show me all files in a/b.", "glob", {"pattern": "*", "path": "a/b"}),
        ("Find “f(x)”", "grep", {"pattern": r"f\(x\)"}),
        ("Search for “SI” in /mnt/memory/team-notes", "grep", {"pattern": "SI", "path": MOUNT}),
        ("Remember that it rains", "glob", {"pattern": "**/*.md", "path": MOUNT}),
    ],
)
def test_a_sentence_makes_a_call(said: str, tool: str, given: dict[str, str]) -> None:
    assert first_call(said) == (tool, given)


@pytest.mark.parametrize("said", ["Read me a poem", "Write a poem", "Run", "Show files of mine, please", "Open it"])
def test_what_only_begins_like_one_is_answered_honestly(said: str) -> None:
    (text,) = rules.answer(body(said, *SIX, system="Be brief.")).blocks
    assert isinstance(text, str)
    assert text.startswith("I am a scripted stand-in, not a language model. I know a few sentences: “Run `…`”")


def test_without_a_sandbox_nothing_is_run() -> None:
    (text,) = rules.answer(body("Run `ls`", "fetch")).blocks
    assert isinstance(text, str)
    assert text.endswith("I have no memory tool here: give the agent a memory store.")


def test_with_both_the_memory_tool_keeps_what_is_told() -> None:
    assert first_call("Remember that it rains", *SIX, "memory") == ("memory", {"command": "view", "path": "/memories"})
    assert first_call("Run `ls`", *SIX, "memory")[0] == "bash"


def test_the_system_prompt_tells_where_the_stores_are() -> None:
    read_only = Attachment("memstore_2", 'A {"odd"}\nname', "", "read_only", None, "/mnt/memory/odd")
    section = prompt.memory_section([read_only, ATTACHED])
    assert asked.read(body("x", system=section)).mounts == [MOUNT, "/mnt/memory/odd"]
    blocks = [{"type": "text", "text": '{"a": 1}\n{not json}\n'}, {"type": "text", "text": section}]
    assert asked.read(body("x", system=blocks)).mounts == [MOUNT, "/mnt/memory/odd"]
    assert asked.read(body("x", system="Be brief.")).mounts == []


def ask(box: mk.Sandbox, said: str) -> tuple[list[str], str]:
    """The names of the tools that were called, and the answer."""
    run = Run(said, model="scripted", kind="scripted")
    loop.play(run, loop.Request(stand_in(), "scripted", box.tools(), system=SYSTEM))
    assert run.status == "done"
    return [event.name for event in run.events if isinstance(event, ToolCalled)], run.text


def test_it_works_in_a_real_sandbox(notes: mk.Store, boxes: MakeBox) -> None:
    box = boxes(notes, backend="local")
    assert ask(box, "Write “print(6 * 7)” to answer.py. Then run `python3 answer.py`. Run `false`.") == (
        ["write", "bash", "bash"],
        "I wrote answer.py.\n\nIt printed:\n\n```\n42\n```\n\nIt failed:\n\n```\nbash: exit status 1\n```",
    )
    assert ask(box, "Read answer.py")[1] == "answer.py says:\n\n```\nprint(6 * 7)\n```"
    assert ask(box, "Find “6 * 7”. Find “nowhere to be found”.")[1].endswith("I found nothing.")
    assert ask(box, "Run `python3 answer.py` and remember the result in results.md")[0] == ["bash", "glob", "write"]
    assert notes.read("/results.md") == "- 42 (printed by python3 answer.py)\n"
    assert ask(box, "Remember that it rains. Remember that it rains. Remember that it snows.")[0] == [
        *("glob", "write", "read", "read", "write")
    ]
    assert notes.read("/notes.md") == "- it rains\n- it snows\n"
    assert ask(box, "Change snows to hails")[0] == ["glob", "read", "read", "edit"]
    assert ask(box, "What do you remember about hails?")[1] == f"My memory says:\n\n- it hails ({MOUNT}/notes.md)"
    box.bash(f"printf -- '- a  \\n\\n\\n\\n- b\\n- a\\n' > {MOUNT}/mess.md; : > {MOUNT}/empty.md")
    assert ask(box, "Tidy up your memory")[1] == f"I tidied {MOUNT}/empty.md, {MOUNT}/mess.md."
    assert ask(box, "Tidy up")[1] == "My memory is tidy."
    assert notes.read("/mess.md") == "- a\n\n- b\n"
    assert ask(box, "Forget everything")[1].startswith("Forgotten: ")
    assert list(notes.ls()) == []
