"""Which server is used, and the one line that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkernel.cluster import choose
from memkernel.errors import ClusterError, InvalidInputError
from memkernel.models import Settings

THEIRS = "postgresql://ann:s3cret@db.example:5432/notes"
OTHER = "postgresql://ann@other.example/notes"


def test_a_dsn_that_was_given_comes_first() -> None:
    chosen = choose(THEIRS, Settings(dsn=OTHER))
    assert (chosen.kind, chosen.dsn, chosen.cluster) == ("argument", THEIRS, None)
    assert chosen.line == "PostgreSQL at db.example:5432/notes"


def test_memkernel_dsn_comes_second() -> None:
    chosen = choose(None, Settings(dsn=OTHER))
    assert (chosen.kind, chosen.dsn, chosen.cluster) == ("MEMKERNEL_DSN", OTHER, None)
    assert chosen.line == "PostgreSQL at other.example/notes (MEMKERNEL_DSN)"


def test_the_embedded_server_comes_last_and_is_not_started_by_choosing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    chosen = choose(None, Settings(home=str(tmp_path)))
    assert chosen.kind == "embedded"
    assert callable(chosen.dsn)
    assert chosen.line == f"PostgreSQL 18.6, embedded, data in {tmp_path}/pg18/data"
    assert list(tmp_path.iterdir()) == []


def test_a_home_below_the_users_own_is_shown_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose(None, Settings(home=str(tmp_path / "mk"))).line.endswith("data in ~/mk/pg18/data")


def test_other_variables_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "PGHOST", "PGSERVICE", "PGDATABASE"):
        monkeypatch.setenv(name, THEIRS)
    assert choose(None, Settings(home=str(tmp_path))).kind == "embedded"


def test_a_server_that_is_chosen_within_the_demo_is_used() -> None:
    """`memkernel demo` takes a person's own MEMKERNEL_DSN out of the environment; a later one is meant."""
    assert choose(None, Settings(dsn=THEIRS, demo=True)).kind == "MEMKERNEL_DSN"


@pytest.mark.parametrize(
    ("explicit", "settings"), [("nonsense", Settings(dsn=OTHER)), (None, Settings(dsn="nonsense"))]
)
def test_a_choice_that_fails_never_falls_through(explicit: str | None, settings: Settings) -> None:
    with pytest.raises(InvalidInputError, match="is no DSN"):
        choose(explicit, settings)


def test_an_embedded_server_without_programs_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no PostgreSQL that runs in /nonexistent"):
        choose(None, Settings(home=str(tmp_path), pg_bin="/nonexistent"))


def test_a_password_is_in_no_representation() -> None:
    assert "s3cret" not in repr(choose(THEIRS, Settings()))
