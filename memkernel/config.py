"""The environment -> Settings. Nothing else in memkernel reads the environment."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping

from memkernel.errors import InvalidInputError
from memkernel.models import Limits, Settings


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """What the environment says; an empty variable counts as unset.

    DATABASE_URL and PG* are left alone on purpose: in an unrelated project's shell they name its
    production database.

    Raises:
        InvalidInputError: a number that is none, or is not positive.
    """
    env = {name: value for name, value in (os.environ if environ is None else environ).items() if value}
    return Settings(
        dsn=env.get("MEMKERNEL_DSN"),
        home=env.get("MEMKERNEL_HOME"),
        pg_bin=env.get("MEMKERNEL_PG_BIN"),
        pg_user=env.get("MEMKERNEL_PG_USER"),
        linger_s=_number(env, "MEMKERNEL_LINGER_S", 60, least=0),
        user=_user(env),
        api_key=env.get("ANTHROPIC_API_KEY"),
        api_base_url=env.get("ANTHROPIC_BASE_URL"),
        model=env.get("MEMKERNEL_MODEL"),
        demo=env.get("MEMKERNEL_DEMO", "0") not in ("0", "false"),
        limits=Limits(
            memories_per_store=int(_number(env, "MEMKERNEL_MAX_MEMORIES", Limits.memories_per_store)),
            content_bytes=int(_number(env, "MEMKERNEL_MAX_CONTENT_BYTES", Limits.content_bytes)),
            stores_per_session=int(_number(env, "MEMKERNEL_MAX_STORES_PER_SESSION", Limits.stores_per_session)),
        ),
    )


def _number(env: Mapping[str, str], name: str, default: float, *, least: float = 1) -> float:
    try:
        value = float(env.get(name, default))
    except ValueError:
        raise InvalidInputError(f"{name}={env[name]!r} is not a number") from None
    if not value >= least:
        raise InvalidInputError(f"{name}={env[name]!r} is less than {least:g}")
    return value


def _user(env: Mapping[str, str]) -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a passwd entry
        return f"uid{os.getuid()}"
