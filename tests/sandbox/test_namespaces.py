"""Level 1: further folders in a process's view of the machine, for root and for an ordinary user."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from memkernel.sandbox import namespaces
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.namespaces import Bind, launch_argv
from tests.cluster.people import Person, current_user
from tests.fix_local import LEVELS, SPEC

SOURCE = Path(namespaces.__file__).read_text()
PEOPLE = ["ordinary", pytest.param("root", marks=pytest.mark.as_root)] if 1 in LEVELS else []


class View:
    """Somebody, and folders to show them."""

    def __init__(self, person: Person, ground: Path) -> None:
        self.person, self.ground = person, ground
        self.notes, self.book, self.home = (ground / name for name in ("notes", "book", "home"))
        for folder in (ground, self.notes, self.book, self.home):
            folder.mkdir()
            person.own(folder)
        (self.book / "a.md").write_text("SI\n")
        person.own(self.book / "a.md")
        self.binds = [
            Bind(str(self.notes), "/mnt/memory/notes"),
            Bind(str(self.book), "/mnt/memory/book", read_only=True),
            Bind(str(self.home), "/home/sandbox"),
        ]

    def run(self, script: str, *more: Bind, limits: dict[int, tuple[int, int]] | None = None) -> str:
        """What a bash script says in there."""
        said, refused = self.try_to_run(script, *more, limits=limits)
        assert refused == ""
        return said

    def try_to_run(
        self, script: str, *more: Bind, limits: dict[int, tuple[int, int]] | None = None, prefix: Sequence[str] = ()
    ) -> tuple[str, str]:
        """What it says, and why it could not be started. A prefix runs the launcher, as the one who tests."""
        read, told = os.pipe()
        python = self.person.python[0]
        argv = launch_argv(
            python,
            SOURCE,
            told=told,
            binds=[*self.binds, *more],
            cwd="/home/sandbox",
            limits=limits or {},
            argv=["/bin/bash", "-c", script],
        )
        if prefix:
            process = subprocess.Popen(
                [*prefix, *argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(told,)
            )
        else:
            process = self.person.start(
                *argv[1:],
                environment={"LC_ALL": "C"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(told,),
            )
        os.close(told)
        said, _ = process.communicate(timeout=60)
        with open(read, encoding="utf-8") as answer:
            return said, answer.read()


@pytest.fixture(params=PEOPLE)
def view(request: pytest.FixtureRequest, open_ground: Path) -> View:
    """Folders of root's and of an ordinary user's."""
    person: Person = request.getfixturevalue("ordinary_user") if request.param == "ordinary" else current_user()
    return View(person, open_ground / f"{request.node.name[:60]}")


@pytest.fixture
def own_view(open_ground: Path, request: pytest.FixtureRequest) -> View:
    """Folders of the one who tests."""
    return View(current_user(), open_ground / request.node.name[:60])


def test_the_folders_are_where_they_belong_and_can_be_used(view: View) -> None:
    said = view.run("pwd; ls /mnt/memory; cat /mnt/memory/book/a.md; echo kg > /mnt/memory/notes/b.md; touch x")
    assert said == "/home/sandbox\nbook\nnotes\nSI\n"
    assert (view.notes / "b.md").read_text() == "kg\n"
    assert (view.notes / "b.md").stat().st_uid == view.person.uid_or_own
    assert (view.home / "x").exists()


READ_ONLY = [
    "echo x > /mnt/memory/book/a.md",
    "echo x >> /mnt/memory/book/a.md",
    "touch /mnt/memory/book/new",
    "mkdir /mnt/memory/book/new",
    "rm -f /mnt/memory/book/a.md",
    "mv /mnt/memory/book/a.md /mnt/memory/book/b.md",
    "mv /mnt/memory/book/a.md /mnt/memory/notes/",
    "ln /mnt/memory/book/a.md /mnt/memory/book/b.md",
    "ln -s x /mnt/memory/book/b.md",
    "chmod 777 /mnt/memory/book/a.md",
    "touch -d 2001-01-01 /mnt/memory/book/a.md",
    "truncate -s 0 /mnt/memory/book/a.md",
    "mount -o remount,bind,rw /mnt/memory/book",
    "umount /mnt/memory/book",
    "umount -l /mnt/memory/book",
    "unshare -Urm sh -c 'mount -o remount,bind,rw /mnt/memory/book && echo x > /mnt/memory/book/a.md'",
    "unshare -Urm sh -c 'umount /mnt/memory/book && echo x > /mnt/memory/book/a.md'",
    "unshare -m sh -c 'mount -o remount,bind,rw /mnt/memory/book && echo x > /mnt/memory/book/a.md'",
]


def test_a_read_only_folder_cannot_be_written_to_by_any_way(view: View) -> None:
    said = view.run("\n".join(f"( {attempt} ) >/dev/null 2>&1 && echo {shlex.quote(attempt)}" for attempt in READ_ONLY))
    assert said == ""
    assert view.run("echo x > /mnt/memory/book/a.md").strip().endswith("Read-only file system")
    assert os.listdir(view.book) == ["a.md"]
    assert (view.book / "a.md").read_text() == "SI\n"


def test_the_rest_of_the_machine_is_as_it_was(view: View) -> None:
    listing = "ls -A /; ls -A /mnt | grep -vx memory; ls -A /home | grep -vx sandbox; ls -A /dev; cat /etc/passwd"
    outside = subprocess.run(["sh", "-c", listing], capture_output=True, text=True, check=False)
    person = view.person
    ids = f"{person.uid_or_own}\n{os.getegid() if person.gid is None else person.gid}\n"
    assert view.run(f"{listing}; id -u; id -g") == outside.stdout + ids


def test_nothing_of_it_is_left_on_the_machine(view: View) -> None:
    def mounts() -> list[str]:
        """Of this machine, but for those of an engine, where other tests' containers come and go."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [line for line in lines if "docker" not in line and "/memkernel-tests-" not in line]

    before = mounts()
    seen = [sorted(os.listdir(folder)) for folder in ("/", "/mnt", "/home")]
    view.run("true")
    view.try_to_run("true", Bind("/nowhere/at/all", "/data"))
    assert mounts() == before
    assert [sorted(os.listdir(folder)) for folder in ("/", "/mnt", "/home")] == seen


def test_a_file_or_folder_can_be_anywhere_also_at_the_top(view: View) -> None:
    target = view.ground / "there"
    target.mkdir(mode=0o755)
    book, file = str(view.book), str(view.book / "a.md")
    existing = view.ground / "file"
    existing.write_text("hidden\n")
    more = [
        Bind(file, str(existing)),
        Bind(book, "/data", True),
        Bind(file, "/data2/deep/a.md", True),
        Bind(file, "/opt/it.md"),
        Bind(book, str(target)),
    ]
    files = f"/data/a.md /data2/deep/a.md /opt/it.md {target}/a.md {existing}"
    said = view.run(f"cat {files}; ls /; echo x > /data/a.md", *more)
    assert said.startswith("SI\n" * 5)
    assert {"data", "data2", "etc", "proc", "usr", "mnt"} <= set(said.split())
    assert "data/a.md: Read-only file system" in said
    assert view.run("cat /mnt/memory/book/a.md; ls -d /opt/*", *more).startswith("SI\n")
    assert not os.path.lexists("/opt/it.md")


def test_nothing_can_be_added_beside_the_folders(view: View) -> None:
    said = view.run(
        "for it in /mnt/x /mnt/memory/x /home/x /x; do touch $it 2>/dev/null && echo $it; done",
        Bind(str(view.book), "/data"),
    )
    assert said == ""


def test_who_one_is_and_what_others_own_stays_the_same(own_view: View) -> None:
    own = "stat -c '%u %g' /etc/passwd . /mnt/memory/notes; id"
    outside = subprocess.run(
        ["sh", "-c", f"cd {own_view.home}; {own.replace('/mnt/memory/notes', str(own_view.notes))}"],
        capture_output=True,
        text=True,
        check=True,
    )
    if os.geteuid() == 0:
        assert own_view.run(own) == outside.stdout
    assert own_view.run("id -u") == f"{os.geteuid()}\n"


@pytest.mark.as_root
def test_root_may_do_with_files_of_others_what_root_may(own_view: View) -> None:
    file = own_view.notes / "theirs"
    file.write_text("x")
    os.chown(file, 12345, 54321)
    file.chmod(0o600)
    assert own_view.run("cat /mnt/memory/notes/theirs; chown 777:888 /mnt/memory/notes/theirs") == "x"
    assert (file.stat().st_uid, file.stat().st_gid) == (777, 888)


@pytest.mark.as_root
def test_a_memory_folder_that_the_machine_has_is_not_seen(own_view: View) -> None:
    prepared = 'mount -t tmpfs tmpfs /mnt && mkdir -p /mnt/memory/notes /mnt/memory/other /mnt/disk && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", prepared, "sh"]
    said, refused = own_view.try_to_run("ls /mnt /mnt/memory; touch /mnt/memory/notes/x", prefix=prefix)
    assert (said, refused) == ("/mnt:\ndisk\nmemory\n\n/mnt/memory:\nbook\nnotes\n", "")
    assert os.listdir(own_view.notes) == ["x"]


FORBIDDEN = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def test_where_namespaces_are_forbidden_it_says_so(own_view: View) -> None:
    said, refused = own_view.try_to_run(
        "true", prefix=["unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDEN, "sh"]
    )
    assert said == ""
    assert refused == "unshare: No space left on device"


def test_a_source_that_is_missing_or_a_link_is_refused_by_name(view: View) -> None:
    link = view.ground / "link"
    link.symlink_to("/etc")
    nothing = view.ground / "nothing"
    said, refused = view.try_to_run("echo started", Bind(str(nothing), "/data"))
    assert (said, refused) == ("", f"{nothing}: No such file or directory")
    said, refused = view.try_to_run("echo started", Bind(str(link), "/data"))
    assert (said, refused) == ("", f"{link} is a link")


def test_limits_are_set_and_never_raised(view: View) -> None:
    limits = {
        resource.RLIMIT_FSIZE: (65536, 65536),
        resource.RLIMIT_NOFILE: (100, 1 << 30),
        resource.RLIMIT_CORE: (0, 0),
    }
    assert view.run("ulimit -f; ulimit -n; ulimit -c", limits=limits) == "64\n100\n0\n"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert view.run("ulimit -Hn", limits=limits) == f"{min(hard, 1 << 30)}\n"


def test_a_program_that_is_missing_is_told() -> None:
    read, told = os.pipe()
    argv = launch_argv(sys.executable, SOURCE, told=told, binds=None, cwd="/", limits={}, argv=["/no/such/program"])
    subprocess.run(argv, pass_fds=(told,), check=False)
    os.close(told)
    with open(read, encoding="utf-8") as answer:
        assert answer.read() == "No such file or directory"


def test_detection_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert LocalSandbox(SPEC, level=None).level in LEVELS
    assert os.listdir(tmp_path) == []
