"""Tagged ids: their form, their order, and that no two are the same."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.ids import Tag, is_id, mint

TAGS: tuple[Tag, ...] = get_args(Tag)
CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def number(text: str) -> int:
    """The 128 bits of an id."""
    value = 0
    for letter in text.partition("_")[2]:
        value = value * 32 + CROCKFORD.index(letter)
    return value


@pytest.mark.parametrize("tag", TAGS)
def test_an_id_is_its_tag_and_26_characters(tag: Tag) -> None:
    made = mint(tag)
    assert re.fullmatch(rf"{tag}_[{CROCKFORD}]{{26}}", made)
    assert is_id(tag, made)


def test_inside_is_a_uuid_of_version_7_with_the_time() -> None:
    before = time.time_ns() // 1_000_000
    value = number(mint("mem"))
    after = time.time_ns() // 1_000_000
    assert value < 1 << 128
    assert (value >> 76) & 0xF == 7  # the version of RFC 9562
    assert (value >> 62) & 0b11 == 0b10  # its variant
    assert before <= value >> 80 <= after + 1_000  # a burst may run ahead of the clock


def test_ids_of_one_process_sort_in_the_order_they_were_made() -> None:
    made = [mint("memver") for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_that_several_threads_make_are_all_different() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(mint, ["memver"] * 5_000))
    assert len(set(made)) == 5_000


def test_a_clock_that_is_set_back_does_not_break_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = mint("mem")
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    assert mint("mem") > first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mem_",
        "mem",
        "mem_" + "0" * 25,
        "mem_" + "0" * 27,
        "mem_" + "0" * 25 + "i",
        "mem_" + "0" * 25 + "U",
        "mem_" + "0" * 26 + "\n",
        "mem_" + "٠" * 26,
        "memver_" + "0" * 26,
        "MEM_" + "0" * 26,
        " mem_" + "0" * 26,
        "mem_..%2Fx%3Fy",
    ],
)
def test_what_is_no_id_is_recognised(text: str) -> None:
    assert not is_id("mem", text)


@given(st.sampled_from(TAGS), st.text(alphabet=CROCKFORD, min_size=26, max_size=26))
def test_an_id_is_of_one_kind_alone(tag: Tag, body: str) -> None:
    assert [other for other in TAGS if is_id(other, f"{tag}_{body}")] == [tag]
