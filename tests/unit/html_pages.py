"""Reads a piece of HTML strictly: every element is closed, nothing acts, nothing is fetched."""

from __future__ import annotations

from html.parser import HTMLParser

_INERT = {
    *("b", "blockquote", "br", "caption", "code", "del", "details", "div", "em", "ins", "p", "pre", "span", "strong"),
    *("style", "summary", "table", "tbody", "td", "th", "thead", "time", "tr"),
}
_ATTRIBUTES = {"class", "colspan", "datetime", "scope", "tabindex", "title"}


class Page(HTMLParser):
    """A piece of HTML: its text without the style, and where each element's text is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.inside: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _INERT, tag
        assert {name for name, _ in attrs} <= _ATTRIBUTES, attrs
        if tag != "br":
            self._open.append(tag)
            self.inside.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1:] == [tag], f"</{tag}> inside {self._open}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data
        for tag in self._open:
            self.inside[tag][-1] += data
