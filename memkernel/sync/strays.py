"""The files that editors leave for a moment, or after a crash: the one rule by which a sync passes over them."""

from __future__ import annotations

import re
from typing import Final

MARKER_PATH: Final = "/.anthropic-memory-store"
"""The SDK's own marker of a memory folder; never saved (CONTRACT D.7)."""

_PROBE_PREFIX: Final = "/.memkernel-probe-"  # a sandbox's own, at its start

_STRAY: Final = re.compile(
    r"4913"  # vim tries whether it can write
    r"|\.(?:.*\.)?sw[a-z]"  # vim and nano
    r"|.+~"  # backups of vim and Emacs
    r"|#.+#|\.#.+"  # Emacs: autosave and lock
    r"|.+___jb_(?:tmp|old)___"  # JetBrains
    r"|\.goutputstream-[A-Z0-9]{6}"  # GTK
    r"|\.~lock\..+#"  # LibreOffice
    r"|\.fs-[0-9a-f]+\.tmp"  # the SDK's file store
    r"|\.nfs[0-9a-f]{8,}"  # NFS: removed while open
    r"|\.DS_Store"
)


def is_stray(path: str) -> bool:
    """Whether a path has the name of an editor's temporary file, or lies in `.ipynb_checkpoints`.

    Such a file is neither saved nor reported, unless the store has it already: then it is a memory like any other.
    """
    *folders, name = path.split("/")
    if path == MARKER_PATH or path.startswith(_PROBE_PREFIX):
        return True
    return ".ipynb_checkpoints" in folders or _STRAY.fullmatch(name) is not None
