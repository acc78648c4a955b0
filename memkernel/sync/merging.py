"""Three-way merges of what was edited both in a mount and in the store (SANDBOX.md, Decision 16)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from memkernel.store.mount_records import Heads, Texts
from memkernel.sync.plan import LocalChange, Merged
from memkernel.textmerge import merge


def merge_all(
    changes: Sequence[LocalChange], contents: Mapping[str, bytes], heads: Heads, texts: Texts, limit_bytes: int
) -> dict[str, Merged]:
    """What merging each of these edits with the store's comes to.

    Args:
        changes: edits of a `Decision.mergeable`.
        contents: the mount's texts.
        heads: the store.
        texts: reads versions.
        limit_bytes: a memory's limit; a merged text may be longer than both.
    """
    wanted = {change.base.version_id for change in changes if change.base}
    found = texts([*wanted, *(heads.by_path[change.path].version_id for change in changes)])
    merged: dict[str, Merged] = {}
    for change in changes:
        base = found.get(change.base.version_id) if change.base else None
        theirs = found.get(heads.by_path[change.path].version_id)
        merged[change.path] = _merge(base, contents[change.path], theirs, limit_bytes)
    return merged


def is_contained(base: bytes | None, ours: bytes, theirs: bytes | None) -> bool:
    """Whether the store's text has all that ours changed in the base: merging them again gives it."""
    if base is None or theirs is None:
        return False
    try:
        return merge(base.decode(), ours.decode(), theirs.decode()).text == theirs.decode()
    except UnicodeDecodeError:
        return False


def _merge(base: bytes | None, ours: bytes, theirs: bytes | None, limit_bytes: int) -> Merged:
    if base is None or theirs is None:
        return Merged(None, None, "the text that it was made from was redacted or pruned")
    text = merge(base.decode(), ours.decode(), theirs.decode()).text
    if text is None:
        return Merged(None, None, "the same lines were changed")
    content = text.encode()
    if len(content) > limit_bytes:
        return Merged(None, None, f"the two together have {len(content):,} bytes, the limit is {limit_bytes:,}")
    return Merged(content, hashlib.sha256(content).digest())
