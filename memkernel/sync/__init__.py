"""A directory on disk <-> one memory store (CONTRACT D). Knows no Docker."""
