"""The walls as pure rules: what may be asked for, who the sandbox is, what it sees, what container comes of it."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import EngineError, InvalidInputError, MountError
from memkernel.sandbox import walls
from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits, SandboxSpec
from memkernel.sandbox.engine import EngineInfo
from memkernel.sandbox.walls import Identity

ROOTFUL = EngineInfo("rootful", "20.10.24", cpus=2)


# -- sizes and limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512m", 512 * MEBIBYTE),
        ("512M", 512 * MEBIBYTE),
        ("1.5 GiB", 1536 * MEBIBYTE),
        ("2gb", 2048 * MEBIBYTE),
        ("64k", 65536),
        ("65536", 65536),
        (65536, 65536),
        (" 1t ", 1 << 40),
        ("10b", 10),
    ],
)
def test_a_size_is_read_as_docker_reads_it(text: str | int, size: int) -> None:
    assert walls.parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "m", "-1", "512x", "1e9", "0x10", "1,5g", "１m", "1 2", "nan", "5mm", "9" * 400, "1." + "9" * 400]
)
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^memory=.* is no size"):
        walls.parse_bytes(text, "memory")


def test_the_usual_limits_are_allowed() -> None:
    walls.check_limits(SandboxLimits())


@pytest.mark.parametrize(
    "change",
    [
        {"memory_bytes": 63 * MEBIBYTE},
        {"pids": 15},
        {"pids": -1},
        {"cpus": 0.0},
        {"cpus": -1.0},
        {"cpus": math.inf},
        {"cpus": math.nan},
        {"file_bytes": 0},
        {"tmp_bytes": 0},
        {"home_bytes": 0},
        {"memory_bytes": 1 << 63},
        {"memory_bytes": walls.parse_bytes("9999999t")},
        {"tmp_bytes": 1 << 70},
        {"file_bytes": 1 << 64},
        {"pids": 10**12},
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{next(iter(change)).removesuffix('_bytes')}="):
        walls.check_limits(dataclasses.replace(SandboxLimits(), **change))


def test_a_limit_is_told_in_the_words_in_which_it_is_asked_for() -> None:
    with pytest.raises(InvalidInputError) as caught:
        walls.check_limits(dataclasses.replace(SandboxLimits(), memory_bytes=walls.parse_bytes("3")))
    assert caught.value.lines() == [
        "InvalidInputError: memory=3 bytes is too low: a kernel needs 64m",
        "The default is 512m.",
    ]


# -- network, packages, variables --------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["none", "bridge", "my-net", "a.b_c-1"])
def test_a_network_is_taken_by_name(network: str) -> None:
    walls.check_network(network)


@pytest.mark.parametrize(
    "network", ["host", "container:abc", "container:", "ns:/proc/1/ns/net", "", "-x", "a b", "a/b"]
)
def test_a_network_that_is_not_the_sandboxs_own_is_refused(network: str) -> None:
    with pytest.raises(InvalidInputError, match="network") as raised:
        walls.check_network(network)
    assert raised.value.hint


@pytest.mark.parametrize(
    "package", ["pandas", "pandas==2.2.3", "pandas>=2.2,<3", "pandas >= 2.2", "a[b,c]~=1.0", "x.y-z_1", "a!=1.*"]
)
def test_a_package_is_a_name_with_versions(package: str) -> None:
    walls.check_packages([package])


@pytest.mark.parametrize(
    "package",
    [
        "",
        "-r /etc/passwd",
        "--index-url=http://x",
        "-e .",
        "./here",
        "/there",
        "https://x/y.whl",
        "a @ https://x/y.whl",
        "a\nb",
        "a; rm",
        "a$(x)",
        "a --hash=x",
        "git+https://x",
        "a`x`",
        "a==1 b",
    ],
)
def test_options_paths_and_addresses_are_no_packages(package: str) -> None:
    with pytest.raises(InvalidInputError, match="is no package"):
        walls.check_packages([package])


@pytest.mark.parametrize(("name", "value"), [("A B", ""), ("", ""), ("1A", ""), ("A=B", ""), ("A", "x\0y"), ("Ä", "")])
def test_a_variable_that_cannot_be_set_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError):
        walls.check_environment({name: value})


@pytest.mark.parametrize("name", ["MEMKERNEL_CONNECTION", "PATH", "HOME", "IPYTHONDIR", "LD_PRELOAD", "PYTHONHOME"])
def test_a_variable_that_the_kernels_start_needs_is_the_sandboxs_own(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"the variable {name} is the sandbox's own"):
        walls.check_environment({name: "/x"})


def test_other_variables_are_a_persons() -> None:
    walls.check_environment({"PYTHONPATH": "/data", "TOKEN": "a=b\nc", "_X1": ""})


# -- who the sandbox is ------------------------------------------------------------------------------------


def engine_info(**answer: Any) -> EngineInfo:
    """What is read of an answer to /info, on top of what every engine says."""
    return EngineInfo.read({"NCPU": 4, "ServerVersion": "27.1", "MemoryLimit": True, "PidsLimit": True, **answer})


SECCOMP = "name=seccomp,profile=default"


def test_on_a_rootful_engine_a_person_is_themself_on_both_sides() -> None:
    info = engine_info(SecurityOptions=["name=apparmor", SECCOMP])
    assert info.kind == "rootful"
    assert walls.identity(info, (1234, 567)) == Identity((1234, 567), (1234, 567))


def test_root_is_never_root_in_a_container() -> None:
    assert walls.identity(ROOTFUL, (0, 0)) == Identity((1000, 1000), (1000, 1000))


def test_on_a_rootless_engine_root_inside_is_the_person() -> None:
    info = engine_info(SecurityOptions=[SECCOMP, "name=rootless", "name=cgroupns"])
    assert info.kind == "rootless"
    assert walls.identity(info, (1234, 567)) == Identity((0, 0), (1234, 567))


def test_a_rootless_engine_is_the_account_that_owns_its_socket() -> None:
    """Root may talk to another account's engine; what that one's container writes is that account's."""
    info = engine_info(SecurityOptions=["name=rootless"])
    assert walls.identity(info, (0, 0), (1001, 1001)) == Identity((0, 0), (1001, 1001))


def test_an_engine_that_maps_users_is_refused_with_the_way_out() -> None:
    info = engine_info(SecurityOptions=[SECCOMP, "name=userns"])
    assert info.kind == "remapped"
    with pytest.raises(EngineError, match="userns-remap") as raised:
        walls.identity(info, (1000, 1000))
    assert "--backend local" in raised.value.hint


def test_docker_desktop_is_told_from_an_engine_of_this_machine() -> None:
    info = engine_info(OperatingSystem="Docker Desktop", SecurityOptions=[SECCOMP])
    assert info.kind == "desktop"
    assert walls.identity(info, (501, 20)) == Identity((501, 20), (501, 20))


def test_limits_that_an_engine_does_not_enforce_are_named() -> None:
    info = engine_info(SecurityOptions=["name=rootless"], MemoryLimit=False, CpuCfsQuota=False, PidsLimit=False)
    assert info.unlimited == ("memory", "CPU time", "processes")
    assert engine_info(CpuCfsQuota=True).unlimited == ()


@pytest.mark.parametrize(
    ("options", "filters"),
    [
        ([SECCOMP], True),
        (["name=seccomp,profile=builtin"], True),
        (["name=seccomp,profile=unconfined"], False),
        ([], False),
    ],
)
def test_whether_system_calls_are_filtered_is_known(options: list[str], filters: bool) -> None:
    assert engine_info(SecurityOptions=options).seccomp is filters


def test_an_answer_with_nothing_in_it_is_read() -> None:
    info = EngineInfo.read({"SecurityOptions": None, "NCPU": None})
    assert (info.kind, info.cpus, info.version) == ("rootful", 1, "unknown")


# -- what it sees of the host --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A real folder."""
    return Path(os.path.realpath(tmp_path))


def make(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    return folder / name


def store(source: Path, slug: str = "notes", *, read_only: bool = False) -> Mount:
    return Mount(source, f"/mnt/memory/{slug}", read_only)


def data(source: Path, target: str = "/data", *, read_only: bool = True) -> Mount:
    return Mount(source, target, read_only, memory=False)


def refuse(mounts: list[Mount], why: str, **guarded: Path) -> MountError:
    with pytest.raises(MountError, match=why) as raised:
        walls.check_mounts(mounts, **guarded)
    return raised.value


def test_stores_side_by_side_and_a_persons_folder_are_mounted(folder: Path) -> None:
    one, other, files = make(folder, "one"), make(folder, "other"), make(folder, "files")
    walls.check_mounts([store(one, "one"), store(other, "other", read_only=True), data(files)])


def test_a_source_that_is_a_link_is_refused(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")
    refuse([store(folder / "link")], "a link leads to it")


def test_a_source_below_a_link_is_refused(folder: Path) -> None:
    make(folder, "real/below")
    (folder / "link").symlink_to(folder / "real")
    refuse([store(folder / "link" / "below")], "a link leads to it")


def test_a_source_that_goes_up_or_is_relative_is_refused(folder: Path) -> None:
    make(folder, "one")
    refuse([store(folder / "one" / ".." / "one")], "not a real path")
    refuse([store(Path("one"))], "not a real path")


def test_a_source_that_is_missing_or_no_folder_is_refused(folder: Path) -> None:
    (folder / "file").touch()
    refuse([store(folder / "missing")], "it is not there")
    refuse([store(folder / "file")], "it is no folder")


def test_a_persons_file_can_be_mounted_and_a_pipe_cannot(folder: Path) -> None:
    (folder / "file").touch()
    walls.check_mounts([data(folder / "file", "/data.csv")])
    os.mkfifo(folder / "pipe")
    refuse([data(folder / "pipe")], "no folder and no file")


def test_two_views_of_one_folder_are_refused(folder: Path) -> None:
    """A writable view of it voids the read-only one."""
    one = make(folder, "one")
    refuse([store(one, "a"), store(one, "b", read_only=True)], "overlaps with")


def test_a_store_in_a_store_is_refused_either_way_round(folder: Path) -> None:
    inner = make(folder, "outer/inner")
    refuse([store(folder / "outer", "a"), store(inner, "b")], "overlaps with")
    refuse([store(inner, "b"), store(folder / "outer", "a")], "overlaps with")


def test_a_persons_folder_around_a_store_is_refused(folder: Path) -> None:
    inner = make(folder, "outer/inner")
    refuse([store(inner), data(folder / "outer")], "overlaps with")


def test_a_name_that_another_begins_with_does_not_overlap(folder: Path) -> None:
    walls.check_mounts([store(make(folder, "notes"), "notes"), store(make(folder, "notes-2"), "notes-2")])


def test_two_mounts_at_one_place_are_refused(folder: Path) -> None:
    one, other = make(folder, "one"), make(folder, "other")
    refuse([store(one), store(other)], "in the sandbox")
    refuse([data(one, "/data"), data(other, "/data/below")], "in the sandbox")


@pytest.mark.parametrize(
    "target",
    [
        "/mnt/memory/..",
        "/mnt/memory/../../etc",
        "/mnt/memory/a/b",
        "/mnt/memory/",
        "/mnt/memory",
        "/mnt/memory/A",
        "/mnt/memory/a\n",
        "/mnt/memory//a",
        "/mnt/memory/./a",
        "/mnt/memory/nо",  # the о is Cyrillic
        "/mnt/memory/" + "a" * 256,
        "/mnt/memory/-a",
        "/mnt/memory/.hidden",
        "/elsewhere/a",
        "mnt/memory/a",
        "",
    ],
)
def test_a_store_lies_at_its_slug_and_nowhere_else(folder: Path, target: str) -> None:
    refuse([Mount(folder, target)], "a store is mounted at /mnt/memory/SLUG")


@pytest.mark.parametrize("slug", ["a", "team-notes", "memstore-01abc", "a" * 255, "0", "a.b_c"])
def test_a_slug_is_a_place(folder: Path, slug: str) -> None:
    walls.check_mounts([store(folder, slug)])


@pytest.mark.parametrize(
    "target",
    [
        *("/", "/etc", "/etc/x", "/tmp", "/tmp/x", "/usr/lib", "/opt/memkernel", "/proc/self", "/sys", "/dev/x"),
        *("/var/run", "/home", "/home/sandbox", "/mnt", "/mnt/memory", "/mnt/memory/x", "/run", "/root"),
    ],
)
def test_a_persons_folder_does_not_cover_what_is_the_sandboxs_own(folder: Path, target: str) -> None:
    refuse([data(folder, target)], "the sandbox's own")


@pytest.mark.parametrize("target", ["data", "/data/..", "/data/../etc", "//data", "/data/", "/da\nta", "/da\0ta", ""])
def test_a_target_that_is_no_plain_path_is_refused(folder: Path, target: str) -> None:
    refuse([data(folder, target)], "no plain absolute path")


def test_a_persons_folder_is_read_only(folder: Path) -> None:
    refuse([data(folder, read_only=False)], "only memory stores are writable")


def test_neither_the_root_nor_home_nor_the_engines_socket_is_shown(folder: Path) -> None:
    home, run = make(folder, "people/me"), make(folder, "run")
    (run / "docker.sock").touch()
    guarded = {"home": home, "socket": run / "docker.sock"}
    for source in (Path("/"), home, home.parent, folder, run, run / "docker.sock"):
        refuse([data(source)], "a sandbox may not see", **guarded)
    walls.check_mounts([data(make(home, "project"))], **guarded)


@pytest.mark.parametrize(
    "source", ["/proc", "/proc/self", "/proc/1", "/sys", "/sys/kernel", "/dev", "/dev/shm", "/run"]
)
def test_processes_devices_and_services_are_not_shown(source: str) -> None:
    """The sandbox has the person's own uid: /proc/PID/root of their processes is the machine's disk, writable."""
    refuse([data(Path(os.path.realpath(source)))], "the machine's own")


@pytest.mark.as_root
def test_a_view_of_the_processes_elsewhere_is_not_shown_either(folder: Path) -> None:
    proc = make(folder, "jail/proc")
    subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
    try:
        refuse([data(proc)], "the machine's own")
        refuse([data(proc / "1")], "the machine's own")
    finally:
        subprocess.run(["umount", proc], check=True)


def test_a_link_to_the_socket_guards_what_it_leads_to(folder: Path) -> None:
    run = make(folder, "run")
    (run / "docker.sock").touch()
    (folder / "var").mkdir()
    (folder / "var" / "docker.sock").symlink_to(run / "docker.sock")
    refuse([data(run)], "a sandbox may not see", socket=folder / "var" / "docker.sock")


# -- the container ---------------------------------------------------------------------------------------------


def body(folder: Path, info: EngineInfo = ROOTFUL, **spec: Any) -> dict[str, Any]:
    whole = SandboxSpec("sesn_1", "inst_1", mounts=(store(folder), store(folder, "ro", read_only=True)), **spec)
    return walls.container(
        whole, image="sha256:1", main=["run", "me"], who=(1000, 1001), info=info, variables={"MK": "1"}, volumes=["/v"]
    )


def test_the_container_is_exactly_what_was_measured(folder: Path) -> None:
    """SANDBOX.md section 4, flag by flag."""
    private = "rw,noexec,nosuid,nodev"

    def bound(slug: str, read_only: bool) -> dict[str, Any]:
        options = {"Propagation": "rprivate", "NonRecursive": True}
        target = f"/mnt/memory/{slug}"
        return {"Type": "bind", "Source": str(folder), "Target": target, "ReadOnly": read_only, "BindOptions": options}

    assert body(folder)["HostConfig"] == {
        "Init": True,
        "NetworkMode": "none",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "ReadonlyRootfs": True,
        "Tmpfs": {
            "/tmp": f"{private},size=268435456,mode=1777",
            "/home/sandbox": f"{private},size=67108864,mode=700,uid=1000,gid=1001",
            "/v": f"{private},size=268435456,mode=1777",
        },
        "Mounts": [bound("notes", False), bound("ro", True)],
        "PidsLimit": 256,
        "Memory": 536870912,
        "MemorySwap": 536870912,
        "NanoCpus": 2000000000,
        "Ulimits": [
            {"Name": "nofile", "Soft": 1024, "Hard": 4096},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": 67108864, "Hard": 67108864},
        ],
        "IpcMode": "private",
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        "AutoRemove": False,
    }


def test_the_images_own_entrypoint_command_user_and_health_check_are_not_used(folder: Path) -> None:
    made = body(folder)
    assert (made["Entrypoint"], made["Cmd"], made["User"]) == (["run", "me"], [], "1000:1001")
    assert made["Healthcheck"] == {"Test": ["NONE"]}


def test_the_environment_is_memkernels_and_the_specs_and_nothing_of_the_host(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", "postgresql://secret")
    variables = dict(entry.split("=", 1) for entry in body(folder, environment={"A": "b", "MK": "2"})["Env"])
    assert variables == {
        "HOME": "/home/sandbox",
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "IPYTHONDIR": "/home/sandbox/.ipython",
        "PYTHONDONTWRITEBYTECODE": "1",
        "A": "b",
        "MK": "1",
    }


def test_the_labels_say_whose_container_it_is(folder: Path) -> None:
    assert body(folder)["Labels"] == {"org.memkernel.session": "sesn_1", "org.memkernel.installation": "inst_1"}


def test_more_cpus_than_there_are_become_all_that_there_are(folder: Path) -> None:
    """An engine refuses more; the usual two must work on a machine that has one."""
    assert body(folder, EngineInfo("rootful", "27", cpus=1))["HostConfig"]["NanoCpus"] == 1_000_000_000


def test_container_names_do_not_repeat() -> None:
    names = walls.names("x")
    found = {next(names) for _ in range(100)}
    assert len(found) == 100
    assert all(name.startswith("memkernel-x-") for name in found)
