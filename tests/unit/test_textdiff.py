"""The differ: both sides can be rebuilt, `git apply` takes its patches, few lines for small edits, bounded work."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.textdiff import Hunk, TextDiff, align, diff, words
from memkernel.textdiff.align import changes
from memkernel.textdiff.words import Span

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", " ", "one two", "one  two", "two three", "d\r", "\ufeffé", "x\fy"])
)
TEXTS = st.builds("".join, st.tuples(st.builds("\n".join, LINES), st.sampled_from(["", "\n"]))) | st.text(max_size=40)
ELEMENTS = st.lists(st.integers(0, 5), max_size=40)


def side(text: str, found: TextDiff, *, forwards: bool) -> str:
    """The other text, made from this one and the hunks alone."""
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
    result: list[str] = []
    at = 0
    for hunk in found.hunks:
        start, count = (hunk.old_start, hunk.old_count) if forwards else (hunk.new_start, hunk.new_count)
        first = start - bool(count)
        result += ended[at:first]
        result += [there for line in hunk.lines if (there := line.new if forwards else line.old) is not None]
        at = first + count
    return "".join(result + ended[at:])


def shown(found: TextDiff) -> list[str]:
    """The changed lines, with their signs."""
    return [row.sign + row.text.removesuffix("\n") for hunk in found.hunks for row in hunk.rows() if row.sign != " "]


def only_hunk(found: TextDiff) -> Hunk:
    (hunk,) = found.hunks
    return hunk


# -- properties ------------------------------------------------------------------------------------


@given(TEXTS, TEXTS, st.integers(0, 4), st.booleans())
def test_each_side_can_be_rebuilt_from_the_other_and_the_hunks(old: str, new: str, context: int, by_word: bool) -> None:
    found = diff(old, new, context=context, words=by_word)
    assert side(old, found, forwards=True) == new
    assert side(new, found, forwards=False) == old


@given(TEXTS, TEXTS)
def test_with_white_space_ignored_the_rebuilt_side_differs_in_white_space_alone(old: str, new: str) -> None:
    found = diff(old, new, ignore_whitespace=True)
    assert squeezed(side(old, found, forwards=True)) == squeezed(new)
    equal = [line for hunk in found.hunks for line in hunk.lines if line.kind == "equal"]
    assert all(squeezed(line.old) == squeezed(line.new) for line in equal)


def squeezed(text: str | None) -> str:
    return "".join((text or "").split())


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_hunks_are_in_order_apart_and_count_their_lines(old: str, new: str, context: int) -> None:
    found = diff(old, new, context=context)
    at = 0
    for hunk in found.hunks:
        start = hunk.old_start - bool(hunk.old_count)
        assert start > at or at == 0
        assert [line.old_number for line in hunk.lines if line.old is not None] == numbers(start, hunk.old_count)
        new_start = hunk.new_start - bool(hunk.new_count)
        assert [line.new_number for line in hunk.lines if line.new is not None] == numbers(new_start, hunk.new_count)
        at = start + hunk.old_count
    signs = [row.sign for hunk in found.hunks for row in hunk.rows()]
    assert (found.added, found.removed) == (signs.count("+"), signs.count("-"))


def numbers(start: int, count: int) -> list[int]:
    return list(range(start + 1, start + count + 1))


@given(TEXTS, TEXTS)
def test_a_strict_reader_of_the_unified_diff_gets_the_new_text(old: str, new: str) -> None:
    patch = diff(old, new).unified()
    assert (applied(old, patch) if patch else old) == new


HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@\n")
NO_NEWLINE = "\\ No newline at end of file\n"


def applied(text: str, patch: str) -> str:
    """What `patch` does, with no tolerance: every line of the old text is where the patch says."""
    rows = StringIO(patch, newline="\n").readlines()
    old, result = StringIO(text, newline="\n").readlines(), ""
    assert rows[:2] == ["--- old\n", "+++ new\n"]
    rows, at = rows[2:], 0
    while rows:
        header = HEADER.fullmatch(rows.pop(0))
        assert header
        start, count, new_count = int(header[1]), int(header[2] or 1), int(header[3] or 1)
        result += "".join(old[at : start - bool(count)])
        at = start - bool(count)
        stop = at + count
        while at < stop or new_count:
            row = rows.pop(0)
            if rows[:1] == [NO_NEWLINE]:
                rows.pop(0)
                row = row.removesuffix("\n")
            if row[0] != "+":
                assert old[at] == row[1:]
                at += 1
            if row[0] != "-":
                result += row[1:]
                new_count -= 1
    return result + "".join(old[at:])


@given(TEXTS, TEXTS)
def test_the_spans_of_a_changed_line_are_its_text_and_what_is_unmarked_is_on_both_sides(old: str, new: str) -> None:
    for hunk in diff(old, new).hunks:
        for line in hunk.lines:
            if line.kind == "changed":
                assert "".join(text for text, _ in line.old_spans) == (line.old or "").removesuffix("\n")
                assert "".join(text for text, _ in line.new_spans) == (line.new or "").removesuffix("\n")
                assert kept(line.old_spans) == kept(line.new_spans)


def kept(spans: tuple[Span, ...]) -> str:
    return "".join(text for text, changed in spans if not changed)


@given(ELEMENTS, ELEMENTS)
def test_the_changes_of_short_lists_are_as_few_as_can_be(old: list[int], new: list[int]) -> None:
    blocks = changes(old, new, lambda element: element == 0)
    assert rebuilt(old, new, blocks) == new
    longest = common_length(old, new)
    assert sum(block.old_stop - block.old_start for block in blocks) == len(old) - longest
    assert sum(block.new_stop - block.new_start for block in blocks) == len(new) - longest


@given(ELEMENTS, ELEMENTS)
def test_anchors_and_windows_find_a_common_subsequence_too(old: list[int], new: list[int]) -> None:
    with small_limits(window=6):
        assert rebuilt(old, new, changes(old, new, lambda element: element == 0)) == new


def rebuilt(old: list[int], new: list[int], blocks: list[align.Block]) -> list[int]:
    result: list[int] = []
    at = 0
    for block in blocks:
        assert block.old_start > at or at == 0  # something equal lies between two changes
        result += old[at : block.old_start] + new[block.new_start : block.new_stop]
        at = block.old_stop
    return result + old[at:]


def common_length(old: list[int], new: list[int]) -> int:
    row = [0] * (len(new) + 1)
    for element in old:
        above, row = row, [0]
        for j, other in enumerate(new):
            row.append(above[j] + 1 if element == other else max(row[j], above[j + 1]))
    return row[-1]


@contextmanager
def small_limits(window: int) -> Generator[None]:
    """As if lists of a dozen elements were too long for the exact algorithms."""
    with (
        mock.patch.multiple(align, EXACT_CELLS=window * window, WINDOW=window, KEPT=window * 3 // 2),
        mock.patch.object(align, "shortest_script", return_value=None),
    ):
        yield


# -- alignment -------------------------------------------------------------------------------------


def test_two_lines_added_among_identical_ones_are_two_lines() -> None:
    same = "x = 1\n" * 5_000
    found = diff(same, f"{same[:12_000]}y\n{same[12_000:24_000]}z\n{same[24_000:]}")
    assert (found.added, found.removed, found.places) == (2, 0, 2)
    assert shown(found) == ["+y", "+z"]


def test_a_paragraph_that_is_added_begins_after_a_blank_line_not_before_it() -> None:
    found = diff("# One\n\ntext\n\n# Three\n", "# One\n\ntext\n\n# Two\n\ntext\n\n# Three\n")
    assert shown(found) == ["+# Two", "+", "+text", "+"]


def test_a_deletion_that_could_lie_in_several_places_lies_as_low_as_it_can() -> None:
    assert only_hunk(diff("a\na\na\nb\n", "a\nb\n")).lines[1].old_number == 2
    assert only_hunk(diff("a\na\na\nb\n", "a\nb\n")).lines[2].old_number == 3


def test_changes_that_slide_into_each_other_are_one() -> None:
    assert diff("x\na\nb\n", "x\na\nc\na\nb\n").places == 1
    assert diff("a\nb\na\nb\na\n", "a\n").places == 1


def test_a_block_of_lines_that_were_inserted_leaves_the_rest_equal_in_a_text_too_long_for_exactness() -> None:
    chance = random.Random(0)
    old = [str(number) for number in range(12_000)]
    inserted = [f"+{number}" for number in range(6_000)]
    new = [f"{line}!" if chance.random() < 0.05 else line for line in old[:100] + inserted + old[100:]]
    found = diff("\n".join(old), "\n".join(new), words=False)
    assert found.removed < 1_000


def test_one_moved_line_is_not_an_anchor_that_pulls_everything_else_apart() -> None:
    chance = random.Random(0)
    lines = [chance.choice("abcd") for _ in range(400)]
    edited = [chance.choice("abcd") if chance.random() < 0.2 else line for line in lines]
    with small_limits(window=64):
        blocks = changes(["unique", *lines], [*edited, "unique"], lambda line: not line)
    assert sum(block.old_stop - block.old_start for block in blocks) < 150


# -- lines -----------------------------------------------------------------------------------------


def test_a_crlf_file_with_one_changed_line_shows_one_changed_line() -> None:
    """Fault 10."""
    found = diff("a\r\nb\r\n", "a\r\nc\r\n")
    assert (found.added, found.removed) == (1, 1)
    assert shown(found) == ["-b\r", "+c\r"]


def test_turning_lf_into_crlf_changes_every_line_unless_white_space_is_ignored() -> None:
    assert diff("a\nb\n", "a\r\nb\r\n").added == 2
    assert diff("a\nb\n", "a\r\nb\r\n", ignore_whitespace=True).hunks == ()


def test_a_bom_is_a_character_of_its_line() -> None:
    """Fault 13."""
    found = diff("\ufeffhello\nx\n", "\ufeffbye\nx\n")
    assert shown(found) == ["-\ufeffhello", "+\ufeffbye"]
    assert diff("\ufeffhello\n", "\ufeffhello\n").hunks == ()
    assert diff("hello\n", "\ufeffhello\n").added == 1


@pytest.mark.parametrize("separator", ["\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\0"])
def test_lines_end_at_the_newline_alone(separator: str) -> None:
    found = diff(f"a{separator}b\n", f"a{separator}c\n")
    assert (found.old_count, found.new_count, found.added) == (1, 1, 1)


def test_the_end_of_the_last_line_counts() -> None:
    assert diff("a", "a\n").unified() == "--- old\n+++ new\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
    assert diff("a\n", "a").unified() == "--- old\n+++ new\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"
    assert diff("a", "a").unified() == ""


def test_an_empty_text_has_no_lines() -> None:
    assert diff("", "a\nb\n").unified("/dev/null", "/b.md") == "--- /dev/null\n+++ /b.md\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert diff("a\n", "").unified() == "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n"
    assert diff("", "").hunks == ()


def test_context_is_counted_in_lines() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    found = diff(old, old.replace("5\n", "five\n", 1).replace("\n10\n", "\nten\n"), context=1)
    assert [hunk.header for hunk in found.hunks] == ["@@ -5,3 +5,3 @@", "@@ -10,3 +10,3 @@"]
    assert len(diff(old, old.replace("5\n", "five\n", 1).replace("\n10\n", "\nten\n"), context=2).hunks) == 1
    assert [len(hunk.lines) for hunk in diff(old, old.replace("\n7\n", "\n"), context=0).hunks] == [1]


GIT_CASES = [
    ("a\nb\nc\n", "a\nB\nc\n"),
    ("a\nb\nc", "a\nb\nc\n"),
    ("a\nb\nc\n", "a\nb\nC"),
    ("", "new\n"),
    ("gone\n", ""),
    ("a\r\nb\r\n", "a\r\nc\r\n"),
    ("\ufeffa\n", "\ufeffb"),
    ("".join(f"{n}\n" for n in range(99)), "".join(f"{n}\n" for n in range(99) if n % 9)),
    ("- \n+ x\n-- y\n", "- \n+++ x\n--- y\n"),
]


@pytest.mark.parametrize(("old", "new"), GIT_CASES)
def test_git_apply_takes_the_unified_diff(tmp_path: Path, old: str, new: str) -> None:
    file, patch = tmp_path / "m.md", tmp_path / "m.patch"
    file.write_bytes(old.encode())
    patch.write_bytes(diff(old, new).unified("a/m.md", "b/m.md").encode())
    git = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", str(patch)]
    subprocess.run(git, cwd=tmp_path, check=True, capture_output=True)
    assert file.read_bytes() == new.encode()


# -- words -----------------------------------------------------------------------------------------


def test_a_changed_line_shows_which_words_changed() -> None:
    (line,) = only_hunk(diff("be brief and kind\n", "be very brief and warm\n")).lines
    assert line.kind == "changed"
    assert [text for text, changed in line.old_spans if changed] == ["kind"]
    assert [text for text, changed in line.new_spans if changed] == ["very ", "warm"]


def test_lines_that_share_little_are_removed_and_added() -> None:
    kinds = [line.kind for line in only_hunk(diff("alpha beta\n", "gamma delta\n")).lines]
    assert kinds == ["removed", "added"]


def test_a_changed_line_finds_its_partner_past_an_inserted_one() -> None:
    lines = only_hunk(diff("- metric tons\n", "- a new line of words\n- short tons\n")).lines
    assert [line.kind for line in lines] == ["added", "changed"]


def test_words_can_be_left_out() -> None:
    found = diff("be brief\n", "be very brief\n", words=False)
    assert [line.kind for line in only_hunk(found).lines] == ["removed", "added"]
    assert found.work == 0


def test_scripts_without_spaces_are_compared_letter_by_letter() -> None:
    (line,) = only_hunk(diff("単位は国際単位系です\n", "単位は常に国際単位系です\n")).lines
    assert line.new_spans == (Span("単位は", False), Span("常に", True), Span("国際単位系です", False))


def test_an_accent_stays_with_its_letter() -> None:
    (line,) = only_hunk(diff("le cafe\u0301 noir\n", "le cafe noir\n")).lines
    assert [text for text, changed in line.old_spans if changed] == ["cafe\u0301"]


def test_a_long_line_of_prose_is_not_painted_whole() -> None:
    old = " ".join(f"word{number}" for number in range(2_000))
    (line,) = only_hunk(diff(old, old.replace("word1000 ", "other "))).lines
    assert [text for text, changed in line.old_spans if changed] == ["word1000"]


# -- bounds ----------------------------------------------------------------------------------------


def shuffled_words(lines: int, width: int) -> tuple[str, str]:
    chance = random.Random(0)
    rows = [[f"w{chance.randrange(99)}" for _ in range(width)] for _ in range(lines)]
    mixed = [chance.sample(row, len(row)) for row in rows]
    return "\n".join(map(" ".join, rows)), "\n".join(map(" ".join, mixed))


@pytest.mark.parametrize(("lines", "width"), [(1, 25_000), (25, 1_000), (400, 60), (6_000, 4)])
def test_the_work_on_words_is_limited(lines: int, width: int) -> None:
    found = diff(*shuffled_words(lines, width))
    assert 0 < found.work <= words.WORK_LIMIT


def test_the_same_texts_give_the_same_diff() -> None:
    old, new = shuffled_words(400, 60)
    assert diff(old, new) == diff(old, new)


class Counted:
    """An element that counts how often it is compared."""

    compared = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return isinstance(other, Counted) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@pytest.mark.parametrize("symbols", [1, 2, 40, 10_000])
def test_the_comparisons_grow_with_the_length_not_with_its_square(symbols: int) -> None:
    chance = random.Random(0)
    old, new = ([Counted(chance.randrange(symbols)) for _ in range(4_000)] for _ in range(2))
    Counted.compared = 0
    changes(old, new, lambda element: element.value == 0)
    assert Counted.compared < 60 * (len(old) + len(new))
