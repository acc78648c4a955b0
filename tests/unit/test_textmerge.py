"""The three-way merge: an untouched side takes the other's text, changes apart are both there, nothing is lost."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.textmerge import Conflict, Merge, merge

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", " ", "one two", "d\r", "\ufeffé", "x\fy", "z\u2028w"]), max_size=12
)
TEXTS = st.builds("".join, st.tuples(st.builds("\n".join, LINES), st.sampled_from(["", "\n"]))) | st.text(max_size=40)


def lines_of(text: str) -> list[str]:
    return StringIO(text, newline="\n").readlines()


# -- properties of any three texts -----------------------------------------------------------------


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_takes_the_others_text(base: str, changed: str) -> None:
    assert merge(base, changed, base) == merge(base, base, changed) == Merge(changed, ())


@given(TEXTS, TEXTS)
def test_what_both_sides_did_alike_is_done_once(base: str, changed: str) -> None:
    assert merge(base, changed, changed) == Merge(changed, ())


@given(TEXTS, TEXTS, TEXTS)
def test_it_is_the_same_from_either_side(base: str, ours: str, theirs: str) -> None:
    found, turned = merge(base, ours, theirs), merge(base, theirs, ours)
    assert found.text == turned.text
    assert [(one.base_line, one.base, one.ours, one.theirs) for one in found.conflicts] == [
        (one.base_line, one.base, one.theirs, one.ours) for one in turned.conflicts
    ]


@given(TEXTS, TEXTS, TEXTS)
def test_a_clean_merge_holds_every_line_that_either_side_added_and_no_other(base: str, ours: str, theirs: str) -> None:
    text = merge(base, ours, theirs).text
    if text is None:
        return
    there, before = Counter(lines_of(text)), Counter(lines_of(base))
    for side in (Counter(lines_of(ours)), Counter(lines_of(theirs))):
        assert (side - before) <= there  # added by this side
    assert there <= before + Counter(lines_of(ours)) + Counter(lines_of(theirs))


@given(TEXTS, TEXTS, TEXTS)
def test_a_clean_merge_holds_no_line_that_a_side_removed_wholly(base: str, ours: str, theirs: str) -> None:
    text = merge(base, ours, theirs).text
    if text is None:
        return
    for side, other in ((ours, theirs), (theirs, ours)):
        removed = set(lines_of(base)) - set(lines_of(side))
        unchanged_elsewhere = {line for line in removed if lines_of(other).count(line) <= lines_of(base).count(line)}
        assert not unchanged_elsewhere & set(lines_of(text))


@given(TEXTS, TEXTS, TEXTS)
def test_a_text_comes_out_or_else_conflicts(base: str, ours: str, theirs: str) -> None:
    found = merge(base, ours, theirs)
    assert (found.text is None) == bool(found.conflicts)
    at = 0
    for conflict in found.conflicts:
        start = conflict.base_line - bool(conflict.base)
        count = len(lines_of(conflict.base))
        assert start > at or at == 0
        assert "".join(lines_of(base)[start : start + count]) == conflict.base
        assert len({conflict.base, conflict.ours, conflict.theirs}) == 3
        assert conflict.ours in ours
        assert conflict.theirs in theirs
        at = start + count


# -- edits whose outcome is known beforehand -------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """What one side does at a line of the base: lines before it, and whether it stays."""

    inserted: tuple[str, ...]
    stays: bool


UNTOUCHED = Edit((), True)


def apply(base: list[str], edits: list[Edit]) -> str:
    """A side's text. No two lines are equal, so that there is one alignment only."""
    made = [[*edit.inserted, *([line] if edit.stays else [])] for line, edit in zip(base, edits, strict=True)]
    return "".join(line for lines in made for line in lines)


def edits_of(side: str) -> st.SearchStrategy[list[Edit]]:
    def edit(count: int, stays: bool, number: int) -> Edit:
        return Edit(tuple(f"{side}{number}.{n}\n" for n in range(count)), stays)

    edited = st.builds(edit, st.integers(0, 2), st.booleans(), st.integers(0, 10**6))
    return st.lists(st.one_of(st.just(UNTOUCHED), st.just(UNTOUCHED), edited), min_size=12, max_size=12)


def expected(base: list[str], ours: list[Edit], theirs: list[Edit]) -> str | None:
    """What the merge must be, told from the edits: changes meet where no line of the base is kept by both."""
    text = ""
    start = 0
    for index in range(len(base) + 1):
        anchored = index == len(base) or (ours[index].stays and theirs[index].stays)
        if not anchored:
            continue
        stop = min(index + 1, len(base))
        mine, yours = ours[start:stop], theirs[start:stop]
        sides = {apply(base[start:stop], mine), apply(base[start:stop], yours)} - {"".join(base[start:stop])}
        if len(sides) > 1:
            return None
        text += sides.pop() if sides else "".join(base[start:stop])
        start = stop
    return text


@given(edits_of("ours"), edits_of("theirs"))
def test_edits_apart_are_both_there_and_edits_that_meet_are_conflicts(ours: list[Edit], theirs: list[Edit]) -> None:
    base = [f"line {number}\n" for number in range(12)]
    found = merge("".join(base), apply(base, ours), apply(base, theirs))
    assert found.text == expected(base, ours, theirs)


@given(edits_of("ours"), st.integers(0, 2**12 - 1))
def test_the_same_edit_on_both_sides_is_no_conflict(ours: list[Edit], mask: int) -> None:
    base = [f"line {number}\n" for number in range(12)]
    shared = [edit if mask >> index & 1 else UNTOUCHED for index, edit in enumerate(ours)]
    assert merge("".join(base), apply(base, ours), apply(base, shared)).text == expected(base, ours, shared)


def test_it_finds_what_git_finds(tmp_path: Path) -> None:
    """`git merge-file` as the oracle, for random edits of texts whose lines are all different."""
    randomly = random.Random(3)
    base = [f"line {number}\n" for number in range(30)]
    clean = 0
    for _ in range(60):
        texts = ["".join(base), *(apply(base, some_edits(randomly, side)) for side in ("ours", "theirs"))]
        files = [tmp_path / name for name in ("base", "ours", "theirs")]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        command = ["git", "merge-file", "-p", "--quiet", *(str(files[at]) for at in (1, 0, 2))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = merge(*texts)
        assert (done.stdout if done.returncode == 0 else None) == found.text
        clean += found.text is not None
    assert 5 < clean < 55


def some_edits(randomly: random.Random, side: str) -> list[Edit]:
    edits = [UNTOUCHED] * 30
    for at in randomly.sample(range(30), 3):
        edits[at] = Edit((f"{side}{at}\n",) * randomly.randint(0, 1), randomly.random() < 0.5)
    return edits


# -- single cases ----------------------------------------------------------------------------------

BASE = "one\ntwo\nthree\nfour\nfive\n"


def test_changes_with_a_line_between_them_are_merged() -> None:
    assert merge(BASE, BASE.replace("one", "1"), BASE.replace("three", "3")).text == "1\ntwo\n3\nfour\nfive\n"


def test_changes_of_neighbouring_lines_are_a_conflict() -> None:
    found = merge(BASE, BASE.replace("two", "2"), BASE.replace("three", "3"))
    assert found == Merge(None, (Conflict(2, "two\nthree\n", "2\nthree\n", "two\n3\n"),))


def test_a_conflict_says_where_and_what_each_side_has() -> None:
    found = merge(BASE, BASE.replace("two", "2"), BASE.replace("two", "zwei\nzwo"))
    assert found == Merge(None, (Conflict(2, "two\n", "2\n", "zwei\nzwo\n"),))


def test_two_insertions_at_one_place_are_a_conflict_behind_the_line_before() -> None:
    found = merge(BASE, BASE + "six\n", BASE + "sechs\n")
    assert found == Merge(None, (Conflict(5, "", "six\n", "sechs\n"),))


def test_a_deletion_against_an_edit_is_a_conflict() -> None:
    found = merge(BASE, BASE.replace("two\n", ""), BASE.replace("two", "2"))
    assert found == Merge(None, (Conflict(2, "two\n", "", "2\n"),))


def test_two_new_texts_without_a_base_are_a_conflict() -> None:
    assert merge("", "a\n", "b\n") == Merge(None, (Conflict(0, "", "a\n", "b\n"),))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_are_kept_as_they_are(newline: str) -> None:
    base = f"one{newline}two{newline}three{newline}"
    merged = merge(base, base.replace("one", "1"), base.replace("three", "3")).text
    assert merged == f"1{newline}two{newline}3{newline}"


def test_other_line_ends_are_another_text() -> None:
    found = merge(BASE, BASE.replace("\n", "\r\n"), BASE.replace("two", "2"))
    assert found == Merge(None, (Conflict(1, BASE, BASE.replace("\n", "\r\n"), BASE.replace("two", "2")),))
    assert merge(BASE, BASE.replace("\n", "\r\n"), BASE).text == BASE.replace("\n", "\r\n")


def test_a_missing_last_newline_is_kept_added_and_taken_away() -> None:
    bare = BASE.removesuffix("\n")
    assert merge(bare, bare.replace("one", "1"), bare.replace("three", "3")).text == "1\ntwo\n3\nfour\nfive"
    assert merge(bare, BASE, bare.replace("one", "1")).text == BASE.replace("one", "1")
    assert merge(BASE, bare, BASE.replace("one", "1")).text == bare.replace("one", "1")
    assert merge(bare, BASE + "six\n", bare.replace("one", "1")).text == (BASE + "six\n").replace("one", "1")


def test_only_newlines_end_lines() -> None:
    base = "a\x0cb\x0bc\x1cd\x85e\u2028f\rg\nh\ni\n"
    assert merge(base, base.replace("a", "A"), base.replace("i", "I")).text == base.replace("a", "A").replace("i", "I")
    assert merge(base, base.replace("a", "A"), base.replace("g", "G")).text is None


# -- bounded work ----------------------------------------------------------------------------------


def _random_lines(letters: str, seed: int) -> str:
    randomly = random.Random(seed)
    return "".join(f"{randomly.choice(letters)}\n" for _ in range(51_200))


def _shuffled(seed: int) -> str:
    lines = [f"{number:05}" for number in range(17_000)]
    random.Random(seed).shuffle(lines)
    return "\n".join(lines)


WORST = {
    "only newlines": ("\n" * 102_400, "\n" * 102_399 + "x", "y" + "\n" * 102_399),
    "alternating": ("a\nb\n" * 25_600, "b\na\n" * 25_600, "a\na\n" * 25_600),
    "two letters": tuple(_random_lines("ab", seed) for seed in range(3)),
    "ten letters": tuple(_random_lines("abcdefghij", seed) for seed in range(3)),
    "shuffled": tuple(_shuffled(seed) for seed in range(3)),
    "no line shared": ("x\n" * 51_200, "y\n" * 51_200, "z\n" * 51_200),
    "one line": ("x" * 102_400, "y" * 102_400, "z" * 102_400),
    "blank lines between": ("\n" * 51_200, "\na\n" * 34_133, "\nb\n" * 34_133),
}


@pytest.mark.parametrize("case", WORST)
def test_100_kb_of_the_worst_kind_are_merged_in_no_time(case: str) -> None:
    base, ours, theirs = WORST[case]
    began = time.process_time()
    found = merge(base, ours, theirs)
    assert time.process_time() - began < 5  # a fifth of a second each on a quiet machine
    assert (found.text is None) == bool(found.conflicts)
