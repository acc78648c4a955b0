"""Where sessions lie: one installation id, private folders, locks that live as long as their process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

import memkernel as mk
from memkernel import errors, ids
from memkernel.runtime import Home, folders, homes
from memkernel.runtime.folders import Note, SessionFolder
from tests.fix_sandbox import MakeBox

MOUNT = "/mnt/memory/team-notes"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def note(home: Home) -> Note:
    session = ids.mint("sesn")
    data = str(home.sessions / session)
    return Note(session, "a database", "local", data, folders.host_name(), os.getpid(), {"notes": "memstore_x"})


@pytest.fixture
def folder(home: Home, note: Note) -> Iterator[SessionFolder]:
    made = folders.create(home, note)
    yield made
    made.release()


def names(home: Home) -> list[str]:
    return sorted(os.listdir(home.sessions))


# -- the installation ------------------------------------------------------------------------------


def test_many_first_sandboxes_agree_on_the_installation(home: Home) -> None:
    code = (
        "from memkernel.runtime import Home; from pathlib import Path;"
        f" print(Home(Path({str(home.directory)!r})).installation_id())"
    )
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(subprocess.check_output, [sys.executable, "-c", code]) for _ in range(6)]
    assert {one.result() for one in asked} == {f"{home.installation_id()}\n".encode()}
    assert len(home.installation_id()) == 16
    assert names(home) == []


@pytest.mark.parametrize("is_cut_off", [False, True], ids=["new", "cut off"])
def test_nobody_names_an_installation_that_has_just_been_named(tmp_path: Path, is_cut_off: bool) -> None:
    """Again and again, for the moment between a look and what follows is short; also where a file was left empty."""
    start = Barrier(6)

    def ask(home: Home) -> str:
        start.wait()
        return home.installation_id()

    with ThreadPoolExecutor(6) as pool:
        for number in range(150):
            home = Home(tmp_path / str(number))
            home.prepare()
            if is_cut_off:
                (home.directory / "installation").touch()
            told = set(pool.map(ask, [home] * 6))
            assert told == {home.installation_id()}


def test_an_installation_that_a_full_disk_left_empty_is_named_anew(home: Home) -> None:
    home.directory.mkdir()
    (home.directory / "installation").touch()
    assert home.installation_id() == home.installation_id() != ""


def test_the_folder_of_the_sessions_is_private(home: Home) -> None:
    home.directory.mkdir()
    home.sessions.mkdir(0o755)
    home.prepare()
    assert stat.S_IMODE(home.sessions.stat().st_mode) == 0o700


def test_a_link_in_its_place_is_refused(home: Home, tmp_path: Path) -> None:
    home.directory.mkdir()
    (tmp_path / "elsewhere").mkdir()
    home.sessions.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(errors.MountError, match="sessions"):
        home.prepare()


@pytest.mark.as_root
def test_another_accounts_folder_in_its_place_is_refused(home: Home) -> None:
    home.directory.mkdir()
    home.sessions.mkdir()
    os.chown(home.sessions, 65_534, 65_534)
    with pytest.raises(errors.MountError, match="another account"):
        home.prepare()


# -- the mounts' place -----------------------------------------------------------------------------


def test_mounts_lie_in_the_sessions_folder_on_a_disk_of_ones_own(home: Home, note: Note) -> None:
    assert homes.place_of_mounts(home, note.session_id, 1) == home.sessions / note.session_id


def test_mounts_lie_on_a_memory_file_system_where_the_home_is_on_a_networks_disk(
    home: Home, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "warnings_for", _shared)
    place = homes.place_of_mounts(home, note.session_id, 1)
    assert place.parent == Path(f"/dev/shm/memkernel-{os.geteuid()}")
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    too_much = 1 << 50
    assert homes.place_of_mounts(home, note.session_id, too_much) == home.sessions / note.session_id


def _shared(directory: Path) -> tuple[str, ...]:
    return (f"{directory} is shared",)


def test_a_sandbox_on_a_memory_file_system_saves_all_and_leaves_nothing(
    *, sandbox_image: str, notes: mk.Store, boxes: MakeBox, docker_engine: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "warnings_for", _shared)
    notes.write("/a.md", "one")
    box = boxes(notes)
    data = Path(f"/dev/shm/memkernel-{os.geteuid()}") / box.id
    assert (data / "mnt/memory/team-notes/a.md").read_text() == "one"
    mapped = f"""
import mmap
file = open('{MOUNT}/a.md', 'r+b')
text = mmap.mmap(file.fileno(), 3)
text[:] = b'two'
"""
    box.run(mapped)
    box.run("text[:] = b'six'")
    assert notes.read("/a.md") == "six"
    box.stop()
    assert not data.exists()


# -- locks and notes -------------------------------------------------------------------------------


def test_a_folder_is_alive_as_long_as_its_lock_is_held(home: Home, folder: SessionFolder, note: Note) -> None:
    assert folders.is_alive(home, note.session_id)
    assert folders.take(home, note.session_id) is None
    assert folders.dead_sessions(home) == []
    folder.release()
    assert not folders.is_alive(home, note.session_id)
    assert folders.dead_sessions(home) == [note.session_id]
    taken = folders.take(home, note.session_id)
    assert taken is not None
    assert taken.note == note
    taken.release()


def test_a_dead_folder_is_taken_by_one_alone(home: Home, folder: SessionFolder, note: Note) -> None:
    folder.release()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(folders.take, home, note.session_id) for _ in range(8)]
    taken = [one for each in asked if (one := each.result())]
    assert len(taken) == 1
    taken[0].release()


def test_a_folder_that_is_removed_is_gone_with_its_mounts(home: Home, folder: SessionFolder) -> None:
    folder.make_mount("notes", (os.geteuid(), os.getegid()))
    folder.remove()
    assert names(home) == []


def test_a_removal_that_was_killed_is_ended_and_never_looks_like_a_session(
    home: Home, folder: SessionFolder, note: Note
) -> None:
    (home.sessions / note.session_id).rename(home.sessions / ".old-1")
    folder.release()
    assert list(folders.notes(home)) == []
    folders.sweep(home)
    assert names(home) == []


def test_what_is_being_made_or_removed_now_is_not_swept(home: Home, folder: SessionFolder, note: Note) -> None:
    (home.sessions / note.session_id).rename(home.sessions / ".new-1")
    folders.sweep(home)
    assert names(home) == [".new-1"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 2}', "\0"])
def test_a_note_that_is_none_is_no_session(home: Home, folder: SessionFolder, note: Note, text: str) -> None:
    (folder.path / "session.json").write_text(text)
    folder.release()
    assert list(folders.notes(home)) == []
    assert folders.take(home, note.session_id) is None
    assert names(home) == [note.session_id]  # of another version, perhaps


def test_a_note_is_replaced_whole(home: Home, folder: SessionFolder, note: Note) -> None:
    folder.rewrite(replace(note, owner=(1000, 1000)))
    assert folders.read_note(home.sessions / note.session_id) == replace(note, owner=(1000, 1000))
