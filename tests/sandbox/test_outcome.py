"""What an engine's words mean. The texts were captured from engines (20.10 and newer, Docker Desktop)."""

from __future__ import annotations

import errno
import ssl
from urllib.error import URLError

import pytest

from memkernel.errors import (
    EngineError,
    ImageError,
    InvalidInputError,
    MemkernelError,
    MountError,
    SandboxClosedError,
)
from memkernel.sandbox.outcome import connection_trouble, exit_of, is_name_taken, refusal

ID = "7c28b619449a79f33660b8f4d12092543d7a9b67e2cf8e110ddb94eb934873e6"
OCI = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "

REFUSALS: list[tuple[str, type[MemkernelError], str]] = [
    (
        'invalid mount config for type "bind": bind source path does not exist: /nonexistent/x y',
        MountError,
        "/nonexistent/x y cannot be mounted: the Docker engine does not find it",
    ),
    (
        "Mounts denied: \nThe path /work is not shared from the host and is not known to Docker.",
        MountError,
        "/work cannot be mounted: Docker Desktop does not share it",
    ),
    (
        "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available",
        InvalidInputError,
        "this Docker engine gives 0.01 to 2.00 CPUs",
    ),
    ("Minimum memory limit allowed is 6MB", InvalidInputError, "this Docker engine gives at least 6MB of memory"),
    ("network nonet not found", InvalidInputError, "there is no Docker network nonet"),
    ("No such image: nosuch:1", ImageError, "image nosuch:1: it is not there"),
    (
        "pull access denied for nosuch/thing, repository does not exist or may require 'docker login'",
        ImageError,
        "image nosuch/thing: there is no such image, here or in its registry",
    ),
    (
        "manifest for python:3.99 not found: manifest unknown: manifest unknown",
        ImageError,
        "image python:3.99: its registry has no such tag",
    ),
    (
        'Get "https://registry.example/v2/": dial tcp: lookup registry.example on 192.0.2.53:53: no such host',
        EngineError,
        "the Docker engine cannot reach the image's registry",
    ),
    ("toomanyrequests: You have reached your pull rate limit.", EngineError, "gives no more downloads for now"),
    ("invalid reference format: repository name must be lowercase", EngineError, "it is no name of an image"),
    ("no matching manifest for linux/arm64/v8 in the manifest list entries", EngineError, "not made for this machine"),
    (
        OCI + 'exec: "python3": executable file not found in $PATH: unknown',
        EngineError,
        "the image has no python3",
    ),
    (
        OCI + 'exec: "/opt/x/python3": stat /opt/x/python3: no such file or directory: unknown',
        EngineError,
        "the image has no /opt/x/python3",
    ),
    ("No such container: nosuch", SandboxClosedError, "the sandbox's container was removed"),
    (f"Cannot kill container: {ID}: No such container: {ID}", SandboxClosedError, "container was removed"),
    (f"Container {ID} is not running", SandboxClosedError, "the sandbox's container has ended"),
    (f"removal of container {ID} is already in progress", SandboxClosedError, "is being removed"),
    (f"Container {ID} is paused, unpause the container before exec", EngineError, "the sandbox is paused"),
    (
        "client version 1.99 is too new. Maximum supported API version is 1.41",
        EngineError,
        "this Docker engine knows API versions up to 1.41, and 1.99 was asked for",
    ),
    (
        "client version 1.35 is too old. Minimum supported API version is 1.44, please upgrade your client",
        EngineError,
        "this Docker engine needs API version 1.44 or newer, and 1.35 was asked for",
    ),
    ("write /var/lib/docker/tmp/x: no space left on device", EngineError, "the Docker engine's disk is full"),
    ("cgroups: cgroup mountpoint does not exist: unknown", EngineError, "the Docker engine has no control groups"),
    ("The command '/bin/sh -c set -e' returned a non-zero code: 1", EngineError, "a step of the build failed"),
    ("something\nnobody saw before", EngineError, "the Docker engine refused to x: something nobody saw before"),
    ("", EngineError, "the Docker engine refused to x: no reason given"),
]


@pytest.mark.parametrize(("message", "kind", "said"), REFUSALS, ids=[said for _, _, said in REFUSALS])
def test_a_refusal_is_an_error_of_its_kind_in_one_plain_line(
    message: str, kind: type[MemkernelError], said: str
) -> None:
    error = refusal(message, doing="x")
    assert type(error) is kind
    assert said in str(error)
    assert "\n" not in str(error)


def test_what_concerns_an_image_names_it() -> None:
    error = refusal("dial tcp: lookup registry.example: no such host", image="python:3.12")
    assert isinstance(error, ImageError)
    assert str(error) == "image python:3.12: the Docker engine cannot reach the image's registry"
    assert error.hint


def test_a_very_long_refusal_is_cut() -> None:
    assert len(str(refusal("x" * 100_000))) < 400


def test_a_name_that_is_taken_is_told_from_other_conflicts() -> None:
    taken = f'Conflict. The container name "/mine" is already in use by container "{ID}". You have to remove it.'
    assert is_name_taken(taken)
    assert not is_name_taken(f"Container {ID} is not running")


# -- connections ---------------------------------------------------------------------------------------


def wrapped(cause: BaseException) -> Exception:
    """As requests and urllib3 hand a cause on: in their arguments, as a reason, as a context."""
    outer = URLError(cause if isinstance(cause, OSError) else str(cause))
    outer.__context__ = cause
    return RuntimeError("('Connection aborted.', ...)", outer)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "there is no such socket"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "nothing listens there"),
        (PermissionError(errno.EACCES, "Permission denied"), "you may not connect to it (is your account in the group"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "it hung up"),
        (TimeoutError("timed out"), "it does not answer"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "TLS failed"),
        (OSError("[Errno -2] Name or service not known"), "there is no such host"),
    ],
)
def test_why_an_engine_cannot_be_spoken_to_is_found_below_all_wrappings(cause: Exception, said: str) -> None:
    assert connection_trouble(wrapped(cause)).startswith(said)


def test_causes_that_go_round_in_a_circle_end() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__context__, other.__context__ = other, one
    assert connection_trouble(one) == "one"


# -- ends ------------------------------------------------------------------------------------------------


def test_a_kernel_that_was_killed_for_memory_ran_out_of_memory() -> None:
    assert exit_of({"OOMKilled": True, "ExitCode": 137, "Error": ""}).out_of_memory


def test_a_child_that_was_killed_for_memory_is_not_the_kernels_end() -> None:
    found = exit_of({"OOMKilled": True, "ExitCode": 0, "Error": ""})
    assert not found.out_of_memory
    assert found.exit_code == 0


@pytest.mark.parametrize("status", ["removing", "dead"])
def test_a_container_that_is_being_removed_did_not_end_by_itself(status: str) -> None:
    found = exit_of({"Status": status, "ExitCode": 137, "OOMKilled": True, "Error": ""})
    assert (found.removed, found.out_of_memory) == (True, False)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "it ended"),
        (3, "it ended with exit code 3"),
        (134, "it aborted (SIGABRT)"),
        (137, "it was killed (SIGKILL)"),
        (139, "it crashed (SIGSEGV)"),
        (143, "it was ended (SIGTERM)"),
        (160, "it was ended by signal 32"),
    ],
)
def test_an_exit_code_is_said_in_words(code: int, said: str) -> None:
    assert exit_of({"ExitCode": code, "OOMKilled": False, "Error": ""}).detail == said


def test_the_engines_own_words_on_an_end_come_first() -> None:
    assert exit_of({"ExitCode": 127, "Error": 'exec: "python3":\n not found'}).detail == 'exec: "python3": not found'
