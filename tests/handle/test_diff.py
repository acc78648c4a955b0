"""`mk.Diff`: two versions, what changed between them, and why a text may be missing (faults 10, 45)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter

from memkernel.errors import InvalidInputError
from memkernel.handle.diff import Diff
from memkernel.models import Actor, MemoryVersion, Operation

TIME = datetime(2026, 11, 30, 9, 21, tzinfo=UTC)
ANN = Actor("user_actor", "user_ann")


def version(ordinal: int, content: str | None, operation: Operation = "modified", path: str = "/a.md") -> MemoryVersion:
    size_bytes = None if content is None else len(content.encode())
    return MemoryVersion(
        id=f"memver_{ordinal}",
        memory_store_id="memstore_1",
        memory_id="mem_1",
        seq=ordinal,
        ordinal=ordinal,
        operation=operation,
        path=path,
        content=content,
        content_sha256=None if content is None else "0" * 64,
        content_size_bytes=size_bytes,
        created_at=TIME,
        created_by=ANN,
        redacted_at=None,
        redacted_by=None,
    )


FIRST = version(1, "SI\nbe brief\n", "created")
SECOND = version(2, "SI\nbe very brief\n")
DELETED = version(3, None, "deleted")
REDACTED: Any = replace(version(4, None), path=None, redacted_at=TIME, redacted_by=ANN)


def bundle(found: Diff) -> dict[str, str]:
    """What IPython would show as a cell's result."""
    formatter: Any = DisplayFormatter()
    data, _ = formatter.format(found)
    return data


def test_a_diff_is_a_unified_diff_with_the_versions_as_names() -> None:
    found = Diff.of("/a.md", FIRST, SECOND)
    assert str(found) == "\n".join(
        ["--- /a.md@1", "+++ /a.md@2", "@@ -1,2 +1,2 @@", " SI", "-be brief", "+be very brief"]
    )
    assert found.patch == str(found) + "\n"
    assert (found.added, found.removed) == (1, 1)
    assert (found.path, found.old, found.new) == ("/a.md", FIRST, SECOND)
    assert repr(found) == "<memkernel.Diff /a.md @1 → @2 +1 −1>"


def test_fault_45_one_bundle_carries_text_and_html_with_the_same_facts() -> None:
    """Fault 45."""
    data = bundle(Diff.of("/a.md", FIRST, SECOND))
    assert set(data) == {"text/plain", "text/html"}
    assert data["text/plain"] == str(Diff.of("/a.md", FIRST, SECOND))
    assert "@1 → @2 · +1 −1 in 1 place" in data["text/html"]
    assert "+ be <ins>very </ins>brief" in data["text/html"]


def test_a_first_version_comes_from_nothing() -> None:
    found = Diff.of("/a.md", None, FIRST)
    assert str(found).split("\n")[:2] == ["--- /dev/null", "+++ /a.md@1"]
    assert repr(found) == "<memkernel.Diff /a.md nothing → @1 +2 −0>"


def test_a_deletion_shows_what_went_and_who_did_it() -> None:
    found = Diff.of("/a.md", SECOND, DELETED)
    assert str(found).split("\n")[0] == "@3: deleted by user_ann 2026-11-30 09:21"
    assert str(found).split("\n")[-2:] == ["-SI", "-be very brief"]
    assert (found.added, found.removed) == (0, 2)
    assert "@3: deleted by user_ann 2026-11-30 09:21" in bundle(found)["text/html"]


@pytest.mark.parametrize(("old", "new"), [(REDACTED, SECOND), (SECOND, REDACTED), (None, REDACTED)])
def test_a_redacted_version_shows_its_reason_in_place_of_a_text(old: MemoryVersion | None, new: MemoryVersion) -> None:
    found = Diff.of("/a.md", old, new)
    gone = "its text is gone, but notebooks saved earlier keep what they showed"
    reason = f"@4: redacted by user_ann 2026-11-30 09:21; {gone}"
    assert found.text_diff is None
    assert str(found) == reason
    assert reason in bundle(found)["text/html"]
    assert (found.added, found.removed, found.patch) == (0, 0, "")


def test_a_rename_is_told_for_the_texts_do_not_show_it() -> None:
    found = Diff.of("/b.md", FIRST, replace(FIRST, ordinal=2, path="/b.md"))
    assert str(found) == "renamed: /a.md → /b.md\nno difference"
    assert found.patch == ""


def test_fault_10_a_crlf_file_shows_one_changed_line_and_its_patch_is_exact() -> None:
    """Fault 10."""
    found = Diff.of("/a.md", version(1, "a\r\nb\r\n"), version(2, "a\r\nc\r\n"))
    assert (found.added, found.removed) == (1, 1)
    assert "-b\r\n+c\r\n" in found.patch
    assert "-b⟨CR⟩\n+c⟨CR⟩" in str(found)


def test_what_would_steer_a_terminal_is_marked() -> None:
    found = Diff.of("/a.md", FIRST, version(2, "\x1b[2J\n"))
    assert "+⟨ESC⟩[2J" in str(found)
    assert "\x1b" not in "".join(bundle(found).values())


def test_the_shown_text_is_short_and_the_whole_is_a_string_away() -> None:
    found = Diff.of("/a.md", None, version(1, "x\n" * 2_000))
    assert len(bundle(found)["text/plain"].split("\n")) == 60
    assert len(str(found).split("\n")) == 2_003


def test_show_prints_the_text_where_nothing_else_is_registered(capsys: pytest.CaptureFixture[str]) -> None:
    found = Diff.of("/a.md", FIRST, SECOND)
    found.show()
    assert capsys.readouterr().out == f"{found}\n"


def test_a_version_without_its_content_cannot_be_compared() -> None:
    with pytest.raises(InvalidInputError, match="memver_2 came without its content"):
        Diff.of("/a.md", FIRST, replace(SECOND, content=None))
    assert Diff.of("/a.md", FIRST, replace(SECOND, content="")).removed == 2
