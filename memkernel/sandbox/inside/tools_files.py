"""read, write and edit: files as UTF-8 text without any change of line ends, images and PDFs as base64."""

from __future__ import annotations

import base64
import errno
import os
import stat
import sys
from pathlib import Path
from typing import Any, Dict, Optional

from memkernel.sandbox.inside.tools_paths import Places, ToolError, file_error

TEXT_BYTES = 256 * 1024
IMAGE_BYTES = 5 * 1024 * 1024 // 4 * 3
"""5 MiB, the API's own limit, counts the base64."""
PDF_BYTES = 20 * 1024 * 1024
EDITED_BYTES = 64 * 1024 * 1024
MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
_PIECE = 64 * 1024

Answer = Dict[str, Any]
"""`text`; or `media_type` and `data`."""


def read(places: Places, given: Dict[str, Any]) -> Answer:
    """A file's text, or some lines of it; an image or a PDF as data."""
    path, view_range = given["file_path"], given.get("view_range")
    target = places.resolve("read", path)
    if view_range and len(view_range) != 2:
        raise ToolError("read: view_range must be [start_line, end_line]")
    try:
        size = _regular("read", target, path)
        media_type = MEDIA_TYPES.get(target.suffix.lower())
        if media_type is not None:
            if view_range:
                raise ToolError("read: view_range is not supported for image/PDF files")
            return _data(target, path, size, media_type)
        return {"text": _text(target, path, size, view_range)}
    except UnicodeDecodeError as error:
        raise ToolError(
            "read: %s: not valid UTF-8 text (binary files are only supported for image/PDF extensions)" % path
        ) from error
    except OSError as error:
        raise file_error("read", path, error) from error


def write(places: Places, given: Dict[str, Any]) -> Answer:
    """Write a file; folders on the way are made."""
    path, content = given["file_path"], given["content"]
    target = places.resolve("write", path)
    places.refuse_read_only("write", target, path)
    try:
        _refuse_special("write", target, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8"))
    except OSError as error:
        raise file_error("write", path, error) from error
    return {"text": "wrote %d bytes to %s" % (len(content), path)}


def edit(places: Places, given: Dict[str, Any]) -> Answer:
    """Replace a text in a file: one that occurs once, or each of them."""
    path, old, new, everywhere = given["file_path"], given["old_string"], given["new_string"], given.get("replace_all")
    target = places.resolve("edit", path)
    places.refuse_read_only("edit", target, path)
    text = _editable(target, path)
    count = text.count(old)
    if count == 0:
        raise ToolError("edit: old_string not found in %s" % path)
    if not everywhere and count > 1:
        raise ToolError("edit: old_string appears %d times in %s (must be unique)" % (count, path))
    replaced = count if everywhere else 1
    try:
        if len(text) + replaced * (len(new) - len(old)) > EDITED_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        target.write_bytes(text.replace(old, new).encode("utf-8"))
    except OSError as error:
        raise file_error("edit", path, error) from error
    return {"text": "edited %s (%d replacement(s))" % (path, replaced)}


def _editable(target: Path, path: str) -> str:
    try:
        size = _regular("edit", target, path)
        if size > TEXT_BYTES:
            raise ToolError(
                "edit: %s is %d bytes, exceeds %d-byte limit. "
                "The edit tool loads the whole file and cannot modify a file this large." % (path, size, TEXT_BYTES)
            )
        return target.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError("edit: %s: not valid UTF-8 text (cannot edit binary files)" % path) from error
    except OSError as error:
        raise file_error("edit", path, error) from error


def _regular(tool: str, target: Path, path: str) -> int:
    """The file's size. Nothing else is opened: a FIFO would hold whoever does."""
    found = os.stat(str(target))
    if not stat.S_ISREG(found.st_mode):
        raise ToolError("%s: %s: not a regular file" % (tool, path))
    return found.st_size


def _refuse_special(tool: str, target: Path, path: str) -> None:
    """A FIFO or a device; the system itself says what is wrong with a folder."""
    try:
        mode = os.stat(str(target)).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ToolError("%s: %s: not a regular file" % (tool, path))


def _data(target: Path, path: str, size: int, media_type: str) -> Answer:
    limit = PDF_BYTES if media_type == "application/pdf" else IMAGE_BYTES
    if size > limit:
        raise ToolError("read: %s is %d bytes, exceeds %d-byte limit for image/PDF files." % (path, size, limit))
    return {"media_type": media_type, "data": base64.standard_b64encode(target.read_bytes()).decode("ascii")}


def _text(target: Path, path: str, size: int, view_range: Optional[Any]) -> str:
    if size <= TEXT_BYTES:
        text = target.read_bytes().decode("utf-8")
        if not view_range:
            return text
        lines = text.split("\n")
        end = view_range[1] if view_range[1] > 0 else len(lines)
        return "\n".join(lines[max(0, view_range[0] - 1) : end])
    if view_range:
        return _Lines(path, view_range[0], view_range[1]).of(target)
    raise ToolError(
        "read: %s is %d bytes, exceeds %d-byte limit. "
        "Use the view_range parameter to read specific line ranges, e.g. view_range: [1, 500]."
        % (path, size, TEXT_BYTES)
    )


class _Lines:
    """Some lines of a file that is too large to be read whole."""

    def __init__(self, path: str, start: int, end: int) -> None:
        self._path, self._asked = path, [start, end]
        self._start = max(0, start - 1)
        self._end = end if end > 0 else sys.maxsize
        self._line = 0
        self._collected = bytearray()

    def of(self, target: Path) -> str:
        """The lines; reading ends with the last of them."""
        if self._start < self._end:
            with target.open("rb") as file:
                while self._line < self._end:
                    piece = file.read(_PIECE)
                    if not piece:
                        break
                    self._add(piece)
        return self._collected.decode("utf-8")

    def _add(self, piece: bytes) -> None:
        at = 0
        while at < len(piece) and self._line < self._end:
            newline = piece.find(b"\n", at)
            if self._line >= self._start:
                self._collect(piece[at : newline if newline >= 0 else len(piece)], newline >= 0)
            if newline < 0:
                return
            self._line += 1
            at = newline + 1

    def _collect(self, line: bytes, is_whole: bool) -> None:
        self._collected += line
        if is_whole and self._line + 1 < self._end:
            self._collected += b"\n"
        if len(self._collected) > TEXT_BYTES:
            raise ToolError(self._too_much())

    def _too_much(self) -> str:
        if self._end - self._start == 1:
            return (
                "read: line %d of %s alone exceeds %d-byte limit. The read tool cannot return part of a line, "
                "so view_range cannot narrow this further." % (self._start + 1, self._path, TEXT_BYTES)
            )
        return "read: view_range %r of %s exceeds %d-byte limit. Narrow the view_range to read a smaller portion." % (
            self._asked,
            self._path,
            TEXT_BYTES,
        )
