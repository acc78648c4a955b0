"""The sentences of memory_20250818, in two profiles (CONTRACT A.3, A.4, A.4.1).

`sdk`, the default, says what the official Python SDK's own memory tool says; `docs` what the documentation
of the tool recommends. Every `path` here is the caller's own spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

Profile = Literal["sdk", "docs"]
EditCommand = Literal["str_replace", "insert"]

MAX_LINES: Final = 999_999
_UNITS: Final = "BKMG"


class SdkWords:
    """What the official Python SDK 2.14.0 says."""

    hidden_names: frozenset[str] = frozenset()
    """Names that a listing leaves out, besides those that start with a dot."""

    checks_ranges = False
    """Whether a `view_range` that shows nothing, or counts from the end, is an error (CONTRACT A.6)."""

    # -- successes ---------------------------------------------------------------------------------

    def listing_header(self, path: str) -> str:
        return f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"

    def file_header(self, path: str) -> str:
        return f"Here's the content of {path} with line numbers:"

    def created(self, path: str) -> str:
        return f"File created successfully at: {path}"

    def replaced(self, snippet: str) -> str:
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def inserted(self, path: str) -> str:
        return f"The file {path} has been edited."

    def deleted(self, path: str) -> str:
        return f"Successfully deleted {path}"

    def renamed(self, old_path: str, new_path: str) -> str:
        return f"Successfully renamed {old_path} to {new_path}"

    def size(self, size_bytes: int) -> str:
        return sdk_size(size_bytes)

    # -- refusals ----------------------------------------------------------------------------------

    def nothing_to_view(self, path: str) -> str:
        return f"The path {path} does not exist. Please provide a valid path."

    def cannot_edit(self, command: EditCommand, path: str, *, is_directory: bool) -> str:
        return f"The path {path} is not a file." if is_directory else self.nothing_to_view(path)

    def nothing_to_move(self, path: str) -> str:
        """There is nothing to delete or rename."""
        return f"The path {path} does not exist"

    def already_exists(self, path: str) -> str:
        return f"File {path} already exists"

    def destination_exists(self, path: str) -> str:
        return f"The destination {path} already exists"

    def no_match(self, old_str: str, path: str) -> str:
        return f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."

    def many_matches(self, old_str: str, lines: Iterable[int]) -> str:
        where = ", ".join(map(str, lines))
        return (
            f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {where}. "
            "Please ensure it is unique"
        )

    def bad_insert_line(self, insert_line: int, line_count: int) -> str:
        return f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {line_count}]."

    def bad_view_range(self, start: int, end: int) -> str:
        return (
            f"Invalid `view_range` parameter: [{start}, {end}]. It should be [start, end] "
            "with 1 <= start <= end, or end -1."
        )

    def range_past_end(self, start: int, line_count: int) -> str:
        return f"view_range starts at line {start}, but the file has {line_count} lines."

    def too_many_lines(self, path: str) -> str:
        return f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines."

    def cannot_delete_root(self) -> str:
        return "Cannot delete the /memories directory itself"

    def cannot_rename_root(self) -> str:
        return "Cannot rename the /memories directory itself"

    def cannot_rename_inside(self, old_path: str, new_path: str) -> str:
        return f"Cannot rename {old_path} to a path inside itself: {new_path}"

    def cannot_rename_below(self, old_path: str, new_path: str, ancestor: str) -> str:
        return f"Cannot rename {old_path} to {new_path}: {ancestor} is not a directory"

    def moved_meanwhile(self, old_path: str, new_path: str) -> str:
        """Something stood in the way of a rename, and was gone when it was looked for."""
        return f"Cannot rename {old_path} to {new_path}: another change came in between. Please try again."

    def cannot_create_below(self, path: str, ancestor: str) -> str:
        return f"Cannot create {path}: {ancestor} is not a directory"


@lru_cache(maxsize=4_096)  # a store of 2,000 is listed in half the time
def sdk_size(size_bytes: int) -> str:
    """`0B`, `1023B`, `1K`, `1.0K`, `1.5K`, … (CONTRACT A.7)."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    power = min((size_bytes.bit_length() - 1) // 10, 3)
    unit = 1 << 10 * power
    return f"{size_bytes / unit:.1f}{_UNITS[power]}" if size_bytes % unit else f"{size_bytes // unit}{_UNITS[power]}"


class DocsWords(SdkWords):
    """What the tool's documentation recommends (CONTRACT A.4.1, the column Docs)."""

    hidden_names = frozenset({"node_modules"})
    checks_ranges = True

    def listing_header(self, path: str) -> str:
        return (
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        )

    def replaced(self, snippet: str) -> str:
        return f"The memory file has been edited.\n{snippet}"

    def size(self, size_bytes: int) -> str:
        text = sdk_size(size_bytes)
        return text if size_bytes < 1024 or "." in text else f"{text[:-1]}.0{text[-1]}"

    def cannot_edit(self, command: EditCommand, path: str, *, is_directory: bool) -> str:
        return (
            f"Error: The path {path} does not exist" if command == "insert" else f"Error: {self.nothing_to_view(path)}"
        )

    def nothing_to_move(self, path: str) -> str:
        return f"Error: {super().nothing_to_move(path)}"

    def already_exists(self, path: str) -> str:
        return f"Error: {super().already_exists(path)}"

    def destination_exists(self, path: str) -> str:
        return f"Error: {super().destination_exists(path)}"

    def bad_insert_line(self, insert_line: int, line_count: int) -> str:
        return (
            f"Error: Invalid `insert_line` parameter: {insert_line}. "
            f"It should be within the range of lines of the file: [0, {line_count}]"
        )


WORDS: Final[dict[Profile, SdkWords]] = {"sdk": SdkWords(), "docs": DocsWords()}
