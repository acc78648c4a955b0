"""Limits, and what the environment says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

DEFAULT_WORKSPACE: Final = "default"
"""Whose stores, sessions and keys are where nobody names a workspace; migration 1 gives it to every row."""


RENDER: Final = ("auto", "widget", "static")
"""How a notebook shows things: `auto` is a widget where it can show one, `static` text and HTML alone."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The capacities of CONTRACT 0.3, row 5."""

    memories_per_store: int = 2_000
    content_bytes: int = 102_400
    stores_per_session: int = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. `config.load` fills it; lower floors are handed plain values."""

    dsn: str | None = None
    home: str | None = None
    pg_bin: str | None = None
    pg_user: str | None = None
    linger_s: float = 60.0
    user: str = "unknown"
    api_key: str | None = field(default=None, repr=False)
    api_base_url: str | None = None
    model: str | None = None
    prices: str | None = None
    demo: bool = False
    render: str = "auto"
    sandbox_image: str | None = None
    docker_host: str | None = None
    docker_context: str | None = None
    docker_config: str | None = None
    docker_api_version: str | None = None
    docker_tls_verify: bool = False
    docker_cert_path: str | None = None
    limits: Limits = field(default_factory=Limits)
