from __future__ import annotations

from tests.sync.mounted import mounter

__all__ = ["mounter"]
