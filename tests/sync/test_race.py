"""Ten seconds of files, folders and links that change places: the host neither reads nor writes outside the mount."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from memkernel.sync.files import MountFiles, Unwritable
from memkernel.sync.scan import Scanner
from tests.fix_folders import KINDS, ORDINARY, ordinary_rights
from tests.sync.places import put, sha256, sums

RACE_S = 10.0
SECRET = "the host's secret"

# What a sandbox can do, as fast as it can: exchange a folder and a link to the host's folder, a file and a link to the
# host's file, a folder and a file, a folder below and a link. Itself it goes through no link, as if it were locked in.
ATTACK = """
import ctypes, os, sys
mount, outside = map(os.fsencode, sys.argv[1:])
exchange = ctypes.CDLL(None).renameat2
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
root = os.open(mount, FOLDER)

def opened(names, dir_fd):
    for name in names:
        try:
            return os.open(name, FOLDER, dir_fd=dir_fd)
        except OSError:
            pass
    try:
        os.unlink(names[0], dir_fd=dir_fd)
    except OSError:
        pass
    os.mkdir(names[0], dir_fd=dir_fd)
    return os.open(names[0], FOLDER, dir_fd=dir_fd)

def write(name, dir_fd):
    try:
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, dir_fd=dir_fd), "w") as file:
            file.write("benign")
    except OSError:
        pass

def link(name, target):
    try:
        os.symlink(target, name, dir_fd=root)
    except OSError:
        pass

turns = 0
while True:
    fds = []
    try:
        fds.append(opened([b"d", b"s"], root))
        fds.append(opened([b"sub"], fds[0]))
        fds.append(opened([b"other", b"x"], root))
        for fd in fds[:2]:
            write(b"secret.md", fd)
        write(b"f.md", root)
        write(b"x", root)
        for name, target in ((b"s", outside), (b"fl", outside + b"/secret.md"), (b"sub-link", outside + b"/sub")):
            link(name, target)
        for _ in range(100):
            exchange(root, b"d", root, b"s", 2)
            exchange(root, b"f.md", root, b"fl", 2)
            exchange(root, b"x", root, b"other", 2)
            exchange(fds[0], b"sub", root, b"sub-link", 2)
            turns += 1
    except OSError:
        pass
    for fd in fds:
        os.close(fd)
    print(turns, flush=True)
"""


class Host:
    """What the host does to the mount meanwhile."""

    def __init__(self, mount: Path) -> None:
        self.scanner = Scanner(mount)
        self.files = MountFiles(mount, mount.with_name("aside"), owner=None)
        self.seen: Counter[str] = Counter()

    def look(self) -> None:
        """Read whatever can be read; for a while, so that the attacker can put up again what was taken away."""
        for _ in range(30):
            self.scan()
            for path in ("/d/secret.md", "/d/sub/secret.md", "/f.md", "/s/secret.md", "/fl"):
                content = self.scanner.read(path)
                assert content is None or SECRET.encode() not in content
                self.seen["read"] += content is not None

    def change(self, number: int) -> None:
        """Write and remove whatever can be."""
        for path in ("/d/new.md", "/d/sub/new.md", "/f.md", "/x/new.md", "/d/sub/deep/er.md"):
            self.write(path, f"head {number}".encode())
        for path in ("/d/secret.md", "/d/sub/secret.md", "/f.md", "/x"):
            self.keep(self.files.remove(path, ()))
        self.files.prune_folders()
        self.files.flush()
        self.keep(self.files.latecomers())

    def scan(self) -> None:
        scan = self.scanner.scan()
        assert sha256(SECRET) not in sums(scan).values()
        self.seen["file"] += "/d/secret.md" in scan.files
        self.seen["link"] += "it is a symbolic link" in scan.refused.values()

    def write(self, path: str, content: bytes) -> None:
        try:
            self.keep(self.files.write(path, content, ()).put_aside)
            self.seen["written"] += 1
        except Unwritable:
            self.seen["given up"] += 1

    def keep(self, put_aside: tuple[object, ...]) -> None:
        for one in self.files.leftovers() if put_aside else ():
            content = one.content
            assert content is None or SECRET.encode() not in content
            self.files.discard(one)

    def close(self) -> None:
        self.scanner.close()
        self.files.close()


BUSTLE = """
import itertools, os, sys
os.chdir(sys.argv[1])
for turn in itertools.count():
    for number in range(20):
        name = f"d/{number}.md"
        open(f"d/tmp-{number}", "w").write(str(turn))
        os.replace(f"d/tmp-{number}", name)
        if number % 5 == 0:
            os.chmod("d", (0, 0o100, 0o400, 0o300)[turn % 4])
            os.chmod("d", 0o700)
    print(turn, flush=True)
"""


@pytest.mark.parametrize("rights", [nullcontext, *([ordinary_rights] if os.geteuid() == 0 else [])])
def test_a_file_that_is_there_is_never_taken_for_deleted(
    disk: Path, rights: Callable[[], AbstractContextManager[None]]
) -> None:
    """Whatever happens around it: files that are replaced, a folder that is closed to its owner for moments."""
    names = {f"/d/{number}.md" for number in range(20)}
    for name in names:
        put(disk, name)
    if os.geteuid() == 0:
        os.chown(disk, ORDINARY, ORDINARY)
        os.chown(disk / "d", ORDINARY, ORDINARY)
    seen: Counter[str] = Counter()
    with subprocess.Popen([sys.executable, "-c", BUSTLE, str(disk)], stdout=subprocess.PIPE, text=True) as others:
        try:
            assert others.stdout is not None
            others.stdout.readline()
            with rights():
                is_root = os.geteuid() == 0
                look_out(Scanner(disk), names, seen, may_close=not is_root)
            assert others.poll() is None
        finally:
            others.kill()
    assert seen["changed"] > 10
    assert (seen["unreadable"] > 0) != is_root


def look_out(scanner: Scanner, names: set[str], seen: Counter[str], *, may_close: bool) -> None:
    """Scan for two seconds: each file is there, refused, or lies where nothing could be read.

    Longer, on a busy machine, until the folder was met closed, where it `may_close`.
    """
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 2 or (may_close and not seen["unreadable"] and passed < 30):
        scan = scanner.scan()
        assert scan.unreadable in ((), ("/d/",))
        assert scan.unreadable or names <= scan.files.keys() | scan.refused.keys()
        seen.update(unreadable=len(scan.unreadable), changed=scan.changed)
    scanner.close()


def everything_in(folder: Path) -> dict[str, tuple[str, int, int]]:
    return {
        str(file.relative_to(folder)): (file.read_text() if file.is_file() else "", *key(file.lstat()))
        for file in sorted(folder.rglob("*"))
    }


def key(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_ctime_ns


@pytest.mark.parametrize("roomy", KINDS[-1:], indirect=True)  # in memory there are far more turns in a second
def test_a_race_of_files_and_links_never_leads_out_of_the_mount(roomy: Path) -> None:
    """Issue 3: a race that swaps files and links for ten seconds never reads a host file; nor does it write one."""
    mount, outside = roomy / "mount", roomy / "outside"
    mount.mkdir()
    for path in ("/secret.md", "/sub/secret.md"):
        put(outside, path, SECRET)
    before = everything_in(outside)
    command = [sys.executable, "-c", ATTACK, str(mount), str(outside)]
    host = Host(mount)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
        try:
            assert attacker.stdout is not None
            attacker.stdout.readline()
            end, number = time.monotonic() + RACE_S, 0
            while time.monotonic() < end:
                number += 1
                host.look()
                host.change(number)
            assert attacker.poll() is None
        finally:
            attacker.kill()
            turns = int(attacker.communicate()[0].split()[-1])
    host.close()
    assert everything_in(outside) == before
    assert turns > 1_000
    assert min(host.seen[kind] for kind in ("file", "link", "read", "written")) > 10, host.seen
