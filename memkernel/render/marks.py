"""Text that somebody else wrote, made safe to look at: what cannot be seen gets a mark.

Control characters (an escape sequence would steer the terminal), direction overrides (they make a line
look like another), zero-width and tag characters (they carry hidden orders) and the like. A joiner
between two letters of Persian or Hindi, or inside an emoji, and an emoji's variation selector stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from typing import Final

_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SPACES: Final = "\xa0\u1680\u2000-\u200a\u202f\u205f"
_FORMATS: Final = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_FILLERS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0"
_SURROGATES: Final = "\ud800-\udfff"
_SEEN: Final = "[^\x00-\x7f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0e]"
_JOINERS: Final = rf"(?<!{_SEEN})[\u200c\u200d]|[\u200c\u200d](?!{_SEEN})"
_SELECTORS: Final = rf"(?<!{_SEEN})(?<![#*0-9])[\ufe00-\ufe0f]|(?<=\ufe0f)[\ufe00-\ufe0f]"

_INVISIBLE: Final = re.compile(f"[{_CONTROLS}{_SPACES}{_FORMATS}{_FILLERS}{_SURROGATES}]|{_JOINERS}|{_SELECTORS}")
_IN_ONE_LINE: Final = str.maketrans({"\n": "↵", "\t": "⇥"})
_KNOWN: Final = {0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x0C: "FF", 0x0D: "CR", 0x1B: "ESC", 0x7F: "DEL"}


def visible(text: str) -> str:
    """The text with a mark in place of each character that cannot be seen. Tabs and line ends stay."""
    return _INVISIBLE.sub(lambda found: _mark(found[0]), text)


def visible_cut(text: str, most: int) -> str:
    """The same, at most so many characters of it."""
    return cut(visible(text[: most + 1]), most)


def one_line(text: str, most: int = 2_000) -> str:
    """The same, on one line."""
    return visible_cut(text, most).translate(_IN_ONE_LINE)


def html_text(text: str) -> str:
    """The text as HTML, with the same marks."""
    return _INVISIBLE.sub(lambda found: _html_mark(found[0]), escape(text))


def pieces(text: str) -> Iterator[str | tuple[str, str]]:
    """The text in pieces: stretches that can be seen, and (mark, title) for each character that cannot."""
    end = 0
    for found in _INVISIBLE.finditer(text):
        if end < found.start():
            yield text[end : found.start()]
        yield _mark(found[0]), _title(found[0])
        end = found.end()
    if end < len(text):
        yield text[end:]


def html_cut(text: str, most: int) -> str:
    """At most so many characters as HTML; fewer where marks and escapes make that longer than three times `most`."""
    kept = most
    while len((html := html_text(cut(text, kept))).encode()) > 3 * most and kept > 1:
        kept //= 2
    return html


def html_line(text: str, most: int) -> str:
    """The same, on one line."""
    return html_cut(text, most).translate(_IN_ONE_LINE)


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


@lru_cache(maxsize=256)
def _mark(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) == "Zs":
        return "␣"
    return f"⟨{_KNOWN.get(code, f'U+{code:04X}')}⟩"


@lru_cache(maxsize=256)
def _html_mark(character: str) -> str:
    return f'<b title="{_title(character)}">{_mark(character)}</b>'


def _title(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'CONTROL CHARACTER')}"
