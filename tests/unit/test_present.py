"""The registry from type to presenter: the nearest class wins, and text is always there."""

from __future__ import annotations

import pytest

from memkernel import present


class Diff:
    def __str__(self) -> str:
        return "a diff as text"


class WideDiff(Diff):
    pass


@pytest.fixture(autouse=True)
def _no_presenters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memkernel.present._presenters", {})


def test_without_a_presenter_the_text_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    present.show(Diff())
    assert capsys.readouterr().out == "a diff as text\n"


def test_a_presenter_takes_the_place_of_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[object] = []
    present.register(Diff, shown.append)
    diff = Diff()
    present.show(diff)
    assert shown == [diff]
    assert capsys.readouterr().out == ""


def test_a_class_without_one_takes_its_bases() -> None:
    shown: list[object] = []
    present.register(Diff, shown.append)
    assert present.presenter_for(WideDiff()) == shown.append


def test_the_nearest_class_wins_whatever_the_order() -> None:
    wide: list[object] = []
    plain: list[object] = []
    present.register(WideDiff, wide.append)
    present.register(Diff, plain.append)
    present.show(WideDiff())
    present.show(Diff())
    assert (len(wide), len(plain)) == (1, 1)


def test_a_later_presenter_replaces_the_one_before() -> None:
    first: list[object] = []
    second: list[object] = []
    present.register(Diff, first.append)
    present.register(Diff, second.append)
    present.show(Diff())
    assert (first, len(second)) == ([], 1)


def test_a_type_that_nobody_knows_has_none() -> None:
    assert present.presenter_for(3) is None


def test_what_a_presenter_raises_is_not_hidden() -> None:
    def fail(thing: object) -> None:
        raise RuntimeError("no display")

    present.register(Diff, fail)
    with pytest.raises(RuntimeError, match="no display"):
        present.show(Diff())
