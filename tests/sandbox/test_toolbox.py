"""The agent's tools in every sandbox: Docker, and both levels of local. What the words are is in test_toolbox_words.

A sandbox is shared by the tests of this module, with one Toolbox; a test that loses the shell leaves a new one.
"""

from __future__ import annotations

import base64
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import SandboxClosedError
from memkernel.models import ToolAnswer
from memkernel.sandbox import toolbox
from memkernel.sandbox.base import Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.kernel import KernelSandbox
from memkernel.sandbox.toolbox import Toolbox
from tests.sandbox.places import Make

SECRETS = {"ANTHROPIC_API_KEY": "sk-none", "ANTHROPIC_BASE_URL": "http://nowhere", "KEPT": "yes"}
SPEC = SandboxSpec(
    "sesn_toolbox",
    "memkernel-tests",
    limits=SandboxLimits(mount_files=2_000, mount_bytes=16 << 20, file_bytes=24 << 20),
    environment=SECRETS,
)
NOTES, RULES, DATA = "/mnt/memory/notes", "/mnt/memory/rules", "/data"
GONE = "bash: bash session terminated; restart required"


@pytest.fixture(scope="module")
def folders(make: Make, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The stores' folders, and one of a person's."""
    owner = make(SPEC).owner
    found: dict[str, Path] = {}
    for name in ("notes", "rules", "data"):
        found[name] = tmp_path_factory.mktemp("memory").resolve() / name
        found[name].mkdir(mode=0o755)
        (found[name] / "first.md").write_text(f"the first of {name}\n")
        if os.getuid() == 0:
            os.chown(found[name], *owner)
            os.chown(found[name] / "first.md", *owner)
    return found


@pytest.fixture(scope="module")
def spec(folders: dict[str, Path]) -> SandboxSpec:
    mounts = (
        Mount(folders["notes"], NOTES),
        Mount(folders["rules"], RULES, read_only=True),
        Mount(folders["data"], DATA, read_only=True, memory=False),
    )
    return replace(SPEC, mounts=mounts)


@pytest.fixture(scope="module")
def box(make: Make, spec: SandboxSpec) -> Iterator[KernelSandbox]:
    sandbox = make(spec)
    sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture(scope="module")
def shared(box: KernelSandbox) -> Iterator[Toolbox]:
    made = Toolbox(box)
    yield made
    made.close()


@pytest.fixture
def tools(shared: Toolbox) -> Toolbox:
    """The shared one, with a new shell."""
    assert shared.call("bash", {"restart": True}) == ToolAnswer("bash session restarted")
    return shared


def bash(tools: Toolbox, command: str, **more: Any) -> ToolAnswer:
    return tools.call("bash", {"command": command, **more})


def said(answer: ToolAnswer) -> str:
    """The text of an answer that is no error."""
    assert not answer.is_error, answer
    assert isinstance(answer.content, str)
    return answer.content


def error(answer: ToolAnswer) -> str:
    assert answer.is_error, answer
    assert isinstance(answer.content, str)
    return answer.content


_LOOK = """
import os, sys
mine = os.environ.get("MEMKERNEL_SANDBOX", "").encode()
def is_one(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/environ", "rb") as variables:
            return words.read().split(b"\\0")[0] == sys.argv[1].encode() and mine in variables.read()
    except OSError:
        return False
print(sum(is_one(pid) for pid in os.listdir("/proc") if pid.isdigit()))
"""


def lives(box: KernelSandbox, name: str) -> bool:
    """Whether a process of this name (its first word) runs in this sandbox; local ones see each other's."""
    done = box.exec([box.python, "-c", _LOOK, name])
    assert done.exit_code == 0, done.stderr
    return int(done.stdout) > 0


@contextmanager
def once_it_lives(box: KernelSandbox, name: str, then: Callable[[], object]) -> Generator[None]:
    """While in here, something is done as soon as a process of this name runs."""

    def wait() -> None:
        while not lives(box, name):
            time.sleep(0.05)
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


# -- the shell ---------------------------------------------------------------------------------------------


def test_a_shells_folder_variables_functions_and_jobs_live_from_call_to_call(tools: Toolbox) -> None:
    """F.272."""
    assert said(bash(tools, "pwd")) == "/home/sandbox"
    assert said(bash(tools, f"X='a b'; f() {{ echo \"f of $1\"; }}; cd {NOTES}")) == ""
    assert said(bash(tools, 'pwd; echo "$X"; f it')) == f"{NOTES}\na b\nf of it"
    assert said(bash(tools, "sleep 60 & echo started")) == "started"
    assert said(bash(tools, "jobs | wc -l")) == "1"
    assert said(bash(tools, "(sleep 0.2; echo from behind) & :")) == ""
    assert said(bash(tools, "wait %2; echo waited")) == "from behind\nwaited"


def test_a_command_that_fails_is_an_error_whose_text_is_its_output(tools: Toolbox) -> None:
    """F.272."""
    assert error(bash(tools, "echo out; echo err >&2; (exit 3)")) == "out\nerr"
    assert error(bash(tools, "false")) == "bash: exit status 1"
    assert error(bash(tools, "no_such_program")).endswith("no_such_program: command not found")


def test_a_command_is_required_and_a_restart_begins_anew(tools: Toolbox, box: KernelSandbox) -> None:
    """F.273."""
    assert error(tools.call("bash", {})) == "bash: command is required"
    bash(tools, "X=1; cd /; (setsid bash -c 'exec -a mk_restarted sleep 60' &) ; :")
    assert said(tools.call("bash", {"restart": True})) == "bash session restarted"
    assert said(bash(tools, "echo ${X:-gone}; pwd")) == "gone\n/home/sandbox"
    assert not lives(box, "mk_restarted")


def test_a_command_that_takes_too_long_is_killed_with_all_it_started(tools: Toolbox, box: KernelSandbox) -> None:
    """F.273. Also what has left its group and its session, and what was orphaned on purpose."""
    bash(tools, "bash -c 'exec -a mk_job sleep 60' & :")
    command = """
        bash -c 'exec -a mk_plain sleep 60' &
        setsid bash -c 'exec -a mk_session sleep 60' &
        (setsid bash -c '(setsid bash -c "exec -a mk_orphan sleep 60" &)' &)
        trap '' TERM INT HUP
        while ! false; do sleep 0.05; done
    """
    assert error(bash(tools, command, timeout_ms=1500)) == "bash: bash command timed out after 1.5s"
    assert [name for name in ("mk_job", "mk_plain", "mk_session", "mk_orphan") if lives(box, name)] == []
    assert error(bash(tools, "echo x")) == GONE
    assert error(bash(tools, "echo x")) == GONE


def test_processes_that_follow_each_other_without_an_end_are_ended(tools: Toolbox, box: KernelSandbox) -> None:
    """Each is orphaned at once, and lives only until it has started the next one."""
    follow = "(setsid bash -c 'exec -a mk_next bash chain' &)"
    command = f"cat > chain <<'EOF'\nsleep 0.02\n{follow}\nEOF\n{follow}; sleep 60"
    assert error(bash(tools, command, timeout_ms=1000)) == "bash: bash command timed out after 1.0s"
    assert not lives(box, "mk_next")
    assert said(tools.call("glob", {"pattern": "chain"})) == "/home/sandbox/chain"


def test_what_a_shell_says_is_cut_to_its_end(tools: Toolbox) -> None:
    """Over 100 KiB: of many lines, and of one."""
    many = said(bash(tools, "i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done"))
    assert many.startswith("[output truncated]\n")
    assert many.endswith("line 29998\nline 29999")
    assert 102_000 < len(many) < 102_450
    one = said(bash(tools, "head -c 3000000 /dev/zero | tr '\\0' x; echo end"))
    assert one.startswith("[output truncated]\nxxx")
    assert one.endswith("xend")
    assert said(bash(tools, "head -c 102000 /dev/zero | tr '\\0' y")) == "y" * 102_000


def test_ansi_and_bytes_that_are_no_text_come_as_text(tools: Toolbox) -> None:
    assert said(bash(tools, "printf '\\033[1;31mred\\033[0m\\n\\xff\\xfe \\xe2\\x82\\n'")) == "red\n\ufffd\ufffd \ufffd"
    assert said(bash(tools, "printf 'a\\0b'")) == "a\0b"


def test_nothing_of_the_provider_is_in_the_environment(tools: Toolbox) -> None:
    """F.278."""
    names = said(bash(tools, "env")).splitlines()
    assert "KEPT=yes" in names
    assert [name for name in names if "ANTHROPIC" in name or "CONNECTION" in name or "DSN" in name] == []


def test_a_job_that_writes_without_an_end_stops_no_call(tools: Toolbox) -> None:
    bash(tools, "while :; do echo flood; done & :")
    assert "[output truncated]" in said(bash(tools, "sleep 0.3; echo seen"))
    tools.call("bash", {"restart": True})
    assert said(bash(tools, "echo quiet")) == "quiet"


def test_a_command_of_a_megabyte_is_run(tools: Toolbox) -> None:
    assert said(bash(tools, f": {'x' * (1 << 20)}; echo end")) == "end"


# -- files -------------------------------------------------------------------------------------------------


def test_files_of_the_home_and_of_the_stores_are_the_hosts(tools: Toolbox, folders: dict[str, Path]) -> None:
    """F.274, F.275: characters are counted; line ends stay."""
    assert said(tools.call("write", {"file_path": f"{NOTES}/f", "content": "\u00e9"})) == f"wrote 1 bytes to {NOTES}/f"
    assert (folders["notes"] / "f").read_bytes() == "\u00e9".encode()
    assert said(tools.call("write", {"file_path": "new/f", "content": "a\r\nb"})) == "wrote 4 bytes to new/f"
    assert said(tools.call("read", {"file_path": "/home/sandbox/new/f"})) == "a\r\nb"
    given = {"file_path": f"{NOTES}/f", "old_string": "\u00e9", "new_string": "e e"}
    assert said(tools.call("edit", given)) == f"edited {NOTES}/f (1 replacement(s))"
    given = {"file_path": f"{NOTES}/f", "old_string": "e", "new_string": "i"}
    assert error(tools.call("edit", given)) == f"edit: old_string appears 2 times in {NOTES}/f (must be unique)"
    assert said(tools.call("edit", given | {"replace_all": True})) == f"edited {NOTES}/f (2 replacement(s))"
    assert (folders["notes"] / "f").read_text() == "i i"


def test_what_is_read_only_is_refused_by_name(tools: Toolbox, folders: dict[str, Path]) -> None:
    """F.277. Also through a link, and in a person's folder."""
    assert said(tools.call("read", {"file_path": f"{RULES}/first.md"})) == "the first of rules\n"
    assert said(tools.call("read", {"file_path": f"{DATA}/first.md"})) == "the first of data\n"
    bash(tools, f"ln -sfn {RULES} way")
    for path, root in ((f"{RULES}/new.md", RULES), ("way/new.md", RULES), (f"{DATA}/new.md", DATA)):
        answer = tools.call("write", {"file_path": path, "content": "x"})
        assert error(answer) == f"write: {path} is inside read-only directory {root}"
    given = {"file_path": f"{RULES}/first.md", "old_string": "first", "new_string": "x"}
    assert error(tools.call("edit", given)) == f"edit: {RULES}/first.md is inside read-only directory {RULES}"
    assert sorted(path.name for path in folders["rules"].iterdir()) == ["first.md"]


def test_nothing_outside_is_reached_by_the_file_tools(tools: Toolbox) -> None:
    bash(tools, "ln -sfn /etc outside; ln -sfn /etc/passwd out.txt; ln -sfn loop loop; ln -sfn / top")
    outside = "is outside the session's working directory and its other permitted directories"
    for path in (
        "/etc/passwd",
        "outside/passwd",
        "out.txt",
        "top/etc/passwd",
        "../../etc/passwd",
        "/tmp/x",
        "/proc/1/environ",
    ):
        for name, more in (("read", {}), ("write", {"content": "x"}), ("edit", {"old_string": "a", "new_string": "b"})):
            assert error(tools.call(name, {"file_path": path, **more})) == f"{name}: path {path!r} {outside}"
        assert error(tools.call("grep", {"pattern": "root", "path": path})) == f"grep: path {path!r} {outside}"
    assert error(tools.call("read", {"file_path": "loop"})) == "read: path 'loop': too many levels of symbolic links"
    assert said(tools.call("glob", {"pattern": "outside/*"})) == "no matches"
    assert said(tools.call("grep", {"pattern": "^root:"})) == "no matches"


def test_special_files_hold_nobody(tools: Toolbox) -> None:
    bash(tools, f"mkfifo -m 600 {NOTES}/pipe pipe; mkdir -p folder")
    for path in ("pipe", f"{NOTES}/pipe"):
        assert error(tools.call("read", {"file_path": path})) == f"read: {path}: not a regular file"
        assert error(tools.call("write", {"file_path": path, "content": "x"})) == f"write: {path}: not a regular file"
    assert error(tools.call("write", {"file_path": "folder", "content": "x"})) == "write: folder: is a directory"
    assert said(tools.call("grep", {"pattern": "x", "path": "pipe"})) == "no matches"
    bash(tools, f"rm {NOTES}/pipe pipe")


def test_images_and_pdfs_are_blocks_and_others_are_refused_by_size(tools: Toolbox) -> None:
    bash(tools, "printf '\\211PNG' > pic.PNG; printf '%%PDF' > doc.pdf; head -c 3932161 /dev/zero > big.jpg")
    block = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}
    assert tools.call("read", {"file_path": "pic.PNG"}) == ToolAnswer(({"type": "image", "source": block},))
    block = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF").decode()}
    assert tools.call("read", {"file_path": "doc.pdf"}) == ToolAnswer(({"type": "document", "source": block},))
    words = "read: big.jpg is 3932161 bytes, exceeds 3932160-byte limit for image/PDF files."
    assert error(tools.call("read", {"file_path": "big.jpg"})) == words
    bash(tools, "head -c 20971520 /dev/zero > whole.pdf; rm big.jpg")
    whole = tools.call("read", {"file_path": "whole.pdf"})
    assert isinstance(whole.content, tuple)
    assert len(str(whole.content[0])) > 27_962_000
    bash(tools, "rm whole.pdf")


def test_huge_and_binary_files_are_told_of_and_read_by_lines(tools: Toolbox) -> None:
    bash(tools, "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done > big.txt; printf '\\377' > bin")
    size = said(bash(tools, "stat -c %s big.txt"))
    told = error(tools.call("read", {"file_path": "big.txt"}))
    assert told.startswith(f"read: big.txt is {size} bytes, exceeds 262144-byte limit. Use the view_range parameter")
    assert said(tools.call("read", {"file_path": "big.txt", "view_range": [39999, 0]})) == "line 39998\nline 39999\n"
    assert error(tools.call("read", {"file_path": "bin"})).startswith("read: bin: not valid UTF-8 text")
    given = {"file_path": "bin", "old_string": "a", "new_string": "b"}
    assert error(tools.call("edit", given)) == "edit: bin: not valid UTF-8 text (cannot edit binary files)"


def test_odd_names_are_found_and_shown_as_text(tools: Toolbox) -> None:
    bash(tools, "mkdir odd; cd odd; touch -d 2001-01-01 -- '-n' 'sp ace' $'\\xff' $'q\\'\"' 'caf\u00e9'; echo odd > -n")
    assert said(tools.call("read", {"file_path": "odd/-n"})) == "odd\n"
    found = said(tools.call("glob", {"pattern": "*", "path": "odd"})).splitlines()
    assert found[0] == "/home/sandbox/odd/-n"
    assert sorted(found) == sorted(
        f"/home/sandbox/odd/{name}" for name in ("-n", "sp ace", "\ufffd", "q'\"", "caf\u00e9")
    )
    assert said(tools.call("grep", {"pattern": "^odd$", "path": "odd"})) == "/home/sandbox/odd/-n:1:odd"


def test_searches_show_paths_as_the_sandbox_has_them(tools: Toolbox) -> None:
    """F.276."""
    assert said(tools.call("glob", {"pattern": "*.md", "path": NOTES})) == f"{NOTES}/first.md"
    assert (
        said(tools.call("grep", {"pattern": "^the first", "path": RULES})) == f"{RULES}/first.md:1:the first of rules"
    )
    assert said(tools.call("glob", {"pattern": "*.nothing"})) == "no matches"
    assert said(tools.call("grep", {"pattern": "nothing of it", "path": NOTES})) == "no matches"
    assert (
        said(bash(tools, f"cd {NOTES}; ls $PWD/first.md; cat {RULES}/first.md"))
        == f"{NOTES}/first.md\nthe first of rules"
    )


def test_a_file_beyond_the_limit_is_told_of_in_the_same_words(tools: Toolbox) -> None:
    """`SandboxLimits.file_bytes`."""
    answer = tools.call("write", {"file_path": "full", "content": "x" * (25 << 20)})
    assert error(answer) == "write: full: file too large"
    bash(tools, "rm -f full")


# -- what goes wrong ------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_is_begun_anew_and_its_jobs_are_gone(tools: Toolbox, box: KernelSandbox) -> None:
    bash(tools, "(setsid bash -c 'exec -a mk_left sleep 60' &)")
    assert error(bash(tools, "kill -KILL $PPID; sleep 60")) == GONE
    assert error(bash(tools, "echo x")) == GONE
    assert said(tools.call("glob", {"pattern": "*.nothing"})) == "no matches"
    assert not lives(box, "mk_left")
    assert said(tools.call("bash", {"restart": True})) == "bash session restarted"
    assert said(bash(tools, "echo on")) == "on"


def test_a_server_that_is_told_to_end_goes_on(tools: Toolbox) -> None:
    assert said(bash(tools, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo on")) == "on"
    assert said(bash(tools, "echo still")) == "still"


def test_a_server_that_does_not_answer_is_killed_by_the_host(
    tools: Toolbox, box: KernelSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolbox, "_SLACK_S", 0.5)
    command = "(setsid bash -c 'exec -a mk_stopped sleep 60' &); kill -STOP $PPID; sleep 60"
    assert error(bash(tools, command, timeout_ms=500)) == "bash: bash command timed out after 0.5s"
    assert not lives(box, "mk_stopped")
    assert error(bash(tools, "echo x")) == GONE


def test_an_interrupt_from_another_thread_ends_the_call_and_what_it_started(tools: Toolbox, box: KernelSandbox) -> None:
    tools.interrupt()  # nothing runs
    command = "(setsid bash -c 'exec -a mk_cut sleep 60' &); sleep 60"
    with once_it_lives(box, "mk_cut", tools.interrupt):
        assert error(bash(tools, command)) == "bash: interrupted by the user"
    assert not lives(box, "mk_cut")
    assert error(bash(tools, "echo x")) == GONE


def test_a_keyboard_interrupt_goes_on_and_leaves_nothing_running(tools: Toolbox, box: KernelSandbox) -> None:
    command = "(setsid bash -c 'exec -a mk_broken sleep 60' &); sleep 60"
    with once_it_lives(box, "mk_broken", lambda: os.kill(os.getpid(), signal.SIGINT)), pytest.raises(KeyboardInterrupt):
        bash(tools, command)
    assert not lives(box, "mk_broken")
    assert error(bash(tools, "echo x")) == GONE
    assert said(tools.call("glob", {"pattern": "*.nothing"})) == "no matches"


def test_tools_and_cells_do_not_disturb_each_other(tools: Toolbox, box: KernelSandbox) -> None:
    """The kernel's state and the shell's both live on; a tool answers while a cell runs, which waits for it here."""
    box.run("kept = 'in the kernel'")
    bash(tools, "X='in the shell'; rm -f go; bash -c 'exec -a mk_kept sleep 60' & :")
    found: list[Any] = []
    code = "import os, time\nwhile not os.path.exists('/home/sandbox/go'): time.sleep(0.01)\nkept"
    cell = threading.Thread(target=lambda: found.append(box.run(code, timeout_s=60)))
    cell.start()
    assert said(bash(tools, "touch go; echo $X")) == "in the shell"
    cell.join()
    assert found[0].result == "'in the kernel'"
    assert box.run("while True: pass", timeout_s=0.5).status == "timeout"
    assert said(bash(tools, "echo $X; jobs | wc -l")) == "in the shell\n1"
    assert lives(box, "mk_kept")
    assert box.run("kept").result == "'in the kernel'"


def test_a_command_of_a_person_that_is_killed_leaves_the_tools_alone(tools: Toolbox, box: KernelSandbox) -> None:
    """And the tools do not hold back the end of what a person's command has left behind."""
    bash(tools, "X=1; bash -c 'exec -a mk_agents sleep 60' & :")
    script = "(setsid bash -c 'exec -a mk_persons sleep 60' &); sleep 60"
    assert box.bash(script, timeout_s=0.7).status == "timeout"
    assert not lives(box, "mk_persons")
    assert lives(box, "mk_agents")
    assert said(bash(tools, "echo $X")) == "1"


def test_a_restart_of_the_kernel_loses_the_shell_and_says_so(tools: Toolbox, box: KernelSandbox) -> None:
    bash(tools, "X=1")
    box.restart()
    assert said(tools.call("read", {"file_path": f"{NOTES}/first.md"})) == "the first of notes\n"
    assert error(bash(tools, "echo $X")) == GONE
    assert said(tools.call("bash", {"restart": True})) == "bash session restarted"
    assert said(bash(tools, "echo ${X:-lost}")) == "lost"


def test_a_kernel_that_dies_takes_the_call_along_and_a_new_one_follows(tools: Toolbox, box: KernelSandbox) -> None:
    with once_it_lives(box, "mk_along", lambda: box.run("import os; os._exit(7)")):
        told = error(bash(tools, "(exec -a mk_along sleep 60)"))
    assert told == "bash: the kernel died with exit code 7; the next cell starts a new kernel"
    assert error(bash(tools, "echo x")) == GONE
    assert said(tools.call("read", {"file_path": f"{NOTES}/first.md"})) == "the first of notes\n"


def test_a_mount_that_overflows_ends_what_runs(tools: Toolbox, folders: dict[str, Path]) -> None:
    """Decision 5 holds during a tool call, too."""
    answer = bash(tools, f"cd {NOTES}; while :; do : > flood-$((i++)); done", timeout_ms=60_000)
    assert "files" in error(answer)
    assert "next cell starts a new kernel" in error(answer)
    for path in folders["notes"].glob("flood-*"):
        path.unlink()


def test_a_sandbox_that_is_not_running_is_an_error_of_the_person(make: Make, spec: SandboxSpec) -> None:
    sandbox = make(spec)
    tools = Toolbox(sandbox)
    with pytest.raises(SandboxClosedError):
        tools.call("bash", {"command": "echo x"})
    tools.interrupt()
    tools.close()


def test_a_sandbox_that_is_stopped_in_the_middle_of_a_call_is_one_too(make: Make, spec: SandboxSpec) -> None:
    sandbox = make(spec)
    sandbox.start()
    tools = Toolbox(sandbox)
    with once_it_lives(sandbox, "mk_stopped_with", sandbox.stop), pytest.raises(SandboxClosedError):
        bash(tools, "(exec -a mk_stopped_with sleep 60)")
    tools.close()


@pytest.mark.docker
def test_what_a_command_is_cannot_speak_in_the_servers_name(docker_engine: Engine, sandbox_image: str) -> None:
    """Its files are not to be opened, nor is it to be traced: an answer is the server's own."""
    sandbox = DockerSandbox(replace(SPEC, image=sandbox_image), docker_engine)
    sandbox.start()
    tools = Toolbox(sandbox)
    forged = """echo '{"id": 1, "text": "forged"}'"""
    assert "Permission denied" in error(bash(tools, f"{forged} > /proc/$PPID/fd/1"))
    assert "Permission denied" in error(bash(tools, "cat /proc/$PPID/environ"))
    assert said(bash(tools, f"{forged}; {forged} >&2")).count("forged") == 2
    tools.close()
    sandbox.stop()


@pytest.mark.docker
def test_a_container_that_is_gone_is_an_error_of_the_person(docker_engine: Engine, sandbox_image: str) -> None:
    sandbox = DockerSandbox(replace(SPEC, image=sandbox_image), docker_engine)
    sandbox.start()
    tools = Toolbox(sandbox)
    assert said(bash(tools, "echo on")) == "on"
    assert sandbox._container is not None  # pyright: ignore[reportPrivateUsage] - it is removed behind its back
    container = str(sandbox._container.container_id)  # pyright: ignore[reportPrivateUsage]
    gone = pytest.raises(SandboxClosedError, match="removed")
    with once_it_lives(sandbox, "mk_removed", lambda: docker_engine.remove(container)), gone:
        bash(tools, "(exec -a mk_removed sleep 60)")
    with pytest.raises(SandboxClosedError):
        tools.call("read", {"file_path": "x"})
    sandbox.stop()
