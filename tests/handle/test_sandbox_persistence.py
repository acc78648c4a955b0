"""CONTRACT F.16 on a real Docker engine, by its numbers: what cells do to files is what the store holds.

F.257 and F.259 are in tests/runtime/test_killed.py.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

import memkernel as mk
from memkernel import errors
from memkernel.models import CellResult, StoreReport, SyncReport
from memkernel.sandbox.engine import Engine
from tests.fix_sandbox import MakeBox

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")

MOUNT = "/mnt/memory/team-notes"


def ran(result: CellResult) -> str:
    """The output of a cell that went well."""
    assert result.status == "ok", result.stderr or result.error
    return result.stdout


def of(report: SyncReport | None) -> StoreReport:
    """The report of the only store."""
    assert report is not None
    (store,) = report.stores
    return store


def paths(versions: tuple[mk.MemoryVersion, ...]) -> list[str | None]:
    return [version.path for version in versions]


def texts(store: mk.Store) -> dict[str, str]:
    """All that a store holds."""
    return {memory.path: store.read(memory.path) for memory in store.ls("/", depth=0) if isinstance(memory, mk.Memory)}


def versions(store: mk.Store) -> int:
    return len(store.log())


# -- before and after a cell -----------------------------------------------------------------------


def test_f243_at_the_start_the_mount_holds_exactly_the_memories(notes: mk.Store, boxes: MakeBox) -> None:
    held = {
        "/a.md": b"one\n",
        "/crlf.txt": b"a\r\nb\r\n",
        "/deep/er/no-newline": b"x",
        "/empty": b"",
        "/größe/naïve ☃.md": "über\n".encode(),
        "/large": b"0123456789" * 10_000,
    }
    for path, content in held.items():
        notes.write(path, content)
    code = f"""
import hashlib, json, os
found = {{}}
for folder, _, names in os.walk({MOUNT!r}):
    for name in names:
        path = os.path.join(folder, name)
        found[path[len({MOUNT!r}):]] = hashlib.sha256(open(path, "rb").read()).hexdigest()
print(json.dumps(found))
"""
    found = json.loads(ran(boxes(notes).run(code)))
    assert found == {path: hashlib.sha256(content).hexdigest() for path, content in held.items()}


def test_f244_even_root_cannot_write_below_a_read_only_mount(
    notes: mk.Store, boxes: MakeBox, docker_engine: Engine
) -> None:
    notes.write("/a.md", "kept")
    box = boxes(mk.read_only(notes))
    (container,) = containers(docker_engine, box)
    assert "Read-only file system" in as_root(docker_engine, container, f"echo x > {MOUNT}/new; rm {MOUNT}/a.md")
    result = box.run(f"open('{MOUNT}/a.md', 'w')")
    assert result.error is not None
    assert "Read-only file system" in result.error.evalue
    assert texts(notes) == {"/a.md": "kept"}
    assert versions(notes) == 1


def containers(engine: Engine, box: mk.Sandbox) -> list[str]:
    """The containers of a sandbox's session."""
    return [container for container, _ in engine.labelled(f"org.memkernel.session={box.id}")]


def as_root(engine: Engine, container: str, command: str) -> str:
    """What a shell of root's in the container says."""
    import docker

    with docker.APIClient(engine.address.host) as api:
        made: Any = api.exec_create(container, ["sh", "-c", command], user="0:0")  # pyright: ignore[reportUnknownMemberType]  # partly typed
        output: Any = api.exec_start(made["Id"])  # pyright: ignore[reportUnknownMemberType]  # partly typed
        return output.decode()


def test_f245_files_become_versions_by_the_session(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/edited.md", "old")
    notes.write("/removed.md", "gone")
    result = docker_box.bash(f"cd {MOUNT}; echo new > new.md; echo edit > edited.md; rm removed.md")
    ran(result)
    report = of(result.report)
    assert (paths(report.created), paths(report.modified), paths(report.deleted)) == (
        ["/new.md"],
        ["/edited.md"],
        ["/removed.md"],
    )
    assert texts(notes) == {"/new.md": "new\n", "/edited.md": "edit\n"}
    for made in (*report.created, *report.modified, *report.deleted):
        assert made.created_by == docker_box.actor
        assert notes.version(None, made.id).created_by == docker_box.actor


def test_f246_the_changes_of_a_cell_are_one_transaction(dsn: str, docker_box: mk.Sandbox) -> None:
    ran(docker_box.bash(f"cd {MOUNT}; for n in 1 2 3 4 5; do echo $n > $n.md; done"))
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT xmin::text) FROM memkernel.memory_versions")
        assert found.fetchone() == (5, 1)


def test_f247_unchanged_files_make_no_versions(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "a")
    ran(docker_box.run(f"print(open('{MOUNT}/a.md').read())"))
    ran(docker_box.run("1 + 1"))
    assert versions(notes) == 1


def test_f248_identical_bytes_make_no_version(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "a")
    ran(docker_box.bash(f"printf a > {MOUNT}/b; mv {MOUNT}/b {MOUNT}/a.md; touch {MOUNT}/a.md"))
    assert versions(notes) == 1


def test_f249_a_remote_edit_is_on_disk_before_the_next_cell(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "one")
    assert ran(docker_box.bash(f"cat {MOUNT}/a.md")) == "one"
    notes.write("/a.md", "two")
    assert ran(docker_box.bash(f"cat {MOUNT}/a.md")) == "two"


def test_f250_remote_renames_and_deletions_are_mirrored(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    for path in ("/a.md", "/b/c.md", "/d.md"):
        notes.write(path, path)
    ran(docker_box.bash("true"))
    notes.rename("/b", "/x/y")
    notes.delete("/d.md")
    assert ran(docker_box.bash(f"cd {MOUNT}; find . -type f | sort")) == "./a.md\n./x/y/c.md\n"


# -- conflicts -------------------------------------------------------------------------------------


def conflicting(notes: mk.Store, box: mk.Sandbox, ours: str, theirs: str) -> errors.SyncConflictError:
    """A cell that runs `ours` while somebody else does `theirs`: `write PATH TEXT` or `delete PATH`."""
    operation, path, *text = theirs.split(" ", 2)

    def meanwhile(_: object) -> None:
        if operation == "delete":
            notes.delete(path)
        else:
            notes.write(path, text[0])

    with pytest.raises(errors.SyncConflictError) as caught:
        box.bash(f"cd {MOUNT}; echo ready; sleep 0.5; {ours}", on_output=meanwhile)
    return caught.value


def test_f251_a_conflict_is_an_error_and_none_of_the_cell_is_stored(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "base")
    error = conflicting(notes, docker_box, "echo ours > a.md; echo new > new.md", "write /a.md theirs")
    assert error.result.status == "ok"
    assert error.result.stdout == "ready\n"
    assert [conflict.path for conflict in of(error.report).conflicts] != []
    assert texts(notes) == {"/a.md": "theirs"}


def test_f252_after_a_conflict_the_mount_is_the_store_and_the_next_cell_works(
    notes: mk.Store, docker_box: mk.Sandbox
) -> None:
    notes.write("/a.md", "base")
    conflicting(notes, docker_box, "echo ours > a.md; echo new > new.md; rm -f gone", "write /a.md theirs")
    assert ran(docker_box.bash(f"cd {MOUNT}; ls; cat a.md")) == "a.md\ntheirs"
    assert ran(docker_box.bash(f"echo again > {MOUNT}/a.md; echo ok")) == "ok\n"
    assert texts(notes) == {"/a.md": "again\n"}


def test_f253_the_texts_that_were_put_aside_are_there(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "base")
    conflicting(notes, docker_box, "echo ours > a.md; echo new > new.md", "write /a.md theirs")
    aside = {change.path: change for change in docker_box.rejected}
    assert {path: change.content for path, change in aside.items()} == {"/a.md": b"ours\n", "/new.md": b"new\n"}
    assert aside["/a.md"].diff().patch.endswith("-theirs\n\\ No newline at end of file\n+ours\n")
    aside["/new.md"].apply()
    assert docker_box.resolve("/a.md", "both") == "/a.conflict.md"
    assert texts(notes) == {"/a.md": "theirs", "/a.conflict.md": "ours\n", "/new.md": "new\n"}
    assert docker_box.rejected == []


def test_f254_the_same_bytes_on_both_sides_are_no_conflict(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "base")
    result = docker_box.bash(
        f"echo ready; sleep 0.5; printf same > {MOUNT}/a.md", on_output=lambda _: notes.write("/a.md", "same") and None
    )
    assert of(result.report).conflicts == ()
    assert versions(notes) == 2


def test_f255_a_deletion_does_not_undo_a_remote_edit(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a.md", "base")
    notes.write("/b.md", "other")
    conflicting(notes, docker_box, "rm a.md", "write /a.md theirs")
    assert texts(notes)["/a.md"] == "theirs"
    assert ran(docker_box.bash(f"cat {MOUNT}/a.md")) == "theirs"


# -- crashes, walls --------------------------------------------------------------------------------


def test_f256_what_was_written_after_a_write_back_is_stored_before_the_next_cell(
    notes: mk.Store, docker_box: mk.Sandbox
) -> None:
    ran(docker_box.bash(f"(sleep 0.7; echo late > {MOUNT}/late.md) >/dev/null 2>&1 &"))
    time.sleep(1.2)
    result = docker_box.run("1 + 1")
    assert paths(of(result.report).created) == ["/late.md"]
    assert texts(notes) == {"/late.md": "late\n"}


def data_of(box: mk.Sandbox, home: Path) -> Path:
    """Where a session's mounts are."""
    return Path(json.loads((home / "sessions" / box.id / "session.json").read_text())["data"])


def test_f258_baseline_and_nonce_are_not_in_the_container(docker_box: mk.Sandbox, sandbox_home: Path) -> None:
    nonce = (data_of(docker_box, sandbox_home) / "nonce" / "team-notes").read_text().strip()
    assert nonce
    found = ran(docker_box.bash(f"grep -rlF {nonce} /mnt /home /tmp /run /etc 2>/dev/null; ls -A /mnt/memory {MOUNT}"))
    assert found == f"/mnt/memory:\nteam-notes\n\n{MOUNT}:\n"


# -- what no memory can be -------------------------------------------------------------------------


def test_f260_what_cannot_be_a_memory_is_refused_alone(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    result = docker_box.bash(
        f"cd {MOUNT}; echo good > good.md; ln -s good.md link; mkfifo pipe; head -c 102401 /dev/zero > large;"
        " printf '\\377' > binary"
    )
    ran(result)
    report = of(result.report)
    assert {file.path for file in report.refused} == {"/link", "/pipe", "/large", "/binary"}
    assert all(file.reason for file in report.refused)
    assert report.ok
    assert texts(notes) == {"/good.md": "good\n"}


def test_f261_a_link_to_a_file_of_the_host_shows_nothing(
    notes: mk.Store, docker_box: mk.Sandbox, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the host's own")
    docker_box.bash(
        f"cd {MOUNT}; ln -s {secret} s; ln -s /etc/passwd p; ln -s {tmp_path} f; ln -s /proc/self/environ e"
    )
    docker_box.sync()
    assert texts(notes) == {}
    assert docker_box.rejected == []


def test_f262_deleting_all_is_held_back_unless_it_is_allowed(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    for name in "abc":
        notes.write(f"/{name}.md", name)
    held = of(docker_box.bash(f"rm -r {MOUNT}/*").report)
    assert held.held_back is not None
    assert set(held.held_back.paths) == {"/a.md", "/b.md", "/c.md"}
    assert ran(docker_box.bash(f"cat {MOUNT}/*")) == "abc"
    docker_box.apply_held_back()
    assert texts(notes) == {}
    for name in "abc":
        notes.write(f"/{name}.md", name)
    ran(docker_box.bash("true"))
    ran(docker_box.bash(f"rm -r {MOUNT}/*", allow_wipe=True))
    assert texts(notes) == {}


def test_f263_a_file_gives_way_to_a_folder_of_its_name(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    notes.write("/a", "file")
    ran(docker_box.bash(f"cd {MOUNT}; rm a; mkdir a; echo below > a/b.md"))
    assert texts(notes) == {"/a/b.md": "below\n"}


def test_f264_beyond_the_limit_nothing_is_stored(
    dsn: str, sandbox_home: Path, boxes: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_MAX_MEMORIES", "3")
    with mk.connect(dsn) as connection:
        small = connection.store("Team notes", create=True)
        small.write("/a.md", "a")
        box = boxes(small)
        with pytest.raises(errors.SyncConflictError) as caught:
            box.bash(f"cd {MOUNT}; for n in 1 2 3; do echo $n > $n.md; done")
        assert str(caught.value).startswith(f"{MOUNT}/1.md was not saved: the memory store would hold more than 3")
        assert str(caught.value).endswith("; put aside with 2 more")
        assert texts(small) == {"/a.md": "a"}
        assert len(box.rejected) == 3
        assert ran(box.bash(f"ls {MOUNT}; echo one > {MOUNT}/1.md")) == "a.md\n"
        assert texts(small) == {"/a.md": "a", "/1.md": "one\n"}
        box.stop()


# -- the life of a session -------------------------------------------------------------------------


def test_f265_a_cell_that_fails_or_takes_too_long_is_written_back(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    failed = docker_box.run(f"open('{MOUNT}/failed.md', 'w').write('x'); 1 / 0")
    assert failed.status == "error"
    late = docker_box.run(f"open('{MOUNT}/late.md', 'w').write('y')\nimport time\ntime.sleep(60)", timeout_s=1)
    assert late.status == "timeout"
    assert texts(notes) == {"/failed.md": "x", "/late.md": "y"}


def test_f266_the_last_edits_are_stored_before_the_container_goes(
    notes: mk.Store, docker_box: mk.Sandbox, docker_engine: Engine, sandbox_home: Path
) -> None:
    ran(docker_box.bash(f"(sleep 0.3; echo last > {MOUNT}/last.md) >/dev/null 2>&1 &"))
    time.sleep(0.8)
    report = docker_box.stop()
    assert paths(of(report).created) == ["/last.md"]
    assert texts(notes) == {"/last.md": "last\n"}
    assert containers(docker_engine, docker_box) == []
    assert list((sandbox_home / "sessions").iterdir()) == []
    assert notes.connection.database.sessions.retrieve(docker_box.id).status == "terminated"


def test_f267_two_sessions_see_each_others_changes_at_their_next_cell(
    notes: mk.Store, docker_box: mk.Sandbox, boxes: MakeBox
) -> None:
    other = boxes(notes)
    ran(docker_box.bash(f"echo one > {MOUNT}/a.md"))
    assert ran(other.bash(f"cat {MOUNT}/a.md; echo two > {MOUNT}/a.md")) == "one\n"
    assert ran(docker_box.bash(f"cat {MOUNT}/a.md")) == "two\n"
    assert [version.created_by for version in notes.log("/a.md")] == [other.actor, docker_box.actor]


def test_f268_what_lies_elsewhere_is_never_stored(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    result = docker_box.bash(
        "echo x > /mnt/memory/stray; mkdir /mnt/memory/other; echo y > /home/sandbox/mine; ls /mnt/memory"
    )
    assert result.stdout == "team-notes\n"
    docker_box.stop()
    assert texts(notes) == {}


def test_f269_the_sdks_marker_is_never_uploaded(notes: mk.Store, docker_box: mk.Sandbox) -> None:
    ran(docker_box.bash(f"cd {MOUNT}; echo version 1 > .anthropic-memory-store; echo a > a.md; mkdir b; cp .a* b"))
    docker_box.stop()
    assert set(texts(notes)) == {"/a.md", "/b/.anthropic-memory-store"}
