"""Finding an engine and speaking to it: what answers, what does not, which version, and what becomes of its loss."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import pytest

from memkernel.errors import EngineError, EngineNotFoundError, SandboxClosedError
from memkernel.models import Settings
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine, find_engine
from tests.docker_daemon import APART, INSTALLATION, Daemon


def not_found(settings: Settings, host: str | None = None) -> EngineNotFoundError:
    """The error of a search that has to end in under a second."""
    began = time.monotonic()
    with pytest.raises(EngineNotFoundError) as raised:
        find_engine(settings, host)
    assert time.monotonic() - began < 1
    assert "--backend local" in raised.value.hint
    return raised.value


# -- nobody answers --------------------------------------------------------------------------------------


def test_a_socket_that_is_not_there_is_named_with_who_named_it(tmp_path: Path) -> None:
    error = not_found(Settings(docker_host=f"unix://{tmp_path}/docker.sock"))
    assert error.tried == (f"unix://{tmp_path}/docker.sock from DOCKER_HOST: there is no such socket",)


def test_a_file_that_is_no_socket_is_named(tmp_path: Path) -> None:
    (tmp_path / "docker.sock").touch()
    assert "nothing listens there" in str(not_found(Settings(), f"unix://{tmp_path}/docker.sock"))


def test_a_socket_that_a_dead_engine_left_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "docker.sock"))
    assert "nothing listens there" in str(not_found(Settings(), f"unix://{tmp_path}/docker.sock"))


def test_an_engine_that_accepts_and_never_answers_takes_less_than_a_second(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "docker.sock"))
        silent.listen()
        assert "it does not answer" in str(not_found(Settings(), f"unix://{tmp_path}/docker.sock"))


def test_a_tcp_engine_that_does_not_even_accept_takes_less_than_a_second() -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # until the queue of those that wait to be accepted is full
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        assert "it does not answer" in str(not_found(Settings(), f"tcp://127.0.0.1:{full.getsockname()[1]}"))


def test_a_tcp_port_where_nothing_listens_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        assert not_found(Settings(docker_host=host)).tried == (f"{host} from DOCKER_HOST: nothing listens there",)


def test_a_dead_engine_is_not_found_also_where_a_version_is_asked_for(tmp_path: Path) -> None:
    not_found(Settings(docker_api_version="1.41"), f"unix://{tmp_path}/docker.sock")


@pytest.mark.as_root
def test_an_account_that_may_not_connect_is_told_of_the_group(docker_engine: Engine) -> None:
    code = f"""
import os
import docker
from memkernel.errors import EngineNotFoundError
from memkernel.models import Settings
from memkernel.sandbox.engine import find_engine
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
try:
    find_engine(Settings(), {docker_engine.address.host!r})
except EngineNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "you may not connect to it (is your account in the group docker?)" in done.stdout


# -- engines of other ages ---------------------------------------------------------------------------------


class _UnixServer(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


ServeHttp = Callable[[Callable[[str], tuple[int, dict[str, str], bytes]]], str]


@pytest.fixture
def serve_http(tmp_path: Path) -> Iterator[ServeHttp]:
    """Serves HTTP on a unix socket: path to status, headers and body; its address."""
    with contextlib.ExitStack() as running:

        def serve(answer: Callable[[str], tuple[int, dict[str, str], bytes]]) -> str:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    status, headers, content = answer(self.path)
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(content)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)

                def address_string(self) -> str:
                    return "client"

                def log_message(self, format: str, *args: Any) -> None: ...

            server: HTTPServer | _UnixServer = _UnixServer(str(tmp_path / "http.sock"), Handler)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            running.callback(thread.join)
            running.callback(server.server_close)
            running.callback(server.shutdown)
            return f"unix://{tmp_path}/http.sock"

        yield serve


def test_an_engine_that_is_newer_than_the_sdk_is_spoken_to_in_its_own_version(serve_http: ServeHttp) -> None:
    """Fault 35: an engine whose oldest version is 1.44."""

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/_ping":
            return 200, {"Api-Version": "1.52"}, b"OK"
        version = path.split("/")[1]
        if version != "v1.52":
            too_old = f"client version {version[1:]} is too old. Minimum supported API version is 1.44"
            return 400, {"Content-Type": "application/json"}, json.dumps({"message": too_old}).encode()
        return 200, {"Content-Type": "application/json"}, b'{"ServerVersion": "29.0", "NCPU": 8}'

    host = serve_http(answer)
    with contextlib.closing(find_engine(Settings(), host)) as engine:
        assert (engine.version, engine.info.version) == ("1.52", "29.0")
    with (
        contextlib.closing(find_engine(Settings(docker_api_version="1.41"), host)) as engine,
        pytest.raises(EngineError, match=r"needs API version 1\.44 or newer, and 1\.41 was asked for") as raised,
    ):
        _ = engine.info
    assert "DOCKER_API_VERSION" in raised.value.hint


@pytest.mark.parametrize(
    ("status", "headers"), [(200, {}), (404, {}), (500, {"Api-Version": "1.41"}), (200, {"Api-Version": "x"})]
)
def test_what_speaks_http_and_is_no_engine_is_not_taken_for_one(
    serve_http: ServeHttp, status: int, headers: dict[str, str]
) -> None:
    not_found(Settings(), serve_http(lambda path: (status, headers, b"hello")))


# -- a real one --------------------------------------------------------------------------------------------


def test_the_engine_says_what_it_is(docker_engine: Engine) -> None:
    assert docker_engine.info.cpus >= 1
    assert docker_engine.info.version != "unknown"


def test_docker_api_version_is_honoured(docker_host: str) -> None:
    with contextlib.closing(find_engine(Settings(docker_api_version="1.30"), docker_host)) as engine:
        assert engine.version == "1.30"
        assert engine.info.cpus >= 1


def test_a_version_that_the_engine_does_not_know_is_an_error_that_names_both(docker_host: str) -> None:
    with (
        contextlib.closing(find_engine(Settings(docker_api_version="1.99"), docker_host)) as engine,
        pytest.raises(EngineError, match=r"knows API versions up to 1\.\d+, and 1\.99 was asked for"),
    ):
        _ = engine.info


def test_the_current_context_leads_to_the_engine(docker_host: str, tmp_path: Path) -> None:
    """Fault 36: `docker ps` works and nothing else does."""
    folder = tmp_path / "contexts" / "meta" / hashlib.sha256(b"mine").hexdigest()
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"Name": "mine", "Endpoints": {"docker": {"Host": docker_host}}}))
    (tmp_path / "config.json").write_text('{"currentContext": "mine"}')
    with contextlib.closing(find_engine(Settings(docker_config=str(tmp_path)))) as engine:
        assert engine.address.source == "context mine"


def test_proxies_of_the_environment_are_not_asked(docker_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with contextlib.closing(find_engine(Settings(), docker_host)) as engine:
        assert engine.info.cpus >= 1


def test_what_is_not_there_is_none_or_closed(docker_engine: Engine) -> None:
    assert docker_engine.image("memkernel-tests-no-such:1") is None
    assert docker_engine.network("memkernel-tests-no-such") is None
    with pytest.raises(SandboxClosedError, match="container was removed"):
        docker_engine.inspect("memkernel-tests-no-such")
    docker_engine.kill("memkernel-tests-no-such")
    docker_engine.remove("memkernel-tests-no-such")


def test_a_name_that_no_image_can_have_is_an_image_error(docker_engine: Engine) -> None:
    with pytest.raises(Exception, match="it is no name of an image"):
        list(docker_engine.pull("Not A Name"))


# -- TLS ---------------------------------------------------------------------------------------------------


def certificates(folder: Path) -> Path:
    """A CA, and a certificate of it for 127.0.0.1 that serves as the server's and the client's."""
    folder.mkdir()

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, check=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    openssl("req", *key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=memkernel")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    signing = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "names", "-days", "2")
    openssl("x509", "-req", "-in", "request.pem", *signing, "-out", "cert.pem")
    return folder


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.fixture
def daemon() -> Iterator[Callable[..., Daemon]]:
    """Starts engines of the test's own, beside the one that runs."""
    with contextlib.ExitStack() as running:

        def start(*flags: str, subordinate: str = "") -> Daemon:
            made = Daemon(flags=(*APART, *flags), subordinate=subordinate)
            running.callback(made.remove)
            made.start()
            return made

        yield start


@pytest.mark.as_root
@pytest.mark.docker
def test_an_engine_behind_tls_is_reached_with_the_certificates_and_only_so(
    daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    mine, strange = certificates(tmp_path / "mine"), certificates(tmp_path / "strange")
    host = f"tcp://127.0.0.1:{free_port()}"
    files = (f"--tlscacert={mine}/ca.pem", f"--tlscert={mine}/cert.pem", f"--tlskey={mine}/key.pem")
    daemon("--tlsverify", *files, f"--host={host}")
    settings = Settings(docker_host=host, docker_tls_verify=True, docker_cert_path=str(mine))
    with contextlib.closing(find_engine(settings)) as engine:
        assert engine.info.cpus >= 1
        assert engine.labelled("memkernel=nothing") == []
    assert "TLS failed" in str(
        not_found(Settings(docker_host=host, docker_tls_verify=True, docker_cert_path=str(strange)))
    )
    not_found(Settings(docker_host=host))


# -- its loss ----------------------------------------------------------------------------------------------


@pytest.mark.as_root
@pytest.mark.docker
def test_an_engine_that_dies_went_away_and_is_there_again_after_its_restart(daemon: Callable[..., Daemon]) -> None:
    mine = daemon()
    with contextlib.closing(mine.engine()) as engine:
        assert engine.info.cpus >= 1
        mine.kill()
        for ask in (lambda: engine.image("x"), lambda: engine.labelled("a=b"), lambda: engine.inspect("x")):
            with pytest.raises(EngineError, match="the Docker engine went away"):
                ask()
        mine.start()
        assert engine.image("x") is None


@pytest.mark.as_root
@pytest.mark.docker
def test_an_engine_that_maps_users_is_recognised_and_refused(daemon: Callable[..., Daemon]) -> None:
    ranges = "nobody:200000:65536\nnogroup:200000:65536\n"
    with contextlib.closing(daemon("--userns-remap=nobody:nogroup", subordinate=ranges).engine()) as engine:
        assert engine.info.kind == "remapped"
        sandbox = DockerSandbox(SandboxSpec("sesn_remapped", INSTALLATION), engine)
        with pytest.raises(EngineError, match="userns-remap"):
            sandbox.check()
