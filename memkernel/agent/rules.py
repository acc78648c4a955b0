"""The rules of the scripted stand-in: sentences that it knows, answered through the tools that it is offered. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from textwrap import shorten
from typing import Final

from memkernel.agent import asked, rules_sandbox
from memkernel.agent.asked import Asked
from memkernel.agent.rules_files import Files, MemoryFiles, MountedFiles, lines
from memkernel.agent.rules_play import Call, Found, Rule, one_after_another, play, result
from memkernel.agent.script import Body, Reply, ToolUse, reply
from memkernel.render import counted

WHAT_IT_IS = "I am a scripted stand-in, not a language model. I know a few sentences"
_MEMORY_KNOWS = (
    "“Remember that …”, “What do you remember about …?”, “Change … to …”, “Forget …” and “Tidy up your memory”"
)
_REAL = "With an ANTHROPIC_API_KEY a real model answers."
_NO_MEMORY = "I have no memory tool here: give the agent a memory store."
_NOTES = "notes.md"
_LONGEST = 10_000
_EVERYTHING = ("everything", "it all", "all")
_SMALL = re.compile(
    "a|about|an|and|are|at|be|by|do|does|for|from|have|i|in|is|it|know|me|my|of|on|or|our|please|remember|that|the|this|"
    "to|was|we|with|you|your"
)


def answer(body: Body) -> Reply:
    """The stand-in's reply to a request of the Messages API."""
    request = asked.read(body)
    said = play(one_after_another(_rules_of(request)), map(result, request.results))
    if isinstance(said, str):
        return reply(said)
    call = ToolUse(said.tool, said.input)
    return reply(said.says, call) if said.says else reply(call)


def _files(request: Asked) -> Files | None:
    """What it remembers things in: behind the memory tool, else in the first store of the sandbox."""
    if "memory" in request.tools:
        return MemoryFiles()
    return MountedFiles(request.mounts[0]) if request.mounts and _has_sandbox(request) else None


def _has_sandbox(request: Asked) -> bool:
    return request.tools >= rules_sandbox.TOOLS


# -- which rule ------------------------------------------------------------------------------------

_POLITE: Final = r"(?:please[, ]+|and |now[, ]+|also |then[, ]+|first[, ]+|finally[, ]+)*"
_FILE: Final = r"(?: (?:in|to) (?:/memories)?/?(?P<file>[\w./-]+\.\w+))?"
_KNOWS: Final = r".*\b(?:know|remember|recall|told you|noted?|memory|memories)\b(?:.*?\babout (?P<what>[^?]+))?.*"

_INTENTS: Final[list[tuple[str, Callable[[Found, Files], Rule]]]] = [
    (
        rf"(?:remember|note|keep in mind|memori[sz]e){_FILE}(?: that|,|:)*\s+(?P<fact>.+)",
        lambda found, files: _remember(files, found["fact"], found["file"]),
    ),
    (
        r"(?:change|replace) (?P<old>.+?) (?:to|with|by) (?P<new>.+)",
        lambda found, files: _change(files, found["old"], found["new"]),
    ),
    (r"forget(?: about| that)? (?P<what>.+)", lambda found, files: _forget(files, found["what"])),
    (r"tidy\b.*", lambda _, files: _tidy(files)),
    (_KNOWS, lambda found, files: _recall(files, found["what"], found["what"] or "that")),
    (
        r"(?:what|which|when|where|who|how|do|does|is|are)\b(?P<what>.*)\?",
        lambda found, files: _recall(files, found["what"], "that"),
    ),
]
_RUN_AND_NOTE: Final = (
    rf"(?:run|execute)\b[^`“\"]{{0,60}}{rules_sandbox.QUOTED},? and (?:remember|note)"
    rf"(?: (?:the|its) (?:result|output)| it)?{_FILE}\.?"
)
_QUOTE_OR_END: Final = re.compile(r"```.*?```|`[^`]*`|“[^”]*”|\"[^\"]*\"|(?P<end>[.!?]\s+|\n+)", re.DOTALL)


def _rules_of(request: Asked) -> Iterator[Rule]:
    """A rule for each sentence of the prompt."""
    files = _files(request)
    for sentence in _sentences(request.prompt):
        yield _rule_in_sandbox(sentence, files, request) or _rule_of_memory(sentence, files, request)


def _sentences(prompt: str) -> list[str]:
    """The prompt's sentences; one that is not known belongs to the one before it."""
    if len(prompt) > _LONGEST:  # no list of sentences that are known
        return [prompt.strip()]
    ends = [found.end() for found in _QUOTE_OR_END.finditer(prompt) if found["end"]]
    parts = pairwise([0, *ends, len(prompt)])
    begins = [begin for begin, end in parts if begin == 0 or _is_known(prompt[begin:end].strip())]
    sentences = [prompt[begin:end].strip() for begin, end in pairwise([*begins, len(prompt)])]
    return [sentence for sentence in sentences if sentence] or [""]


def _is_known(sentence: str) -> bool:
    if sentence.endswith("?"):
        return True
    memory = [pattern for pattern, _ in _INTENTS if pattern != _KNOWS]  # which fits far too much
    sandbox = [pattern for pattern, _ in rules_sandbox.INTENTS]
    return any(_matched(pattern, sentence) is not None for pattern in (_RUN_AND_NOTE, *memory, *sandbox))


def _matched(pattern: str, sentence: str) -> Found | None:
    found = re.fullmatch(_POLITE + pattern, sentence, re.IGNORECASE | re.DOTALL)
    return None if found is None else {name: text or "" for name, text in found.groupdict().items()}


def _rule_in_sandbox(sentence: str, files: Files | None, request: Asked) -> Rule | None:
    if not _has_sandbox(request):
        return None
    found = _matched(_RUN_AND_NOTE, sentence)
    if found is not None and files is not None:
        return _run_and_note(files, rules_sandbox.quoted(found), found["file"])
    rules = ((_matched(pattern, sentence), rule) for pattern, rule in rules_sandbox.INTENTS)
    return next((rule(found) for found, rule in rules if found is not None), None)


def _rule_of_memory(sentence: str, files: Files | None, request: Asked) -> Rule:
    text = " ".join(sentence.split())
    if files is not None:
        for pattern, rule in _INTENTS:
            if (found := _matched(pattern, text)) is not None:
                return rule(found, files)
    return _greet(files, request)


def _greet(files: Files | None, request: Asked) -> Rule:
    knows = [_MEMORY_KNOWS] * (files is not None) + [rules_sandbox.KNOWS] * _has_sandbox(request)
    what = f"{WHAT_IT_IS}: {', '.join(knows or [_MEMORY_KNOWS])}. {_REAL}"
    if files is None:
        return what if _has_sandbox(request) else f"{what} {_NO_MEMORY}"
    listing = yield from files.look()
    count = len([path for path in listing if not path.endswith("/")])
    return f"{what} My memory holds {counted(count, 'file')}."


# -- the rules -------------------------------------------------------------------------------------


def _remember(files: Files, fact: str, file: str) -> Rule:
    path, line = files.path_of(file or _NOTES), f"- {_plain(fact)}"
    listing = yield from files.look()
    if path not in listing:
        made = yield files.create(path, f"{line}\n", "Nothing about it yet.")
        if not made.is_error:
            files.made(path)
            return f"I noted it in {path}: {_plain(fact)}"
    text = yield from files.read(path)
    if line in lines(text):
        return f"That is noted already, in {path}."
    outdated = next((old for old in lines(text) if _same_topic(old, line)), None)
    done = yield files.replace(path, outdated, line) if outdated else files.append(path, text, line)
    if done.is_error:
        return f"I could not note it: {done.text}"
    return f"I noted it in {path}: {_plain(fact)}{f' (it said: {outdated[2:]})' if outdated else ''}"


def _recall(files: Files, what: str, about: str) -> Rule:
    texts = yield from files.read_all()
    words = _words(what)
    known = [(path, line) for path, text in texts.items() for line in lines(text) if line.strip()]
    found = [(path, line) for path, line in known if not words or words & _words(line)]
    if not found:
        return f"My memory holds nothing about {about.strip()}." if known else "My memory is empty."
    return "My memory says:\n\n" + "\n".join(f"- {line.lstrip('-# ')} ({path})" for path, line in found)


def _change(files: Files, old: str, new: str) -> Rule:
    texts = yield from files.read_all()
    old, new = _plain(old), _plain(new)
    path = next((path for path, text in texts.items() if old in text), None)
    if path is None:
        return f"My memory does not mention {old}."
    done = yield files.replace(path, old, new)
    return f"I could not change it: {done.text}" if done.is_error else f"I changed it in {path}: {old} → {new}"


def _forget(files: Files, what: str) -> Rule:
    texts = yield from files.read_all()
    wanted = _plain(what).lower()
    forgotten: list[str] = []
    for path, text in texts.items():
        hits = [line for line in lines(text) if wanted in _EVERYTHING or wanted in line.lower()]
        for edit in _without(files, path, text, hits):
            done = yield edit
            if done.is_error:
                return f"I could not forget it: {done.text}"
        forgotten += [line.lstrip("-# ") for line in hits if line.strip()]
    return f"Forgotten: {'; '.join(forgotten)}" if forgotten else "My memory does not mention it."


def _without(files: Files, path: str, text: str, hits: list[str]) -> Iterator[Call]:
    """The edits that take lines out of a file; a file of nothing else goes as a whole."""
    if hits and all(line in hits or not line.strip() for line in lines(text)):
        files.gone(path)
        yield files.delete(path)
        return
    for line in hits:
        whole = f"{line}\n" if f"{line}\n" in text else line
        yield files.replace(path, whole, "")


def _tidy(files: Files) -> Rule:
    """Each line stands once in a file, without blanks at its end; an empty file goes."""
    texts = yield from files.read_all()
    tidied: list[str] = []
    for path, text in texts.items():
        tidy = _tidied(text)
        if tidy.strip() and tidy == text.removesuffix("\n"):
            continue
        done = yield files.replace(path, text, f"{tidy}\n") if tidy.strip() else files.delete(path)
        if done.is_error:
            return f"I could not tidy {path}: {done.text}"
        tidied.append(path)
    return f"I tidied {', '.join(tidied)}." if tidied else "My memory is tidy."


def _tidied(text: str) -> str:
    bare = [line.rstrip() for line in lines(text)]
    once = [line for n, line in enumerate(bare) if line not in bare[:n] or not line]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(once)).strip("\n")


def _run_and_note(files: Files, command: str, file: str) -> Rule:
    came = yield Call({"command": command}, tool="bash")
    if came.is_error:
        return f"It failed, so that there is nothing to note: {came.text.strip()}"
    printed = (came.text.strip().splitlines() or ["nothing"])[-1]
    noted = yield from _remember(files, f"{printed} (printed by {shorten(command, 40, placeholder='…')})", file)
    return f"It printed {printed}. {noted}"


# -- words -----------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    return text.strip().rstrip(".!").strip()


def _same_topic(old: str, new: str) -> bool:
    """`- I prefer SI units` and `- I prefer imperial units` begin and end alike: the later one counts."""
    before, after = old.lower().split(), new.lower().split()
    return len(before) > 3 and len(after) > 3 and before[:3] == after[:3] and before[-1] == after[-1]


def _words(text: str) -> set[str]:
    """The words that tell a topic, in one spelling for singular and plural."""
    return {word.rstrip("s") for word in re.findall(r"\w+", text.lower()) if not _SMALL.fullmatch(word)}
