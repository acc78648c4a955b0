"""The rules of the scripted stand-in: prompts that it knows, answered through the memory tool. Pure.

A rule is a generator: it yields calls, is sent their results, and returns the answer. The server keeps nothing: for
every request the rule is played again on the results that the conversation already holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from memkernel.agent import conversation
from memkernel.agent.script import Body, Reply, ToolUse, reply
from memkernel.render import counted

WHAT_IT_IS = (
    "I am a scripted stand-in, not a language model. I know a few sentences: “Remember that …”, "
    "“What do you remember about …?”, “Change … to …” and “Forget …”. With an ANTHROPIC_API_KEY a real model answers."
)
_NO_MEMORY = "I have no memory tool here: give the agent a memory store."
_ROOT = "/memories"
_NOTES = "/memories/notes.md"
_MOST_FILES = 40
_EVERYTHING = ("everything", "it all", "all")
_SMALL = re.compile(
    "a|about|an|and|are|at|be|by|do|does|for|from|have|i|in|is|it|know|me|my|of|on|or|our|please|remember|that|the|this|"
    "to|was|we|with|you|your"
)


@dataclass(frozen=True)
class Call:
    """A call of the memory tool, and what the stand-in says before it."""

    input: Mapping[str, Any]
    says: str = ""


class Result(NamedTuple):
    """What a call came back with."""

    text: str
    is_error: bool


Rule: TypeAlias = Generator[Call, Result, str]
Files: TypeAlias = dict[str, str]
"""Path -> its text."""


def answer(body: Body) -> Reply:
    """The stand-in's reply to a request of the Messages API."""
    prompt, results = _so_far(body["messages"])
    if not any(tool.get("name") == "memory" for tool in body.get("tools") or ()):
        return reply(f"{WHAT_IT_IS} {_NO_MEMORY}")
    said = _play(_rule_for(prompt), results)
    if isinstance(said, str):
        return reply(said)
    call = ToolUse("memory", said.input)
    return reply(said.says, call) if said.says else reply(call)


def _so_far(messages: Iterable[conversation.Message]) -> tuple[str, list[Result]]:
    """The last prompt, and the results since."""
    prompt, results = "", list[Result]()
    for message in messages:
        if message["role"] != "user":
            continue
        blocks = conversation.blocks(message)
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if texts:
            prompt, results = texts[-1], []
        else:
            results += [_result(block) for block in blocks if block["type"] == "tool_result"]
    return prompt, results


def _result(block: conversation.Block) -> Result:
    content = block.get("content") or ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return Result(text, bool(block.get("is_error")))


def _play(rule: Rule, results: Iterable[Result]) -> Call | str:
    try:
        call = next(rule)
        for result in results:
            call = rule.send(result)
    except StopIteration as end:
        return end.value
    return call


# -- which rule ------------------------------------------------------------------------------------

_POLITE = r"(?:please[, ]+|and |now |also )*"
_FILE = r"(?: (?:in|to) (?:/memories)?/?(?P<file>[\w./-]+\.\w+))?"
_INTENTS: list[tuple[str, Callable[[re.Match[str]], Rule]]] = [
    (
        rf"{_POLITE}(?:remember|note|keep in mind|memori[sz]e){_FILE}(?: that|,|:)*\s+(?P<fact>.+)",
        lambda found: _remember(found["fact"], found["file"]),
    ),
    (rf"{_POLITE}(?:change|replace) (?P<old>.+?) (?:to|with|by) (?P<new>.+)", lambda f: _change(f["old"], f["new"])),
    (rf"{_POLITE}forget(?: about| that)? (?P<what>.+)", lambda found: _forget(found["what"])),
    (
        r".*\b(?:know|remember|recall|told you|noted?|memory|memories)\b(?:.*?\babout (?P<what>[^?]+))?.*",
        lambda found: _recall(found["what"] or "", found["what"] or "that"),
    ),
    (r"(?:what|which|when|where|who|how|do|does|is|are)\b(?P<what>.*)\?", lambda found: _recall(found["what"], "that")),
]


def _rule_for(prompt: str) -> Rule:
    text = " ".join(prompt.split())
    for pattern, rule in _INTENTS:
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            return rule(found)
    return _greet()


def _greet() -> Rule:
    listing = yield from _look()
    count = len([path for path in listing if not path.endswith("/")])
    return f"{WHAT_IT_IS} My memory holds {counted(count, 'file')}."


# -- the rules -------------------------------------------------------------------------------------


def _remember(fact: str, file: str | None) -> Rule:
    path, line = f"{_ROOT}/{file.lstrip('/')}" if file else _NOTES, f"- {_plain(fact)}"
    listing = yield from _look()
    if path not in listing:
        made = yield Call({"command": "create", "path": path, "file_text": f"{line}\n"}, "Nothing about it yet.")
        if not made.is_error:
            return f"I noted it in {path}: {_plain(fact)}"
    lines = _lines((yield from _read(path)))
    if line in lines:
        return f"That is noted already, in {path}."
    outdated = next((old for old in lines if _same_topic(old, line)), None)
    edit: dict[str, Any] = {"command": "insert", "path": path, "insert_line": len(lines), "insert_text": f"{line}\n"}
    if outdated:
        edit = {"command": "str_replace", "path": path, "old_str": outdated, "new_str": line}
    done = yield Call(edit)
    if done.is_error:
        return f"I could not note it: {done.text}"
    return f"I noted it in {path}: {_plain(fact)}{f' (it said: {outdated[2:]})' if outdated else ''}"


def _recall(what: str, about: str) -> Rule:
    files = yield from _read_all()
    words = _words(what)
    known = [(path, line) for path, text in files.items() for line in _lines(text) if line.strip()]
    found = [(path, line) for path, line in known if not words or words & _words(line)]
    if not found:
        return f"My memory holds nothing about {about.strip()}." if known else "My memory is empty."
    return "My memory says:\n\n" + "\n".join(f"- {line.lstrip('-# ')} ({path})" for path, line in found)


def _change(old: str, new: str) -> Rule:
    files = yield from _read_all()
    old, new = _plain(old), _plain(new)
    path = next((path for path, text in files.items() if old in text), None)
    if path is None:
        return f"My memory does not mention {old}."
    done = yield Call({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
    return f"I could not change it: {done.text}" if done.is_error else f"I changed it in {path}: {old} → {new}"


def _forget(what: str) -> Rule:
    files = yield from _read_all()
    wanted = _plain(what).lower()
    forgotten: list[str] = []
    for path, text in files.items():
        hits = [line for line in _lines(text) if wanted in _EVERYTHING or wanted in line.lower()]
        for edit in _without(path, text, hits):
            done = yield Call(edit)
            if done.is_error:
                return f"I could not forget it: {done.text}"
        forgotten += [line.lstrip("-# ") for line in hits if line.strip()]
    return f"Forgotten: {'; '.join(forgotten)}" if forgotten else "My memory does not mention it."


def _without(path: str, text: str, hits: list[str]) -> Iterator[dict[str, Any]]:
    """The edits that take lines out of a file; a file of nothing else goes as a whole."""
    if hits and all(line in hits or not line.strip() for line in _lines(text)):
        yield {"command": "delete", "path": path}
        return
    for line in hits:
        whole = f"{line}\n" if f"{line}\n" in text else line
        yield {"command": "str_replace", "path": path, "old_str": whole, "new_str": ""}


# -- looking ---------------------------------------------------------------------------------------


def _look() -> Generator[Call, Result, list[str]]:
    """The paths in the memory; directories end with a slash."""
    listing = yield Call({"command": "view", "path": _ROOT}, "I look into my memory first.")
    return _listed(listing)


def _listed(listing: Result) -> list[str]:
    if listing.is_error:
        return []
    paths = [line.split("\t", 1)[1] for line in listing.text.split("\n") if "\t" in line]
    return [path for path in paths[1:] if path.startswith(f"{_ROOT}/")]


def _read_all() -> Generator[Call, Result, Files]:
    paths = yield from _look()
    files: Files = {}
    for path in paths:  # grows while it is walked: a directory of the second level lists what is below it
        if path.endswith("/"):
            if path.count("/") > 3:
                below = yield Call({"command": "view", "path": path.rstrip("/")})
                paths += [found for found in _listed(below) if found not in paths]
        elif len(files) < _MOST_FILES:
            files[path] = yield from _read(path)
    return files


def _read(path: str) -> Generator[Call, Result, str]:
    shown = yield Call({"command": "view", "path": path})
    # Under a heading, the tool numbers every line: digits, a tab, the line.
    return "" if shown.is_error else "\n".join(line.partition("\t")[2] for line in shown.text.split("\n")[1:])


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _plain(text: str) -> str:
    return text.strip().rstrip(".!").strip()


def _same_topic(old: str, new: str) -> bool:
    """`- I prefer SI units` and `- I prefer imperial units` begin and end alike: the later one counts."""
    before, after = old.lower().split(), new.lower().split()
    return len(before) > 3 and len(after) > 3 and before[:3] == after[:3] and before[-1] == after[-1]


def _words(text: str) -> set[str]:
    """The words that tell a topic, in one spelling for singular and plural."""
    return {word.rstrip("s") for word in re.findall(r"\w+", text.lower()) if not _SMALL.fullmatch(word)}
