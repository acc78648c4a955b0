"""The look of everything that memkernel shows as HTML: one small style block, a frame, a limit.

Whoever strips the style (GitHub does) still gets a readable page: `ins` and `del`, signs, plain tables.
Each rule that sets a colour sets the background too, for hosts differ in what they put behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

HTML_BYTES: Final = 24_000
TEXT_LINES: Final = 60

LIGHT: Final = {
    "text": "#1f2328",
    "page": "#ffffff",
    "faint": "#59636e",
    "head": "#f3f5f7",
    "line": "#d1d9e0",
    "came": "#e6f9ea",
    "came-word": "#a6e9b4",
    "went": "#ffeeec",
    "went-word": "#ffc4bd",
    "bad": "#a40e26",
    "tag": "#fff3c4",
}
DARK: Final = {
    "text": "#e6e8eb",
    "page": "#111111",
    "faint": "#a3abb4",
    "head": "#1d2126",
    "line": "#3d444d",
    "came": "#12291a",
    "came-word": "#1f5f33",
    "went": "#331a1c",
    "went-word": "#7d2b2f",
    "bad": "#ff8f88",
    "tag": "#4a3b05",
}
"""The pairs that meet: text and faint on page, head, came, went, their words, tag; bad on page."""

_RULES: Final = """\
.memkernel{color:var(--text);background:var(--page);font:13px/1.5 system-ui,sans-serif;padding:2px 4px;overflow-x:auto}
.memkernel p{margin:4px 0}
.memkernel table{border-collapse:collapse;margin:4px 0!important;font-size:inherit;table-layout:auto}
.memkernel caption{text-align:left;font-weight:600;padding:2px 0}
.memkernel tr:nth-child(n),.memkernel tr:nth-child(n):hover{color:var(--text);background:var(--page)!important}
.memkernel :is(th,td){text-align:left!important;vertical-align:top;padding:3px 20px 3px 0;white-space:nowrap;\
border:0;border-bottom:1px solid var(--line)}
.memkernel :is(th,td).n{text-align:right!important;font-variant-numeric:tabular-nums}
.memkernel td.w{white-space:normal;overflow-wrap:anywhere;min-width:24em;max-width:48em}
.memkernel :is(pre,code){font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
color:inherit;background:inherit!important;padding:0!important;border:0}
.memkernel pre{border:1px solid var(--line)!important;border-radius:4px;margin:4px 0;max-height:34em;overflow:auto;\
white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal}
.memkernel pre>*{display:block;padding:0 10px}
.memkernel pre>:first-child{padding-top:5px}
.memkernel pre>:last-child{padding-bottom:5px}
.memkernel :is(ins,del){text-decoration:none;color:inherit;background:inherit}
.memkernel .came{color:var(--text);background:var(--came)}
.memkernel .went{color:var(--text);background:var(--went)}
.memkernel .words ins{color:var(--text);background:var(--came-word);border-radius:2px}
.memkernel .words del{color:var(--text);background:var(--went-word);border-radius:2px}
.memkernel .fold{color:var(--faint);background:var(--head);font-style:normal}
.memkernel .faint{color:var(--faint);background:var(--page)}
.memkernel .bad{color:var(--bad);background:var(--page)}
.memkernel .tag{color:var(--text);background:var(--tag);border-radius:8px;padding:1px 8px}
.memkernel blockquote{margin:4px 0;padding:0 10px;border-left:3px solid var(--line);color:inherit;background:inherit}
.memkernel summary{cursor:pointer}
@media(forced-colors:active),(prefers-contrast:more){.memkernel ins{text-decoration:underline}\
.memkernel del{text-decoration:line-through}}
"""


def _palette(selector: str, colours: dict[str, str]) -> str:
    return f"{selector}{{{';'.join(f'--{name}:{colour}' for name, colour in colours.items())}}}\n"


# The host says which theme it has; without one the system does.
STYLE: Final = "".join(
    (
        "<style>\n",
        _palette(".memkernel", LIGHT),
        "@media(prefers-color-scheme:dark){",
        _palette(".memkernel", DARK).rstrip(),
        "}\n",
        _palette(':is([data-jp-theme-light="true"],.vscode-light,html[theme="light"]) .memkernel', LIGHT),
        _palette(':is([data-jp-theme-light="false"],.vscode-dark,html[theme="dark"]) .memkernel', DARK),
        _RULES,
        "</style>",
    )
)

# Without these classes a `$` in a memory would start a formula.
_OPEN: Final = '<div class="memkernel tex2jax_ignore mathjax_ignore">'
_ROOM: Final = HTML_BYTES - len(STYLE) - 600
FIRST: Final = 3
"""Where only the two ends of something are shown: so many lines of its beginning."""


def framed(*parts: str) -> str:
    """The parts as one piece of HTML, with its style."""
    return f"{_OPEN}{STYLE}{''.join(parts)}</div>"


def fitting(rows: Iterable[str], *, beside: int = 0) -> list[str]:
    """As many rows as one piece of HTML has room for, when `beside` bytes of it are something else."""
    left = _ROOM - beside
    kept: list[str] = []
    for row in rows:
        left -= len(row.encode())
        if left < 0:
            break
        kept.append(row)
    return kept


def fitting_ends(things: Sequence[T], draw: Callable[[T], str], *, beside: int = 0) -> list[str]:
    """All things if there is room for them; else the first ones, and as many of the last as there is room for."""
    drawn = fitting(map(draw, things), beside=beside)
    if len(drawn) == len(things):
        return drawn
    first = drawn[:FIRST]
    rest = things[len(first) :]
    last = fitting(map(draw, reversed(rest)), beside=beside + sum(len(row.encode()) for row in first))
    return [*first, f'<p class="faint">… {len(rest) - len(last):,} left out</p>', *last[::-1]]


def first_lines(lines: list[str], most: int = TEXT_LINES) -> list[str]:
    """The lines, or the first of them and how many there are."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {most - 1:,} of {len(lines):,} lines shown"]


def line_ends(lines: list[str], most: int) -> list[str]:
    """The lines, or the first and the last of them and how many are left out between."""
    if len(lines) <= most:
        return lines
    last = most - FIRST - 1
    return [*lines[:FIRST], f"… {len(lines) - most + 1:,} lines left out", *lines[-last:]]
