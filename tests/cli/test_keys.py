"""`memkernel keys create | ls | revoke`."""

from __future__ import annotations

import re

import pytest

from memkernel import cli
from memkernel.store import Database


@pytest.fixture(autouse=True)
def _this_database(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `memkernel keys …`."""
    return Run(capsys)


class Run:
    """Runs `memkernel keys …`: its exit status, and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """The standard output and the standard error."""
        try:
            ended = cli.main(["keys", *arguments])
        except SystemExit as error:
            ended = error.code
        out, err = self._capsys.readouterr()
        assert ended == status, err
        return out, err


def test_the_secret_stands_alone_and_the_rest_is_said_beside_it(run: Run, database: Database) -> None:
    out, err = run("create", "--workspace", "lab", "--name", "ci", "--read-only", "--expires", "2100-01-31")
    secret = out.removesuffix("\n")
    (key,) = database.keys.list()
    assert database.keys.find(secret).key == key
    assert (key.workspace_id, key.name, key.read_only) == ("lab", "ci", True)
    assert secret not in err
    assert f"{key.id} may read in workspace lab, until 2100-01-31 00:00 UTC. Its secret:\n" in err
    assert err.endswith("Keep it now: it is not shown again, and only its hash was stored.\n")


def test_a_key_is_made_where_the_server_of_a_dsn_serves(
    run: Run, dsn: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`memkernel serve --dsn` asks for keys of that database."""
    monkeypatch.setenv("MEMKERNEL_DSN", "postgresql://elsewhere.invalid/nothing")
    secret, _ = run("create", "--dsn", dsn)
    (key,) = database.keys.list()
    assert database.keys.find(secret.strip()).key == key
    assert key.id in run("ls", "--dsn", dsn)[0]
    assert f"{key.id} is revoked now" in run("revoke", key.id, "--dsn", dsn)[0]


def test_what_is_not_said_is_the_default(run: Run, database: Database) -> None:
    _, err = run("create")
    (key,) = database.keys.list()
    assert (key.workspace_id, key.name, key.read_only, key.expires_at) == ("default", "", False, None)
    assert f"{key.id} may read and write in workspace default. Its secret:\n" in err


@pytest.mark.parametrize(("expires", "days"), [("30d", 30), ("2w", 14), ("1y", 365)])
def test_a_length_of_time_counts_from_now(run: Run, database: Database, expires: str, days: int) -> None:
    run("create", "--expires", expires)
    (key,) = database.keys.list()
    assert key.expires_at is not None
    assert round((key.expires_at - key.created_at).total_seconds() / 86_400, 2) == days


def test_a_date_may_have_a_time_and_a_zone(run: Run, database: Database) -> None:
    run("create", "--expires", "2100-01-31T12:00+02:00")
    (key,) = database.keys.list()
    assert str(key.expires_at) == "2100-01-31 10:00:00+00:00"


def test_keys_are_listed_without_their_secrets(run: Run, database: Database) -> None:
    assert run("ls") == ("There is no key. `memkernel keys create` makes one.\n", "")
    secrets = [run("create", "--name", name, *more)[0].strip() for name, *more in (["ci", "--read-only"], ["日本"])]
    gone, _ = database.keys.create("lab")
    database.keys.revoke(gone.id)
    out, err = run("ls")
    assert err == ""
    assert not [secret for secret in secrets if secret.removeprefix("mk_") in out]
    head, _, *rows = out.splitlines()
    assert re.split(r"  +", head) == ["key", "name", "workspace", "may", "made (UTC)", "state"]
    listed = [re.split(r"  +", row) for row in rows]
    assert [row[0] for row in listed] == [key.id for key in database.keys.list()]
    assert [[*row[1:4], row[5].split(" ")[0]] for row in listed] == [
        ["-", "lab", "read and write", "revoked"],
        ["日本", "default", "read and write", "valid"],
        ["ci", "default", "read", "valid"],
    ]


def test_a_key_is_revoked_by_its_id(run: Run, database: Database) -> None:
    (one, secret), (other, _) = database.keys.create("default", "ci"), database.keys.create("default")
    assert run("revoke", one.id) == (f"{one.id} (ci) is revoked now: it opens nothing any more.\n", "")
    assert database.keys.find(secret).key is None
    again, _ = run("revoke", one.id)
    assert re.fullmatch(rf"{one.id} \(ci\) was revoked \d.* UTC, before this: it opens nothing any more\.\n", again)
    last, _ = run("revoke", other.id)
    assert "No key is left" in last


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["create", "--workspace", "a/b"], 1, "'a/b' is no workspace id"),
        (["create", "--workspace", ""], 1, "'' is no workspace id"),
        (["create", "--name", "a\tb"], 1, "control character"),
        (["create", "--name", "\ud800"], 1, "surrogate"),
        (["create", "--expires", "5x"], 2, "'5x' is no time: 30d, 8w, 1y and 2030-01-31 are some"),
        (["create", "--expires", ""], 2, "'' is no time"),
        (["create", "--expires", "-1d"], 2, "expected one argument"),
        (["create", "--expires", "2020-02-30"], 2, "is no time"),
        (["create", "--expires", "0001-01-01T00:00+14:00"], 2, "is no time"),
        (["create", "--expires", "999999y"], 2, "'999999y' is too far away"),
        (["create", "--expires", "0d"], 1, "expires_at has passed"),
        (["create", "--expires", "2020-01-31"], 1, "expires_at has passed: 2020-01-31 00:00 UTC"),
        (["create", "more"], 2, "unrecognized arguments: more"),
        (["revoke"], 2, "key"),
        (["revoke", "apikey_01"], 1, "there is no API key apikey_01"),
        ([], 2, "COMMAND"),
    ],
)
def test_bad_input_is_told_in_one_sentence(
    run: Run, database: Database, arguments: list[str], status: int, told: str
) -> None:
    out, err = run(*arguments, status=status)
    assert out == ""
    assert told in err
    assert "Traceback" not in err
    assert database.keys.list() == []
