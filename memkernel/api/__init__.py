"""The Memory API (CONTRACT B, C): the official SDKs' routes over this database, in process and over HTTP."""

from __future__ import annotations

from typing import Final

PORT: Final = 8765
"""Where it is served if nobody says otherwise."""
