"""What kind of disk a directory lies on: a data directory that two machines open at once is destroyed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# 9p and drvfs are WSL's /mnt/c, fuse.* are Google Drive, sshfs and the like.
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afpfs|9p|drvfs|fuse(blk)?(\..*)?|vboxsf|vmhgfs|virtiofs|osxfuse|macfuse|gpfs|lustre"
)


def warnings_for(directory: Path) -> tuple[str, ...]:
    """Why this directory is a poor place for a database; empty on an ordinary local disk."""
    kind = filesystem_of(directory)
    if kind is None or not _SHARED.fullmatch(kind):
        return ()
    return (f"{directory} lies on {kind}: two machines that use it at once destroy the data",)


def filesystem_of(directory: Path) -> str | None:
    """The type of the filesystem that holds the directory (or its nearest existing parent); None where unknown."""
    mounts = dict(_mounts())
    return next((mounts[place] for place in (directory, *directory.parents) if place in mounts), None)


def _mounts() -> Iterator[tuple[Path, str]]:
    try:
        if sys.platform == "linux":
            return parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
        return parse_mount(subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout)
    except OSError:
        return iter(())


def parse_mountinfo(text: str) -> Iterator[tuple[Path, str]]:
    """(mount point, type) of each line of /proc/self/mountinfo; a later mount hides an earlier one."""
    for line in text.splitlines():
        where, _, what = line.partition(" - ")
        if what:
            yield Path(_unescape(where.split(" ")[4])), what.split(" ")[0]


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def parse_mount(text: str) -> Iterator[tuple[Path, str]]:
    """(mount point, type) of each line of macOS' mount: `/dev/disk3s5 on /System/Volumes/Data (apfs, local)`."""
    for found in re.finditer(r"^.* on (/.*) \((\w+)", text, re.MULTILINE):
        yield Path(found[1]), found[2]
