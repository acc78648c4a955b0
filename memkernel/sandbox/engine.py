"""The Docker engine: found, asked, its refusals turned into errors of memkernel. Only this module knows the SDK."""

from __future__ import annotations

import importlib
import re
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal, cast

from memkernel.errors import EngineError, EngineNotFoundError, SandboxClosedError
from memkernel.models import Settings
from memkernel.sandbox import outcome
from memkernel.sandbox.address import Address, addresses
from memkernel.sandbox.channel import ExecChannel

if TYPE_CHECKING:
    from docker import APIClient

_FIND_S: Final = 0.7
"""No engine is said in under a second, wherever it was looked for."""
_CALL_S: Final = 60.0
_STABLE: Final = "1.24"
"""A version that the SDK accepts; the ping does without one."""

EngineKind = Literal["rootful", "rootless", "remapped", "desktop"]


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself.

    Attributes:
        kind: who is root in its containers: root of the host, the account that runs it, an account of a
            mapped range, or somebody in Docker Desktop's machine.
        unlimited: the limits that it cannot enforce, in a person's words.
        seccomp: whether it filters system calls.
    """

    kind: EngineKind
    version: str
    cpus: int
    unlimited: tuple[str, ...] = ()
    seccomp: bool = True

    @classmethod
    def read(cls, info: Mapping[str, Any]) -> EngineInfo:
        """Read the answer to `GET /info`."""
        options = [str(option) for option in info.get("SecurityOptions") or ()]
        named = {option.partition("name=")[2].split(",")[0] for option in options}
        limits = {"memory": "MemoryLimit", "CPU time": "CpuCfsQuota", "processes": "PidsLimit"}
        return cls(
            _kind(named, str(info.get("OperatingSystem") or "")),
            str(info.get("ServerVersion") or "unknown"),
            max(1, int(info.get("NCPU") or 1)),
            tuple(words for words, field in limits.items() if info.get(field) is False),
            "seccomp" in named and not any("profile=unconfined" in option for option in options),
        )


def _kind(named: set[str], system: str) -> EngineKind:
    if "rootless" in named:
        return "rootless"
    if "userns" in named:
        return "remapped"
    return "desktop" if system == "Docker Desktop" else "rootful"


def find_engine(settings: Settings, host: str | None = None) -> Engine:
    """The engine that answers, in under a second.

    Args:
        settings: what the environment says of Docker.
        host: an explicit address, above all others.

    Raises:
        EngineNotFoundError: none answers; it lists where it was looked for.
        EngineError: one does, and does not speak the API version that is asked for.
        InvalidInputError: an address or version that is none.
    """
    importlib.import_module("docker")  # a part of the second, where it is the first time, and not of the engine's time

    tried: list[str] = []
    deadline = time.monotonic() + _FIND_S
    for address in addresses(settings, host):
        try:
            left = max(0.1, deadline - time.monotonic())
            _reach(address, left)
            served = _served_version(address, left)
        except Exception as error:  # the SDK lets errors of several libraries through
            tried.append(f"{address}: {outcome.connection_trouble(error)}")
            continue
        return Engine(address, settings.docker_api_version or served)
    raise EngineNotFoundError(tried)


def _reach(address: Address, timeout_s: float) -> None:
    """Connect to a unix socket and hang up: where that fails, the SDK would leave a socket open.

    Raises:
        OSError: nobody listens there.
    """
    if address.socket is not None:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(timeout_s)
            trial.connect(str(address.socket))


def _served_version(address: Address, timeout_s: float) -> str:
    """The API version that an engine offers: its ping says so without starting a process, unlike /version."""
    with closing(_client(address, _STABLE, timeout_s)) as client:
        answer = client.get(f"{client.base_url}/_ping", timeout=timeout_s)
        answer.raise_for_status()
        version = answer.headers.get("Api-Version", "")
        if not re.fullmatch(r"\d+\.\d+", version):
            raise OSError("what answers there is no Docker engine")
        return version


def _client(address: Address, version: str, timeout_s: float | None) -> APIClient:
    from docker import APIClient
    from docker.tls import TLSConfig

    tls: TLSConfig | bool = False
    if address.tls:
        files = address.tls
        pair = (str(files.certificate), str(files.key)) if files.certificate and files.key else None
        tls = TLSConfig(client_cert=pair, ca_cert=str(files.ca) if files.ca else None, verify=files.verify)
    client = APIClient(
        base_url=address.host,
        version=version,
        timeout=cast("int", timeout_s),
        tls=tls,
        use_ssh_client=address.host.startswith("ssh://"),
    )
    # The SDK keeps a connection for each address it ever asked; after an engine's restart each would fail once.
    client.headers["Connection"] = "close"
    client.trust_env = False  # a proxy of the environment is for the world outside, and .netrc is nobody's business
    return client


class Engine:
    """An engine that answered. Safe for threads.

    Every method raises EngineError where it refuses or went away, SandboxClosedError where the container is gone,
    and what else `outcome.refusal` makes of its answer.
    """

    def __init__(self, address: Address, version: str) -> None:
        self.address = address
        self.version = version
        with _translated("connect"):
            self._api: Any = _client(address, version, _CALL_S)  # the SDK has types for a part of itself only
        self._info: EngineInfo | None = None

    def close(self) -> None:
        """Close its connections."""
        self._api.close()

    @property
    def owner(self) -> tuple[int, int] | None:
        """The account that owns its unix socket: a rootless engine's own. The socket's group may be a mapped one."""
        import pwd

        try:
            found = self.address.socket.stat() if self.address.socket else None
        except OSError:
            return None
        if found is None:
            return None
        try:
            return found.st_uid, pwd.getpwuid(found.st_uid).pw_gid
        except KeyError:
            return found.st_uid, found.st_gid

    @property
    def info(self) -> EngineInfo:
        """What it says of itself, asked once."""
        if self._info is None:
            with self._asking("describe itself"):
                self._info = EngineInfo.read(self._api.info())
        return self._info

    @contextmanager
    def _asking(self, doing: str, *, image: str = "") -> Generator[None]:
        with _translated(doing, image=image):
            _reach(self.address, _CALL_S)
            yield

    # -- containers --------------------------------------------------------------------------------

    def create(self, config: Mapping[str, Any], names: Iterator[str]) -> str:
        """Create a container from the API's own body, under the first name that is free (fault 41); its id."""
        while True:
            try:
                with self._asking("create the container"):
                    created = self._api.create_container_from_config(dict(config), next(names))
                    return str(created["Id"])
            except EngineError as error:
                if not outcome.is_name_taken(str(error.__cause__)):
                    raise

    def start(self, container: str) -> None:
        """Start it."""
        with self._asking("start the container"):
            self._api.start(container)

    def kill(self, container: str) -> None:
        """End all that runs in it at once; nothing where it has ended or is gone."""
        try:
            with self._asking("end the container"):
                self._api.kill(container)
        except SandboxClosedError:
            return

    def remove(self, container: str) -> None:
        """Remove it, running or not, with its anonymous volumes; nothing where it is gone."""
        try:
            with self._asking("remove the container"):
                self._api.remove_container(container, v=True, force=True)
        except SandboxClosedError:
            return

    def pause(self, container: str) -> None:
        """Stop the clock for all that runs in it."""
        with self._asking("pause the container"):
            self._api.pause(container)

    def unpause(self, container: str) -> None:
        """Let it run on."""
        with self._asking("unpause the container"):
            self._api.unpause(container)

    def state(self, container: str) -> dict[str, Any]:
        """`State` of its inspection."""
        return self.inspect(container)["State"]

    def inspect(self, container: str) -> dict[str, Any]:
        """All that the engine knows of it."""
        with self._asking("inspect the container"):
            return self._api.inspect_container(container)

    def wait(self, container: str) -> None:
        """Block until it does not run any more."""
        with self._asking("wait for the container"), closing(_client(self.address, self.version, None)) as client:
            client.wait(container)

    def logs(self, container: str, lines: int = 100) -> str:
        """The last lines that its main process wrote."""
        with self._asking("show the container's log"):
            return cast("bytes", self._api.logs(container, tail=lines)).decode(errors="replace")

    def ran_out_of_memory(self, container: str, since: float) -> bool:
        """Whether anything in it was killed for memory since that moment (Unix time); works while it runs."""
        window = {"since": int(since), "until": f"{time.time():.9f}"}
        with self._asking("list the container's events"):
            events = self._api.events(**window, filters={"container": container, "event": "oom"}, decode=True)
            return any(True for _ in events)

    def labelled(self, *labels: str) -> list[tuple[str, Mapping[str, str]]]:
        """The containers, running or not, that have all the labels (`NAME=VALUE`): id and labels of each."""
        with self._asking("list containers"):
            found: list[dict[str, Any]] = self._api.containers(all=True, filters={"label": list(labels)})
        return [(str(one["Id"]), one.get("Labels") or {}) for one in found]

    def execute(self, container: str, argv: Sequence[str]) -> ExecChannel:
        """Start a command in a running container, as its user; the channel to it. The host speaks first.

        The command has started when this returns. The container may not be paused before: the engine would hold
        its lock until the frozen start goes on, and neither unpause nor remove nor inspect it (seen in 20.10).
        """
        with self._asking("run a command in the container"):
            made = self._api.exec_create(container, list(argv), stdin=True)
            identity = str(made["Id"])
            stream: Any = self._api.exec_start(identity, socket=True)
            channel = ExecChannel(stream, lambda: self._command(identity)["ExitCode"])
            try:
                self._await_start(identity)
            except BaseException:
                channel.close()
                raise
        return channel

    def _command(self, identity: str) -> dict[str, Any]:
        with self._asking("inspect a command"):
            return self._api.exec_inspect(identity)

    def _await_start(self, identity: str) -> None:
        deadline = time.monotonic() + _CALL_S
        while True:
            found = self._command(identity)
            if found["Pid"] or found["ExitCode"] is not None:
                return
            if time.monotonic() > deadline:
                raise EngineError("the Docker engine did not start a command in the container")
            time.sleep(0.005)

    # -- images and networks -----------------------------------------------------------------------

    def image(self, name: str) -> dict[str, Any] | None:
        """An image's inspection; None where it is not there."""
        return self._found("inspect the image", lambda: self._api.inspect_image(name), image=name)

    def network(self, name: str) -> dict[str, Any] | None:
        """A network's inspection; None where there is none of this name."""
        return self._found("inspect the network", lambda: self._api.inspect_network(name))

    def _found(self, doing: str, ask: Callable[[], Any], *, image: str = "") -> dict[str, Any] | None:
        from docker.errors import NotFound

        with self._asking(doing, image=image):
            try:
                return ask()
            except NotFound:
                return None

    def pull(self, name: str) -> Iterator[dict[str, Any]]:
        """Fetch an image from its registry; the engine's events."""
        repository, tag = _split(name)
        with self._asking(f"pull {name}", image=name):
            yield from self._api.pull(repository, tag, stream=True, decode=True)

    def build(
        self, context: IO[bytes], tag: str, *, arguments: Mapping[str, str], network: str | None
    ) -> Iterator[dict[str, Any]]:
        """Build an image from a tar of its context; the engine's events. The tag is there only once all is built."""
        with self._asking("build the image", image=tag):
            events = self._api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                network_mode=network,
                rm=True,
                forcerm=True,
                decode=True,
                timeout=1800,
            )
            yield from events


def _split(name: str) -> tuple[str, str | None]:
    """Repository and tag; a digest counts as part of the repository, and no tag means `latest`."""
    if "@" in name:
        return name, None
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


@contextmanager
def _translated(doing: str, *, image: str = "") -> Generator[None]:
    """Turn what the SDK and the libraries below it raise into errors of memkernel."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except APIError as error:
        raise outcome.refusal(str(error.explanation or error), doing=doing, image=image) from error
    except (DockerException, RequestException, HTTPError, OSError) as error:
        trouble = outcome.connection_trouble(error)
        raise EngineError(f"the Docker engine went away: {trouble}", hint="Start Docker again.") from error
