"""The environment -> Settings."""

from __future__ import annotations

import os

import pytest

from memkernel import config
from memkernel.errors import InvalidInputError
from memkernel.models import Limits, Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = config.load({})
    assert settings == Settings(user=settings.user)
    assert (settings.dsn, settings.home, settings.linger_s, settings.demo) == (None, None, 60.0, False)
    assert settings.limits == Limits(memories_per_store=2_000, content_bytes=102_400, stores_per_session=8)


def test_every_variable_has_its_setting() -> None:
    settings = config.load(
        {
            "MEMKERNEL_DSN": "postgresql://db/notes",
            "MEMKERNEL_HOME": "/srv/mk",
            "MEMKERNEL_PG_BIN": "/usr/lib/postgresql/15/bin",
            "MEMKERNEL_PG_USER": "pg",
            "MEMKERNEL_LINGER_S": "0",
            "MEMKERNEL_MODEL": "a-model",
            "MEMKERNEL_PRICES": '{"a-model": [3, 15]}',
            "MEMKERNEL_DEMO": "1",
            "MEMKERNEL_RENDER": "static",
            "MEMKERNEL_MAX_MEMORIES": "3",
            "MEMKERNEL_MAX_CONTENT_BYTES": "4",
            "MEMKERNEL_MAX_STORES_PER_SESSION": "5",
            "ANTHROPIC_API_KEY": "a-key",
            "ANTHROPIC_BASE_URL": "http://localhost:1",
        }
    )
    assert settings == Settings(
        dsn="postgresql://db/notes",
        home="/srv/mk",
        pg_bin="/usr/lib/postgresql/15/bin",
        pg_user="pg",
        linger_s=0.0,
        user=settings.user,
        api_key="a-key",
        api_base_url="http://localhost:1",
        model="a-model",
        prices='{"a-model": [3, 15]}',
        demo=True,
        render="static",
        limits=Limits(memories_per_store=3, content_bytes=4, stores_per_session=5),
    )


def test_an_empty_variable_is_unset() -> None:
    names = ("MEMKERNEL_DSN", "MEMKERNEL_HOME", "MEMKERNEL_LINGER_S", "MEMKERNEL_DEMO", "ANTHROPIC_API_KEY")
    assert config.load(dict.fromkeys(names, "")) == config.load({})


def test_variables_of_other_programs_are_left_alone() -> None:
    theirs = {"DATABASE_URL": "postgresql://prod/x", "PGHOST": "prod", "PGDATABASE": "x", "PGPASSWORD": "y"}
    assert config.load(theirs) == config.load({})


@pytest.mark.parametrize("value", ["0", "false"])
def test_the_demo_can_be_switched_off(value: str) -> None:
    assert config.load({"MEMKERNEL_DEMO": value}).demo is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMKERNEL_LINGER_S", "-1"),
        ("MEMKERNEL_LINGER_S", "soon"),
        ("MEMKERNEL_LINGER_S", "nan"),
        ("MEMKERNEL_MAX_MEMORIES", "0"),
        ("MEMKERNEL_MAX_CONTENT_BYTES", "1 kB"),
        ("MEMKERNEL_RENDER", "Static"),
    ],
)
def test_a_value_that_is_none_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        config.load({name: value})


def test_the_key_is_in_no_representation() -> None:
    assert "a-key" not in repr(config.load({"ANTHROPIC_API_KEY": "a-key"}))


def test_the_processs_own_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_HOME", "/srv/mk")
    assert config.load().home == "/srv/mk"


def test_a_user_without_a_passwd_entry_has_a_name_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry(_: int) -> None:
        raise KeyError

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    assert config.load({}).user == f"uid{os.getuid()}"
