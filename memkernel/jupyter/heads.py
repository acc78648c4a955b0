"""Which head of each path a person has been shown: a restore must not undo what they have not seen (fault 25)."""

from __future__ import annotations


class HeadsSeen:
    """The versions last shown as heads, by store and path."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}

    def note(self, memory_store_id: str, path: str, memory_version_id: str) -> None:
        """The person was shown this version as the head of this path, or made it."""
        self._seen[memory_store_id, path] = memory_version_id

    def forget(self, memory_store_id: str, path: str) -> None:
        """The person changed what lies at or below this path, and so knows more than was shown."""
        below = path.rstrip("/") + "/"
        gone = [key for key in self._seen if key[0] == memory_store_id and f"{key[1]}/".startswith(below)]
        for key in gone:
            del self._seen[key]

    def moved(self, memory_store_id: str, path: str, memory_version_id: str) -> bool:
        """Whether another version than this one was shown as the head of the path."""
        return self._seen.get((memory_store_id, path), memory_version_id) != memory_version_id

    def clear(self) -> None:
        """Forget everything."""
        self._seen.clear()
