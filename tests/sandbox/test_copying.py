"""Data in and out of a sandbox (Decision 23): what arrives, what is left out, and what a hostile stream gets."""

from __future__ import annotations

import io
import itertools
import os
import random
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkernel.errors import InvalidInputError, SandboxClosedError
from memkernel.sandbox.base import MEBIBYTE, SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.inside import copying as stream
from tests.docker_daemon import INSTALLATION

_numbers = itertools.count(os.getpid() * 1000)


@pytest.fixture(scope="module")
def box(docker_engine: Engine, sandbox_image: str) -> Iterator[DockerSandbox]:
    """A sandbox without mounts."""
    spec = SandboxSpec(f"sesn_copying{next(_numbers)}", INSTALLATION, image=sandbox_image)
    sandbox = DockerSandbox(spec, docker_engine)
    sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with files of all sorts, and what is left out."""
    root = tmp_path / "träe e"
    (root / "below" / "deeper").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "text.md").write_text("text\r\nof two lines")
    (root / "nothing").touch()
    (root / "below" / "random").write_bytes(random.Random(7).randbytes(3 * MEBIBYTE + 17))
    (root / "below" / "tool").write_text("#!/bin/sh\n")
    (root / "below" / "tool").chmod(0o755)
    (root / os.fsdecode(b"not \xff utf-8\n")).write_text("x")
    (root / "link").symlink_to("/etc/passwd")
    (root / "below" / "loop").symlink_to("..")
    os.mkfifo(root / "pipe")
    return root


LEFT_OUT = {"link", "below/loop", "pipe"}


def contents(root: Path) -> dict[str, bytes | None]:
    """Each regular file's content, None for a folder."""
    found: dict[str, bytes | None] = {}
    for path in root.rglob("*"):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            found[str(path.relative_to(root))] = path.read_bytes() if path.is_file() else None
    return found


def test_a_folder_goes_in_and_comes_out_as_it_was(box: DockerSandbox, tree: Path, tmp_path: Path) -> None:
    assert set(box.put(tree, "in")) == LEFT_OUT
    box.bash("ln -s /etc/passwd ~/in/evil; ln -s / ~/in/below/root; mkfifo ~/in/pipe")
    assert set(box.get("in", tmp_path / "out")) == {"evil", "below/root", "pipe"}
    assert contents(tmp_path / "out") == contents(tree)
    assert os.access(tmp_path / "out" / "below" / "tool", os.X_OK)
    assert not os.access(tmp_path / "out" / "text.md", os.X_OK) or os.getuid() == 0


def test_a_file_goes_in_under_its_new_name_or_into_a_folder(box: DockerSandbox, tree: Path) -> None:
    box.put(tree / "text.md", "/home/sandbox/renamed.md")
    box.bash("mkdir -p ~/folder")
    box.put(tree / "text.md", "folder")
    box.put(tree / "text.md", "/tmp/made/on/the/way.md")
    found = box.bash(
        "sha256sum ~/renamed.md ~/folder/text.md /tmp/made/on/the/way.md | cut -d' ' -f1 | sort -u | wc -l"
    )
    assert found.stdout == "1\n"


def test_a_file_that_is_there_is_replaced(box: DockerSandbox, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    box.put(tmp_path / "a", "twice")
    (tmp_path / "a").write_text("second")
    box.put(tmp_path / "a", "twice")
    (tmp_path / "out").write_text("old")
    box.get("twice", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "second"


def test_what_is_put_belongs_to_the_sandbox(box: DockerSandbox, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    box.put(tmp_path / "a", "owned")
    assert box.bash("echo more >> ~/owned && cat ~/owned").stdout == "amore\n"


@pytest.mark.parametrize(
    "target", ["/mnt/memory/notes/a", "/etc/passwd", "../../etc/x", "/tmp/../etc/x", "/home/sandboxes", "/", "/tmpx"]
)
def test_nothing_is_put_outside_of_home_and_tmp(box: DockerSandbox, tmp_path: Path, target: str) -> None:
    (tmp_path / "a").write_text("a")
    with pytest.raises(InvalidInputError, match="not in the sandbox's home or /tmp"):
        box.put(tmp_path / "a", target)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(box: DockerSandbox, tmp_path: Path, path: str) -> None:
    (tmp_path / "a").write_text("a")
    with pytest.raises(InvalidInputError, match="no path of the sandbox"):
        box.put(tmp_path / "a", path)
    with pytest.raises(InvalidInputError, match="no path of the sandbox"):
        box.get(path, tmp_path / "out")


def test_what_cannot_be_read_is_named(box: DockerSandbox, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="missing cannot be copied: No such file or directory"):
        box.put(tmp_path / "missing", "x")
    with pytest.raises(InvalidInputError, match=r"^missing cannot be copied out of the sandbox: No such file"):
        box.get("missing", tmp_path / "out")
    with pytest.raises(InvalidInputError, match="it is no file and no folder"):
        box.get("/dev/null", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_more_than_the_sandbox_holds_says_so_and_it_lives(box: DockerSandbox, tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(100 * MEBIBYTE)
    with pytest.raises(InvalidInputError, match=r"big cannot be written .*(No space left|File too large)"):
        box.put(tmp_path / "big", "big")
    box.bash("rm -f ~/big")
    assert box.run("1 + 1").result == "2"


def test_a_folder_that_is_there_is_not_replaced(box: DockerSandbox, tmp_path: Path) -> None:
    box.bash("mkdir -p ~/again")
    box.get("again", tmp_path)
    with pytest.raises(InvalidInputError, match="again is there already"):
        box.get("again", tmp_path)


def test_a_get_whose_parent_is_missing_is_refused(box: DockerSandbox, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="out cannot be written: No such file or directory"):
        box.get("/etc/hostname", tmp_path / "missing" / "out")


def test_a_link_at_the_target_is_replaced_and_not_followed(box: DockerSandbox, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "out").symlink_to(tmp_path / "victim")
    box.bash("echo theirs > ~/theirs")
    box.get("theirs", tmp_path / "out")
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "out").read_text() == "theirs\n"


def test_a_sandbox_that_does_not_run_copies_nothing(docker_engine: Engine, sandbox_image: str, tmp_path: Path) -> None:
    sandbox = DockerSandbox(SandboxSpec("sesn_none", INSTALLATION, image=sandbox_image), docker_engine)
    with pytest.raises(SandboxClosedError):
        sandbox.put(tmp_path, "x")
    with pytest.raises(SandboxClosedError):
        sandbox.get("x", tmp_path / "out")


# -- the stream itself ---------------------------------------------------------------------------------------


def packed(source: Path) -> bytes:
    out = io.BytesIO()
    stream.pack(str(source), out.write)
    return out.getvalue()


def unpacked(data: bytes, target: Path, most_bytes: int = 1 << 20, most_entries: int = 1000) -> list[str]:
    source = io.BytesIO(data)

    def exactly(size: int) -> bytes:
        found = source.read(size)
        if len(found) != size:
            raise EOFError
        return found

    return stream.unpack(exactly, str(target), most_bytes, most_entries)


def entry(kind: int, path: bytes, content: bytes | None = None) -> bytes:
    """One entry of a stream, as the module describes it."""
    head = struct.pack(">BH", kind, len(path)) + path
    return head if content is None else head + struct.pack(">I", len(content)) + content + struct.pack(">I", 0)


END, FOLDER, FILE = 0, 1, 2


@pytest.mark.parametrize(
    "path",
    [b"../evil", b"a/../../evil", b"/etc/evil", b"a//b", b"./a", b"..", b".", b"a/", b"a\0b", b"/".join([b"d"] * 200)],
)
def test_a_stream_that_would_leave_the_folder_is_broken(tmp_path: Path, path: bytes) -> None:
    data = entry(FOLDER, b"") + entry(FILE, path, b"x") + entry(END, b"")
    with pytest.raises((stream.CopyError, OSError)):
        unpacked(data, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_stream_goes_through_no_link_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    data = entry(FOLDER, b"") + entry(FOLDER, b"a") + entry(FILE, b"a/x", b"x") + entry(END, b"")
    real = os.mkdir

    def swapping(path: bytes, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """Somebody puts a link in the new folder's place at once."""
        real(path, mode, dir_fd=dir_fd)
        if path == b"a":
            os.rmdir(path, dir_fd=dir_fd)
            os.symlink(tmp_path / "victim", path, dir_fd=dir_fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream.os, "mkdir", swapping)
        with pytest.raises(OSError, match="Not a directory"):
            unpacked(data, tmp_path / "out")
    assert list((tmp_path / "victim").iterdir()) == []


def test_a_stream_may_not_write_a_file_twice(tmp_path: Path) -> None:
    data = entry(FOLDER, b"") + entry(FILE, b"a", b"1") + entry(FILE, b"a", b"2") + entry(END, b"")
    with pytest.raises(FileExistsError):
        unpacked(data, tmp_path / "out")


def test_a_stream_that_brings_too_much_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(stream.CopyError, match="larger than may be copied"):
        unpacked(entry(FILE, b"", b"x" * 101) + entry(END, b""), tmp_path / "large", most_bytes=100)
    many = entry(FOLDER, b"") + b"".join(entry(FILE, b"%d" % number, b"x") for number in range(50))
    with pytest.raises(stream.CopyError, match="more than 10 files"):
        unpacked(many + entry(END, b""), tmp_path / "many", most_entries=10)


@pytest.mark.parametrize(
    "data",
    [
        entry(FILE, b"elsewhere", b"x") + entry(END, b""),
        entry(9, b"") + entry(END, b""),
        struct.pack(">BH", FILE, 0) + struct.pack(">I", 1 << 30),
        entry(FOLDER, b"") + entry(4, b"x" * 5_000) + entry(END, b""),
    ],
)
def test_a_broken_stream_is_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(stream.CopyError):
        unpacked(data, tmp_path / "out")


def test_a_stream_that_is_cut_anywhere_never_counts_as_whole(tmp_path: Path, tree: Path) -> None:
    (tree / "below" / "random").write_bytes(b"short")
    data = packed(tree)
    for length in range(len(data)):
        with pytest.raises(EOFError):
            unpacked(data[:length], tmp_path / f"cut-{length}")
        shutil.rmtree(tmp_path / f"cut-{length}", ignore_errors=True)
    assert set(unpacked(data, tmp_path / "whole")) == LEFT_OUT
    assert contents(tmp_path / "whole") == contents(tree)


def test_a_socket_and_what_is_too_deep_are_not_packed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        assert stream.pack(str(tmp_path), lambda data: None) == ["socket"]
    deep = tmp_path
    for _ in range(150):
        deep /= "d"
        deep.mkdir()
    with pytest.raises(stream.CopyError, match="nested more than 100 deep"):
        packed(tmp_path)


def test_the_root_itself_is_not_followed_where_it_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(stream.CopyError, match="no file and no folder"):
        packed(tmp_path / "link")
