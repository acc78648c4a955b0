"""The folder of changes that were not saved."""

from __future__ import annotations

import errno
import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import InvalidInputError, NotFoundError
from memkernel.sync import rejected
from memkernel.sync.rejected import RejectedFolder, RejectedRecord, record

STORE = "memstore_00000000000000000000000001"
OTHER = "memstore_00000000000000000000000002"


@pytest.fixture
def folder(tmp_path: Path) -> RejectedFolder:
    return RejectedFolder(tmp_path / "home" / "rejected")


def change(path: str = "/a.md", content: bytes | None = b"text\n", **facts: Any) -> RejectedRecord:
    facts = {"memory_store_id": STORE, "session_id": "sesn_1", "reason": "was edited on both sides", **facts}
    return record(path=path, operation="deleted" if content is None else "modified", content=content, **facts)


@given(path=st.text(), content=st.none() | st.binary(), reason=st.text())
def test_a_record_comes_back_as_it_was(tmp_path_factory: Any, path: str, content: bytes | None, reason: str) -> None:
    folder = RejectedFolder(tmp_path_factory.getbasetemp() / "rejected")
    one = change(path, content, reason=reason, base_version_id="memver_1", base_sha256="0" * 64)
    folder.put(one)
    assert folder.get(one.id) == one
    assert folder.remove(one.id)


def test_nothing_is_made_before_the_first_change(folder: RejectedFolder) -> None:
    assert folder.list() == []
    assert folder.expire() == folder.erase(STORE) == 0
    assert not folder.remove(change().id)
    folder.put()
    assert not folder.directory.exists()


def test_records_are_read_by_their_owner_only(folder: RejectedFolder) -> None:
    folder.put(change())
    (store,) = folder.directory.iterdir()
    (file,) = store.iterdir()
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (folder.directory, store, file)]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("count", [1, 50])
def test_many_are_kept_like_one(folder: RejectedFolder, count: int) -> None:
    records = [change(f"/{number:02}.md", b"%d" % number) for number in range(count)]
    folder.put(*records)
    assert folder.list() == records


def test_the_same_text_at_the_same_path_is_one_record(folder: RejectedFolder) -> None:
    folder.put(change(), change(reason="again"))
    folder.put(change(session_id="sesn_2"), change("/b.md"), change(content=b""), change(content=None))
    assert len(folder.list()) == 5


def test_a_listing_is_of_a_store_a_session_or_a_path(folder: RejectedFolder) -> None:
    one, two, three = change(), change("/b.md", session_id="sesn_2"), change(memory_store_id=OTHER)
    folder.put(one, two, three)
    assert folder.list(memory_store_id=STORE) == [one, two]
    assert folder.list(session_id="sesn_2") == [two]
    assert folder.list(path="/a.md") == [one, three]
    assert folder.list(memory_store_id=OTHER, path="/b.md") == []


@pytest.mark.parametrize("name", ["rej_" + "0" * 32, "../secret", "", "rej_", "."])
def test_what_is_not_there_is_not_found(folder: RejectedFolder, name: str) -> None:
    folder.put(change())
    (folder.directory / "secret").write_text("{}\n")
    with pytest.raises(NotFoundError, match="no rejected change"):
        folder.get(name)
    assert not folder.remove(name)
    assert not folder.has(name)


def test_a_store_whose_id_is_a_path_is_refused(folder: RejectedFolder) -> None:
    with pytest.raises(InvalidInputError):
        folder.put(change(memory_store_id="../elsewhere"))


def test_files_of_others_and_broken_ones_are_passed_over(folder: RejectedFolder) -> None:
    one = change()
    folder.put(one)
    (folder.directory / STORE / ("rej_" + "1" * 32)).write_bytes(b"garbage")
    (folder.directory / STORE / ("rej_" + "2" * 32)).mkdir()
    (folder.directory / "README").write_text("mine")
    assert folder.list() == [one]


def test_what_is_older_than_30_days_expires(folder: RejectedFolder) -> None:
    one = change()
    folder.put(one)
    partial = folder.directory / STORE / ".partial-x"
    partial.write_bytes(b"half")
    os.utime(partial, (0, 0))
    assert folder.expire(now=one.at + timedelta(days=30)) == 0
    assert not partial.exists()
    assert folder.expire(now=one.at + timedelta(days=30, seconds=1)) == 1
    assert folder.list() == []
    assert one.at.tzinfo is UTC
    assert one.at <= datetime.now(UTC)


def test_erasure_reaches_a_store_or_texts_and_what_was_made_from_them(folder: RejectedFolder) -> None:
    plain, made = change(), change("/b.md", b"other\n", base_sha256="f" * 64)
    untouched, elsewhere = change("/c.md", b"third\n"), change(memory_store_id=OTHER)
    folder.put(plain, made, untouched, elsewhere)
    assert folder.erase(STORE, {str(plain.sha256), "f" * 64}) == 2
    assert folder.list() == [untouched, elsewhere]
    assert folder.erase(STORE) == 1
    assert folder.list() == [elsewhere]


@pytest.mark.parametrize("count", [3, 20])
def test_on_a_full_disk_nothing_half_written_is_left(
    folder: RejectedFolder, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rejected.os, "fsync", refuse)
    monkeypatch.setattr(rejected, "write_all_back", refuse)
    with pytest.raises(OSError, match="No space"):
        folder.put(*(change(f"/{number}.md") for number in range(count)))
    assert list((folder.directory / STORE).iterdir()) == []


def test_many_threads_share_a_folder(folder: RejectedFolder) -> None:
    def put(number: int) -> None:
        folder.put(*(change(f"/{number}/{n}.md") for n in range(20)))
        folder.list()

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folder.list()) == 160
