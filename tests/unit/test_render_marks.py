"""What cannot be seen is marked; colours can be read; the style holds where it is shown (faults 46, 13)."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.render import html_text, one_line, style, visible
from memkernel.render.marks import cut, html_cut
from tests.unit.html_pages import Page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", "⟨ESC⟩[31mred⟨BEL⟩"),
        ("a\r\n", "a⟨CR⟩\n"),
        ("\x00\x7f\x9b", "⟨NUL⟩⟨DEL⟩⟨U+009B⟩"),
        ("\u202eevil\u202c", "⟨U+202E⟩evil⟨U+202C⟩"),
        ("pass\u200bword", "pass⟨U+200B⟩word"),
        ("\ufeffhello", "⟨U+FEFF⟩hello"),
        ("\U000e0041\U000e0042", "⟨U+E0041⟩⟨U+E0042⟩"),
        ("a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"),
        ("10\xa0km", "10␣km"),
        ("\u3164\u2800\u115f", "⟨U+3164⟩⟨U+2800⟩⟨U+115F⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("a\ufe0f\ufe0e", "a⟨U+FE0F⟩⟨U+FE0E⟩"),
        ("\u2764\ufe0f\ufe01\ufe02", "\u2764\ufe0f⟨U+FE01⟩⟨U+FE02⟩"),
    ],
)
def test_what_cannot_be_seen_has_a_mark(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\n",
        "naïve café e\u0301",
        "می\u200cخواهم",  # Persian joins its words with U+200C
        "क\u094d\u200dष",  # so does Hindi its letters, with U+200D
        "👨\u200d👩\u200d👧 \u2764\ufe0f 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥",
        "日本語　です",
        "עברית العربية",
        "\ufffd",
    ],
)
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_every_control_and_format_character_of_unicode_is_marked() -> None:
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    left = [
        f"U+{code:04X}"
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in unseen and visible(chr(code)) == chr(code) and chr(code) not in "\t\n"
    ]
    assert left == []


@given(st.text())
def test_html_shows_the_same_text(text: str) -> None:
    assert Page(html_text(text)).text == visible(text)
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)


@given(st.text(alphabet="a<&'\"\u202e🙂\x00", max_size=300), st.integers(40, 100))
def test_cut_html_is_whole_and_short(text: str, most: int) -> None:
    html = html_cut(text, most)
    assert len(Page(html).text.replace("⟨U+202E⟩", "x").replace("⟨NUL⟩", "x")) <= most
    assert len(html.encode()) <= 3 * most
    assert cut(text, most) == text or len(cut(text, most)) == most


def test_the_same_marks_are_titled_in_html() -> None:
    assert html_text("\u202e") == '<b title="U+202E RIGHT-TO-LEFT OVERRIDE">⟨U+202E⟩</b>'
    assert html_text("\x1b") == '<b title="U+001B CONTROL CHARACTER">⟨ESC⟩</b>'


# -- colours ---------------------------------------------------------------------------------------

GROUNDS = ("page", "came", "went", "came-word", "went-word", "tag")
PAIRS = [*product(["text"], GROUNDS), ("faint", "page"), ("faint", "head"), ("bad", "page")]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", [style.LIGHT, style.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "ground"), PAIRS)
def test_fault_46_every_colour_can_be_read_on_its_ground(palette: dict[str, str], front: str, ground: str) -> None:
    """Fault 46: the contrast of WCAG AA."""
    darker, lighter = sorted((luminance(palette[front]), luminance(palette[ground])))
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_fault_46_a_rule_that_sets_a_colour_sets_the_ground_too() -> None:
    """Fault 46: hosts put white or black behind an output whatever its theme."""
    rules = re.findall(r"\{([^{}]*)\}", style.STYLE)
    coloured = [rule for rule in rules if re.search(r"(?<![-\w])color:", rule)]
    assert coloured
    assert all("background:" in rule for rule in coloured)


def test_the_style_follows_the_host_and_fetches_nothing() -> None:
    for switch in ("prefers-color-scheme:dark", 'data-jp-theme-light="false"', "vscode-dark", 'theme="dark"'):
        assert switch in style.STYLE
    assert not re.search(r"url\(|@import|https?:", style.STYLE)
    assert len(style.STYLE) < 4_000
