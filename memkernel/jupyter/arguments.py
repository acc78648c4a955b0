"""What a command's line says: options, and the grammar of PATH and VERSION.

A PATH is `/path` in the store in use, or `STORE:/path` with a store's id, name or slug. A VERSION is `@3`, `@-1`,
`@head`, `@memver_…` or `@2026-11-30T10:00`, alone or glued to a path. The last `@` of a path that a version
follows splits it; `/odd@3@head` is the memory that is called `/odd@3`.
"""

from __future__ import annotations

import argparse
import difflib
import keyword
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from IPython.core.error import UsageError

from memkernel import ids
from memkernel.handle.versions import is_version
from memkernel.jupyter import words

_STORE_MARK: Final = re.compile(r":(?=/)|:$")
_NUMBER: Final = re.compile(r"-\d+")


class HelpShown(Exception):  # noqa: N818  # no error: the line asked for help, and was answered
    """The help was printed; there is nothing to run."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that never leaves the notebook: a faulty line is a UsageError of two lines."""

    def __init__(self, prog: str, *, summary: str, examples: Iterable[str] = ()) -> None:
        super().__init__(
            prog=prog,
            description=summary,
            epilog="\n".join(["Examples:", *(f"  {example}" for example in examples)]) if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_line(self, line: str) -> argparse.Namespace:
        """The arguments of a line; options may stand anywhere before `--`.

        Raises:
            UsageError: the line is malformed.
            HelpShown: the line asked for help.
        """
        return self.parse_args(self._options_first(words.split(line)))

    def error(self, message: str) -> NoReturn:
        message = message.replace(": -- ", ": ").replace(" -- ", " ")  # the mark that `_options_first` has put there
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            message = f"{message}{self._suggestion(unknown)}"
        raise UsageError(f"{self.prog}: {message}\n{self.one_line_usage()}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpShown

    def one_line_usage(self) -> str:
        """`Usage: …`, however long."""
        return " ".join(self.format_usage().split()).replace("usage:", "Usage:", 1)

    def option_names(self) -> list[str]:
        """Every option's spellings."""
        return list(self._option_string_actions)

    def takes_value(self, option: str, following: str = "") -> bool:
        """Whether the next word belongs to this option; a value that may be left out does not begin with a dash."""
        action = self._option_string_actions.get(option)
        may_be_left_out = action is not None and action.nargs == "?" and following.startswith("-")
        return action is not None and action.nargs != 0 and not may_be_left_out

    def metavar_of(self, option: str) -> str | None:
        """What the option's value is."""
        return _metavar(self._option_string_actions.get(option))

    def choices_of(self, option: str) -> list[str]:
        """What the option's value can be, where it is one of a few."""
        return _choices(self._option_string_actions.get(option))

    def choices_at(self, position: int) -> list[str]:
        """The same of the word that stands there among the words that belong to no option."""
        actions = self._get_positional_actions()
        return _choices(actions[position]) if position < len(actions) else []

    def metavar_at(self, position: int) -> str | None:
        """What the word is that stands there among the words that belong to no option."""
        actions = self._get_positional_actions()
        last = actions[-1] if actions else None
        repeated = last if last is not None and last.nargs in ("*", "+") else None
        return _metavar(actions[position] if position < len(actions) else repeated)

    def positionals(self, given: list[str]) -> list[str]:
        """The words that belong to no option."""
        return self._sort(given)[1]

    def _options_first(self, given: list[str]) -> list[str]:
        # argparse gives a positional that may be left out away too early when an option stands before it.
        options, positionals = self._sort(given)
        return [*options, "--", *positionals] if positionals else options

    def _sort(self, given: list[str]) -> tuple[list[str], list[str]]:
        options, positionals = list[str](), list[str]()
        rest = deque(given)
        while rest:
            word = rest.popleft()
            if word == "--":
                return options, [*positionals, *rest]
            if not word.startswith("-") or word == "-" or _NUMBER.fullmatch(word):
                positionals.append(word)
                continue
            options.append(word)
            if rest and self.takes_value(word, rest[0]):
                options.append(rest.popleft())
        return options, positionals

    def _suggestion(self, unknown: str) -> str:
        near = difflib.get_close_matches(unknown.split(maxsplit=1)[0], self.option_names(), n=1, cutoff=0.75)
        return f" (near: {near[0]})" if near else ""


def _metavar(action: argparse.Action | None) -> str | None:
    return action.metavar if action is not None and isinstance(action.metavar, str) else None


def _choices(action: argparse.Action | None) -> list[str]:
    return [str(each) for each in action.choices or ()] if action is not None else []


@dataclass(frozen=True, slots=True)
class Address:
    """A path as it was written: perhaps in a store that is named, perhaps at a version."""

    store: str | None
    path: str
    version: str | None


def parse_address(text: str) -> Address:
    """`[STORE:]/path[@VERSION]`, or a version's id alone. Whether the path is legal is for the store to say."""
    if ids.is_id("memver", text.removeprefix("@")):
        return Address(None, "/", text)
    store, rest = None, text
    mark = None if text.startswith("/") else _STORE_MARK.search(text)
    if mark is not None:
        store, rest = text[: mark.start()], text[mark.end() :] or "/"
    path, at, version = rest.rpartition("@")
    if at and path and is_version(version):
        return Address(store, path, version)
    return Address(store, rest, None)


def format_path(path: str) -> str:
    """The path so that `parse_address` reads it back as a path without a version."""
    _, at, end = path.rpartition("@")
    return f"{path}@head" if at and is_version(end) else path


def version(text: str) -> str:
    """An argparse type: a VERSION that stands alone, with or without its `@`."""
    if not is_version(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version: @3, @-1, @head, @memver_… or @2026-11-30T10:00")
    return text


def variable(text: str) -> str:
    """An argparse type: the name of a Python variable."""
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a variable's name")
    return text


def count(text: str) -> int:
    """An argparse type: a whole number, 1 or more."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def seconds(text: str) -> float:
    """An argparse type: a time, more than nothing."""
    value = _positive(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def dollars(text: str) -> float:
    """An argparse type: US dollars, more than none; a `$` before them is left out."""
    value = _positive(text.removeprefix("$"))
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of US dollars")
    return value


def speed(text: str) -> float:
    """An argparse type: how many times as fast; an `x` behind it is left out."""
    value = _positive(text.removesuffix("x"))
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed: 2 is twice as fast")
    return value


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def switch(text: str) -> bool:
    """An argparse type: `on` or `off`."""
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither on nor off")
    return text == "on"


def read_file(name: str) -> bytes:
    """The bytes of a file that a person names; `~` is the home.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


# -- options that many commands share ------------------------------------------------------------


def takes_path(parser: Parser, *, optional: bool = False, default: str | None = None, help: str = "a memory") -> None:
    """PATH."""
    parser.add_argument("path", metavar="PATH", nargs="?" if optional else None, default=default, help=help)


def takes_store(parser: Parser) -> None:
    """-s STORE."""
    parser.add_argument("-s", "--store", metavar="STORE", help="a store's id, name or slug; default: the one in use")


def gives_result(parser: Parser, *, rows: bool = False) -> None:
    """-o VAR and -q; for lists also --df."""
    parser.add_argument("-o", "--out", metavar="VAR", type=variable, help="also put the result into this variable")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing")
    if rows:
        parser.add_argument("--df", action="store_true", help="give a pandas DataFrame")


def takes_limit(parser: Parser, what: str) -> None:
    """-n N."""
    parser.add_argument("-n", "--limit", metavar="N", type=count, help=f"at most N {what}")


def asks(parser: Parser) -> None:
    """-y."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; needed where nobody can answer")
