"""How a DSN is shown: never with a secret."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memkernel.cluster import describe_dsn, mask_dsn
from memkernel.cluster.dsn import check_dsn
from memkernel.errors import InvalidInputError


@pytest.mark.parametrize(
    ("dsn", "described"),
    [
        ("postgresql://ann:s3cret@db.example:5432/notes", "db.example:5432/notes"),
        ("postgres://ann@db.example/notes", "db.example/notes"),
        ("postgresql://db.example", "db.example"),
        ("postgresql:///notes", "the default host/notes"),
        ("postgresql://ann@one:1,two:2/notes?target_session_attrs=any", "one,two:1,2/notes"),
        ("postgresql://ann@one,two/notes", "one,two/notes"),
        ("postgresql://[2001:db8::1]:5432/notes", "[2001:db8::1]:5432/notes"),
        ("postgresql://%2Fvar%2Frun%2Fpg/notes", "socket /var/run/pg, database notes"),
        ("postgresql://ann@/notes?host=%2Ftmp%2Fa%20b&port=5433", "socket /tmp/a b:5433, database notes"),
        ("postgresql://ann@/n%C3%B6te?host=x", "x/nöte"),
        ("host=db.example port=5432 dbname=notes user=ann password=s3cret", "db.example:5432/notes"),
        (r"host = 'db.example' dbname='my \'notes\'' password='a b'", "db.example/my 'notes'"),
        ("hostaddr=192.0.2.1 dbname=notes", "192.0.2.1/notes"),
        ("service=team", "service team"),
        ("dbname=notes", "the default host/notes"),
        # Malformed: nothing of what could be a password is taken for a host.
        ("postgresql://ann:pa@ss@db.example/notes", "db.example/notes"),
        ("postgresql://ann:pa/ss@db.example/notes", "db.example/notes"),
        ("postgresql://ann:s3cret", "a server"),
        ("postgresql://db/notes?password=s3cret@x", "a server"),
    ],
)
def test_a_dsn_is_described_by_its_server_and_database(dsn: str, described: str) -> None:
    assert describe_dsn(dsn) == described


@pytest.mark.parametrize(
    ("dsn", "masked"),
    [
        ("postgresql://ann:s3cret@db.example:5432/notes", "postgresql://ann:***@db.example:5432/notes"),
        ("postgresql://ann@db.example/notes", "postgresql://ann@db.example/notes"),
        (
            "postgresql://db.example/notes?password=s3cret&user=ann",
            "postgresql://db.example/notes?password=***&user=ann",
        ),
        ("postgresql://db/notes?sslpassword=a&pass%77ord=b", "postgresql://db/notes?sslpassword=***&password=***"),
        ("host=db password=s3cret dbname=notes", "host=db password=*** dbname=notes"),
        (r"host=db password='s3 \' cret' dbname=notes", "host=db password=*** dbname=notes"),
        (r"password = s3\ cret host=db", "password=*** host=db"),
        ("PASSWORD=s3cret host=db", "*** host=db"),
        ("host=db oauth_client_secret=s3cret", "host=db oauth_client_secret=***"),
        ("host=db password='s3cret", "***"),
        ("password=s3cret and more", "***"),
        ("postgresql://ann:pa@ss@db/notes", "postgresql://ann:***@db/notes"),
        ("postgresql://ann:s3cret", "***"),
        ("postgresql://ann@[::1]:5432/notes?sslmode=require", "postgresql://ann@[::1]:5432/notes?sslmode=require"),
    ],
)
def test_passwords_are_masked_in_both_forms(dsn: str, masked: str) -> None:
    assert mask_dsn(dsn) == masked


SECRET = "s3cr3t"
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
passwords = st.tuples(texts, texts).map(SECRET.join)


@settings(deadline=None)
@given(passwords)
def test_no_password_shows_in_the_keyword_form(password: str) -> None:
    dsn = make_conninfo(host="db.example", dbname="notes", user="ann", password=password)
    assert conninfo_to_dict(dsn)["password"] == password
    assert SECRET not in mask_dsn(dsn)
    assert conninfo_to_dict(mask_dsn(dsn))["password"] == "***"
    assert describe_dsn(dsn) == "db.example/notes"


@settings(deadline=None)
@given(passwords)
def test_no_password_shows_in_a_url_even_if_it_was_not_encoded(password: str) -> None:
    for dsn in (f"postgresql://ann:{password}@db.example/notes", f"postgresql://db.example/notes?password={password}"):
        assert SECRET not in mask_dsn(dsn)
        assert SECRET not in describe_dsn(dsn)


@pytest.mark.parametrize("text", ["", "   ", "notes", "https://example.com", "s3cret@db", "=x", "host=a b"])
def test_what_is_no_dsn_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidInputError, match="MEMKERNEL_DSN is no DSN") as caught:
        check_dsn(text, "MEMKERNEL_DSN")
    assert "s3cret" not in "".join(caught.value.lines())
