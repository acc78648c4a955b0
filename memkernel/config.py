"""The environment -> Settings. Nothing else in memkernel reads the environment."""

from __future__ import annotations

import getpass
import math
import os
from collections.abc import Mapping, Sequence

from memkernel.errors import InvalidInputError
from memkernel.models import RENDER, Limits, Settings


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """What the environment says; an empty variable counts as unset.

    DATABASE_URL and PG* are left alone on purpose: in an unrelated project's shell they name its
    production database.

    Raises:
        InvalidInputError: a number that is none, or out of range.
    """
    env = {name: value for name, value in (os.environ if environ is None else environ).items() if value}
    usual = Limits()
    return Settings(
        dsn=env.get("MEMKERNEL_DSN"),
        home=env.get("MEMKERNEL_HOME"),
        pg_bin=env.get("MEMKERNEL_PG_BIN"),
        pg_user=env.get("MEMKERNEL_PG_USER"),
        linger_s=_seconds(env, "MEMKERNEL_LINGER_S", Settings().linger_s),
        user=_user(),
        api_key=env.get("ANTHROPIC_API_KEY"),
        api_base_url=env.get("ANTHROPIC_BASE_URL"),
        model=env.get("MEMKERNEL_MODEL"),
        prices=env.get("MEMKERNEL_PRICES"),
        demo=env.get("MEMKERNEL_DEMO", "0") not in ("0", "false"),
        render=_one_of(env, "MEMKERNEL_RENDER", RENDER),
        sandbox_image=env.get("MEMKERNEL_SANDBOX_IMAGE"),
        docker_host=env.get("DOCKER_HOST"),
        docker_context=env.get("DOCKER_CONTEXT"),
        docker_config=env.get("DOCKER_CONFIG"),
        docker_api_version=env.get("DOCKER_API_VERSION"),
        docker_tls_verify="DOCKER_TLS_VERIFY" in env,
        docker_cert_path=env.get("DOCKER_CERT_PATH"),
        limits=Limits(
            memories_per_store=_count(env, "MEMKERNEL_MAX_MEMORIES", usual.memories_per_store),
            content_bytes=_count(env, "MEMKERNEL_MAX_CONTENT_BYTES", usual.content_bytes),
            stores_per_session=_count(env, "MEMKERNEL_MAX_STORES_PER_SESSION", usual.stores_per_session),
        ),
    )


_FOR_PROGRAMS = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX"),
)


def for_programs(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What programs need of the environment to be found and to start: a local sandbox gets this, and nothing else."""
    env = os.environ if environ is None else environ
    return {name: env[name] for name in _FOR_PROGRAMS if env.get(name)}


def _count(env: Mapping[str, str], name: str, usual: int) -> int:
    text = env.get(name, str(usual))
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInputError(f"{name}={text!r} is not a whole number of 1 or more")
    return int(text)


def _one_of(env: Mapping[str, str], name: str, values: Sequence[str]) -> str:
    """The variable's value; the first of them where it is unset."""
    text = env.get(name, values[0])
    if text not in values:
        raise InvalidInputError(f"{name}={text!r} is none of {', '.join(values)}")
    return text


def _seconds(env: Mapping[str, str], name: str, usual: float) -> float:
    text = env.get(name, str(usual))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise InvalidInputError(f"{name}={text!r} is not a number of seconds")
    return seconds


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a passwd entry
        return f"uid{os.getuid()}"
