"""Markdown as the page draws it: nodes of a few tags, no HTML, no link, no image; what is stored stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memkernel.jupyter.widgets.diff_rows import marked_part
from memkernel.jupyter.widgets.rows import Marked

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Node: TypeAlias = "list[Any]"
"""`[tag, [node, …]]`, or `["", text]` with a text as `marked` gives it."""

MOST_NODES: Final = 6_000
_LEVELS: Final = {"h1": "h4", "h2": "h5"}
"""The notebook has headings of its own; lower ones are h6."""

_TASK: Final = re.compile(r"\[([ xX])\] ")
_FRONT_MATTER: Final = re.compile(r"---\n(.*?\n)---(?:\n|\Z)", re.DOTALL)


def preview(text: str) -> tuple[list[Node], bool]:
    """A text's nodes, and whether they are not all: at most so many are made."""
    source = text.replace("\r\n", "\n")
    page = _Page()
    front = _FRONT_MATTER.match(source)
    if front:
        page.add("pre", front[1])
        source = source[front.end() :]
    whole = page.draw(_parser().parse(source))
    return page.nodes, not whole


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class _Page:
    """Nodes that grow: those that are open lie on a stack."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._open: list[Node] = [["", self.nodes]]
        self._links: list[tuple[str, list[Node]]] = []
        self._left = MOST_NODES

    def add(self, tag: str, text: str) -> None:
        """A node that holds one text."""
        self._put([tag, [self._words_of(text)]])

    def draw(self, tokens: Sequence[Token]) -> bool:
        """Whether all of the tokens had room."""
        for token in tokens:
            if self._left <= 0:
                return False
            self._draw(token)
        return self._left > 0

    def _draw(self, token: Token) -> None:
        kind = token.type
        if kind == "inline":
            self.draw(token.children or ())
        elif kind.startswith("link_"):
            self._link(token)
        elif token.hidden:  # the paragraphs of a tight list
            return
        elif token.nesting:
            self._nest(token)
        elif kind in ("fence", "code_block"):
            self.add("pre", token.content)
        elif kind == "code_inline":
            self.add("code", token.content)
        elif kind == "image":
            self._text(f"{token.content} ({token.attrs.get('src', '')})")
        elif kind in ("hr", "hardbreak"):
            self._put([token.tag, []])
        else:
            self._text("\n" if kind == "softbreak" else token.content)

    def _nest(self, token: Token) -> None:
        if token.nesting < 0:
            self._open.pop()
            return
        tag = token.tag
        if tag[0] == "h":
            tag = _LEVELS.get(tag, "h6")
        self._enter([tag, []])

    def _link(self, token: Token) -> None:
        if token.nesting > 0:
            self._enter(["u", []])
            self._links.append((str(token.attrs.get("href", "")), self._open[-1][1]))
            return
        self._open.pop()
        address, shown = self._links.pop()
        if "".join(_plain(shown)) != address:
            self._text(f" ({address})")

    def _text(self, text: str) -> None:
        task = _TASK.match(text) if self._is_at_begin_of_item() else None
        if task:
            text = f"{'☐' if task[1] == ' ' else '☑'} {text[task.end() :]}"
        if text:
            self._put(self._words_of(text))

    def _words_of(self, text: str) -> Node:
        shown = marked_part(text)
        self._left -= 0 if isinstance(shown, str) else len(shown)  # each piece is an element of the page, too
        return ["", shown]

    def _is_at_begin_of_item(self) -> bool:
        tags = [tag for tag, _ in self._open[-2:]]
        return (tags[-1] == "li" or tags == ["li", "p"]) and not self._open[-1][1]

    def _enter(self, node: Node) -> None:
        self._put(node)
        self._open.append(node)

    def _put(self, node: Node) -> None:
        self._left -= 1
        self._open[-1][1].append(node)


def _plain(nodes: Sequence[Node]) -> Iterator[str]:
    for tag, content in nodes:
        if tag:
            yield from _plain(content)
        else:
            yield _words(content)


def _words(text: Marked) -> str:
    return text if isinstance(text, str) else "".join(piece if isinstance(piece, str) else piece[0] for piece in text)
