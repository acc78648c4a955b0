"""Level 2 of the local sandbox: paths of a sandbox, written down in code, become the real ones.

`/mnt/memory` is never made on the machine itself. Where no mount namespace can be had, a string constant of Python
that is such a path, or begins with one, and a path in a bash script are replaced before they run; a path that is
computed ("/mnt/" + name), or read from a file, is not.

This file is also sent to the kernel of the sandbox as it is: standard library only, no import of a sibling. IPython
calls `visit` for every cell (`InteractiveShell.ast_transformers`). Only values of constants are replaced, so that
line numbers, columns and the text that a traceback shows stay those of the cell.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

_SHELL_METHODS = {"system", "getoutput", "getstatusoutput", "popen"}
_SHELL_MAGICS = {"bash", "sh", "script", "!", "sx", "system"}
_CODE_MAGICS = {"python", "python2", "python3", "pypy", "perl", "ruby"}
_INTERPRETER = re.compile(r"\b(?:ba|da|z|k)?sh\b|\bpython[\d.]*\b|\bperl\b|\bruby\b|\bnode\b")
_SHELL = re.compile(r"\b(?:ba|da|z|k)?sh\b")
_CODE_OPTION = re.compile(r"\s-[a-z]*c\s*$")
_UNPLAIN = re.compile(r"[^\w@%+=:,./-]")


class Rehoming:
    """Folders of a sandbox and where they really are; nothing is changed where there are none."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        """Take absolute paths without a slash at the end: sandbox's -> real. The longest that fits counts."""
        self.folders = dict(sorted(folders.items(), key=lambda item: -len(item[0])))
        self._real = sorted(((real, path) for path, real in folders.items()), key=lambda item: -len(item[0]))
        choice = "|".join(map(re.escape, self.folders))
        # Not in the middle of another path or word, and not the beginning of a longer name.
        self._in_bash = re.compile(rf"(?<![\w.~*?\]}}$\\/-])(?:{choice})(?=[/\s\"'`;&|<>(){{}},:=]|$)")
        self._in_magic = re.compile(rf"({self._in_bash.pattern})([^\s\"'()\[\],;]*)")
        reals = "|".join(re.escape(real) for real, _ in self._real)
        self._shown = re.compile(rf"(?:{reals})(?![\w.-])")

    # -- one path --

    def mapped(self, path: str) -> str:
        """A path of the sandbox as the machine has it; any other path as it is."""
        return self._replaced(self._tidy(path)) or path

    def unmapped(self, path: str) -> str:
        """A path of the machine as the sandbox has it; any other path as it is."""
        for real, folder in self._real:
            if path == real or path.startswith(f"{real}/"):
                return folder + path[len(real) :]
        return path

    def shown(self, text: str) -> str:
        """A text with the real paths in it as the sandbox has them."""
        return self._shown.sub(lambda found: self.unmapped(found[0]), text) if self.folders else text

    def _replaced(self, text: str) -> str | None:
        """The text with a real path at its beginning; None where it does not begin with one of the sandbox."""
        for folder, real in self.folders.items():
            if text == folder or text.startswith(f"{folder}/"):
                return real + text[len(folder) :]
        return None

    @staticmethod
    def _tidy(path: str) -> str:
        """The path without `.`, `..` and doubled slashes, where it is absolute."""
        if not path.startswith("/"):
            return path
        tidied = posixpath.normpath(path)
        return tidied[1:] if tidied.startswith("//") else tidied

    # -- Python --

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the constants of a tree, in place. Without recursion: a deep tree is no error."""
        left_alone: set[int] = set()
        for each in ast.walk(node):  # breadth first: what is left alone is known before it is reached
            left_alone.update(map(id, _no_paths(each)))
            if isinstance(each, ast.Call):
                for word, is_script in _words(each):
                    word.value = self.bash(str(word.value)) if is_script else self._line(str(word.value))
                    left_alone.add(id(word))
            elif isinstance(each, ast.Constant) and id(each) not in left_alone:
                self._replace(each)
        return node

    def _replace(self, constant: ast.Constant) -> None:
        value = constant.value
        text = os.fsdecode(value) if isinstance(value, bytes) else value
        # More than one line is a text, and none that names a file.
        if isinstance(text, str) and "\n" not in text and (real := self._replaced(text)):
            constant.value = os.fsencode(real) if isinstance(value, bytes) else real

    def _line(self, text: str) -> str:
        """What follows a magic's name: words, and nobody takes backslashes away."""

        def replace(found: re.Match[str]) -> str:
            word = self.folders[found[1]] + found[2]
            is_quoted = found.start() > 0 and text[found.start() - 1] in "'\""
            return word if is_quoted or not re.search(r"\s", word) else f'"{word}"'

        return self._in_magic.sub(replace, text) if self.folders else text

    # -- commands --

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """A command with real paths: words that are paths, values of options, and the script of `bash -c`."""
        is_shell = bool(argv) and _SHELL.fullmatch(posixpath.basename(argv[0])) is not None
        made: list[str] = []
        for index, word in enumerate(argv):
            option, equals, value = word.partition("=")
            if is_shell and index > 0 and re.fullmatch(r"-[a-z]*c", argv[index - 1]):
                made.append(self.bash(word))
            elif equals and option.startswith("-"):
                made.append(f"{option}={self._replaced(value) or value}")
            else:
                made.append(self._replaced(word) or word)
        return made

    def bash(self, script: str) -> str:
        """A script with real paths where a word is, or begins with, one of the sandbox.

        Also inside quotes, where the path does not stand in the middle of a sentence: `-c "open('/mnt/memory/x')"`.
        What a here-document holds is text, unless an interpreter reads it.
        """
        made: list[str] = []
        at, kind, start, end = 0, "text", 0, 0
        pieces = _pieces(script)
        for found in self._in_bash.finditer(script) if self.folders else ():
            while end <= found.start():
                kind, start, end = next(pieces)
            quote = _quote_at(kind, script[start : found.start()])
            if quote is not None and found.end() <= end:
                made += [script[at : found.start()], _quoted(self.folders[found[0]], quote)]
                at = found.end()
        return "".join([*made, script[at:]])


# -- which constants are no paths ----------------------------------------------------------------------


def _no_paths(node: ast.AST) -> Iterator[ast.AST]:
    """The constants below a node that are none of their own: all but the first part of an f-string, and docstrings."""
    specification = getattr(node, "format_spec", None)
    if isinstance(node, ast.JoinedStr) or type(node).__name__ == "TemplateStr":
        yield from getattr(node, "values", [])[1:]
    elif isinstance(specification, ast.JoinedStr):
        yield from specification.values
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr):
        yield node.body[0].value


def _words(call: ast.Call) -> Iterator[tuple[ast.Constant, bool]]:
    """The constants of a call that hold paths among other words, and whether they are shell scripts.

    `!ls`, `%cd`, `%%bash`, os.system, subprocess with shell=True.
    """
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    strings = [each for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if name in ("run_line_magic", "run_cell_magic") and len(strings) == len(call.args) > 1:
        is_shell = strings[0].value in _SHELL_MAGICS
        yield strings[1], is_shell and name == "run_line_magic"
        is_code = strings[0].value in _CODE_MAGICS
        yield from ((body, is_shell) for body in strings[2:] if is_shell or is_code)
    elif strings[:1] == call.args[:1] and (name in _SHELL_METHODS or _runs_a_shell(call)):
        yield from ((script, True) for script in strings[:1])


def _runs_a_shell(call: ast.Call) -> bool:
    return any(word.arg == "shell" and getattr(word.value, "value", False) is True for word in call.keywords)


# -- a script in pieces --------------------------------------------------------------------------------


def _pieces(script: str) -> Iterator[tuple[str, int, int]]:
    """A bash script in pieces, kind and place of each, without a gap.

    The kinds: `bare`; `single` and `double`, quoted words; with `shell-` or `code-` before it, one that a shell or
    another interpreter gets as its program; `code`, a here-document that it gets; `text`, all the rest.
    """
    at, command, awaited = 0, "", list[tuple[str, str]]()
    while found := _LEXEMES.match(script, at):
        kind, lexeme = str(found.lastgroup), found[0]
        yield _kind(kind, command), at, found.end()
        at = found.end()
        if kind == "heredoc":
            awaited.append(("code" if _INTERPRETER.search(command) else "text", re.sub(r"\W", "", lexeme)))
        command = "" if kind in ("separator", "newline") else command + lexeme
        if kind == "newline":
            for run, word in awaited:
                end = _end_of_document(script, at, word)
                yield run, at, end
                at = end
            awaited = []


_LEXEMES = re.compile(
    r"""(?P<newline>\n)
    |(?P<comment>(?:(?<=[\s;&|(])|^)\#[^\n]*)
    |(?P<escape>\\.)
    |(?P<single>\$'(?:[^'\\]|\\.)*'|'[^']*')
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<herestring><<<)
    |(?P<heredoc><<-?[ \t]*['"\\]?\w+['"]?)
    |(?P<separator>[;&|]+|\$\(|`)
    |(?P<bare>[^\n'"\\<;&|`\#$]+|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def _kind(lexeme: str, command: str) -> str:
    if lexeme in ("single", "double") and _CODE_OPTION.search(command):
        return f"{'shell' if _SHELL.search(command) else 'code'}-{lexeme}"
    return lexeme if lexeme in ("single", "double", "bare") else "text"


def _end_of_document(script: str, at: int, word: str) -> int:
    """Where the here-document that begins at `at` ends; there where nothing ends it."""
    found = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE).search(script, at)
    return at if found is None else found.end()


def _quote_at(kind: str, before: str) -> str | None:
    """How a path is quoted that stands in a piece of this kind after `before`; None where it is no path."""
    if kind == "text":
        return None
    if before.rfind("$(") > before.rfind(")") or before.count("`") % 2:
        return "bare"
    if kind in ("single", "double") and before[-1:].isspace():
        return None  # in the middle of a sentence
    is_quoted_again = len(before) > 1 and before[-1] in "'\""
    return kind.rpartition("-")[2] if is_quoted_again or not kind.startswith("shell-") else kind


def _quoted(path: str, quote: str) -> str:
    """A real path as it is written there."""
    if quote.startswith("shell-"):
        return _quoted(_quoted(path, "bare"), quote.rpartition("-")[2])
    if quote == "single":
        return path.replace("'", "'\\''")
    if quote == "double":
        return re.sub(r'([$`"\\])', r"\\\1", path)
    return path if quote == "code" else _UNPLAIN.sub(lambda found: "\\" + found[0], path)
