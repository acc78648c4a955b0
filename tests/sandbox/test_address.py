"""Where an engine is looked for (fault 36): explicit, DOCKER_HOST, the context, the usual sockets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from memkernel.errors import EngineNotFoundError, InvalidInputError
from memkernel.models import Settings
from memkernel.sandbox.address import Tls, addresses


def write_context(config: Path, name: str, host: str, *, skip_verify: bool = False) -> Path:
    """A context as the docker command stores it; its folder of TLS files, which is not made."""
    key = hashlib.sha256(name.encode()).hexdigest()
    folder = config / "contexts" / "meta" / key
    folder.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": skip_verify}
    (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    return config / "contexts" / "tls" / key / "docker"


def hosts(settings: Settings, host: str | None = None) -> list[str]:
    return [str(address) for address in addresses(settings, host)]


def test_without_anything_the_usual_sockets_are_tried(tmp_path: Path) -> None:
    assert hosts(Settings(docker_config=str(tmp_path)))[0] == "unix:///var/run/docker.sock"


def test_an_explicit_address_is_above_docker_host_and_the_context(tmp_path: Path) -> None:
    settings = Settings(docker_host="unix:///environment", docker_context="mine", docker_config=str(tmp_path))
    assert hosts(settings, "unix:///explicit") == ["unix:///explicit from the host given"]


def test_docker_host_is_above_the_context(tmp_path: Path) -> None:
    write_context(tmp_path, "mine", "unix:///context")
    settings = Settings(docker_host="unix:///environment", docker_context="mine", docker_config=str(tmp_path))
    assert hosts(settings) == ["unix:///environment from DOCKER_HOST"]


def test_the_current_context_of_the_config_file_is_used(tmp_path: Path) -> None:
    write_context(tmp_path, "rootless", "unix:///run/user/1000/docker.sock")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "rootless"}))
    assert hosts(Settings(docker_config=str(tmp_path))) == ["unix:///run/user/1000/docker.sock from context rootless"]


def test_docker_context_is_above_the_current_one(tmp_path: Path) -> None:
    write_context(tmp_path, "one", "unix:///one")
    write_context(tmp_path, "other", "unix:///other")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "one"}))
    settings = Settings(docker_context="other", docker_config=str(tmp_path))
    assert hosts(settings) == ["unix:///other from context other"]


def test_the_context_default_means_the_usual_sockets(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "default"}))
    assert hosts(Settings(docker_config=str(tmp_path)))[0] == "unix:///var/run/docker.sock"


def test_a_context_that_is_not_there_is_said_and_no_other_engine_is_taken(tmp_path: Path) -> None:
    with pytest.raises(EngineNotFoundError, match="context gone: there is no such context"):
        addresses(Settings(docker_context="gone", docker_config=str(tmp_path)))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"currentContext": 7}', "\ufeff{}"])
def test_a_broken_config_file_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert hosts(Settings(docker_config=str(tmp_path)))[0] == "unix:///var/run/docker.sock"


@pytest.mark.parametrize("text", ["", "[]", '{"Endpoints": {"docker": 7}}', '{"Endpoints": []}', '{"Endpoints": {}}'])
def test_a_broken_context_counts_as_none(tmp_path: Path, text: str) -> None:
    write_context(tmp_path, "mine", "unix:///x")
    next(tmp_path.glob("contexts/meta/*/meta.json")).write_text(text)
    with pytest.raises(EngineNotFoundError, match="there is no such context"):
        addresses(Settings(docker_context="mine", docker_config=str(tmp_path)))


@pytest.mark.parametrize("host", ["unix://", "/var/run/docker.sock", "ftp://x", "tcp://", "docker", "unix:///a\n", ""])
def test_an_address_that_is_none_is_refused_with_an_example(tmp_path: Path, host: str) -> None:
    write_context(tmp_path, "mine", host)
    with pytest.raises(InvalidInputError, match="is no Docker address") as raised:
        addresses(Settings(docker_context="mine", docker_config=str(tmp_path)))
    assert "unix:///var/run/docker.sock" in raised.value.hint


@pytest.mark.parametrize("version", ["1", "auto", "1.41.0", "v1.41"])
def test_a_docker_api_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(InvalidInputError, match="DOCKER_API_VERSION"):
        addresses(Settings(docker_api_version=version))


# -- TLS -------------------------------------------------------------------------------------------------


def write_certificates(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (folder / name).touch()
    return folder


def tls_of(settings: Settings) -> Tls | None:
    return addresses(settings)[0].tls


def test_docker_tls_verify_takes_the_files_of_docker_cert_path(tmp_path: Path) -> None:
    folder = write_certificates(tmp_path / "certificates")
    settings = Settings(docker_host="tcp://127.0.0.1:2376", docker_tls_verify=True, docker_cert_path=str(folder))
    assert tls_of(settings) == Tls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", verify=True)


def test_docker_tls_verify_alone_takes_the_files_of_the_config_folder(tmp_path: Path) -> None:
    write_certificates(tmp_path)
    settings = Settings(docker_host="tcp://127.0.0.1:2376", docker_tls_verify=True, docker_config=str(tmp_path))
    assert tls_of(settings) == Tls(tmp_path / "ca.pem", tmp_path / "cert.pem", tmp_path / "key.pem", verify=True)


def test_docker_cert_path_alone_is_tls_that_verifies_nothing(tmp_path: Path) -> None:
    settings = Settings(docker_host="tcp://127.0.0.1:2376", docker_cert_path=str(tmp_path))
    assert tls_of(settings) == Tls(None, None, None, verify=False)


def test_a_socket_has_no_tls_whatever_the_environment_says(tmp_path: Path) -> None:
    settings = Settings(docker_host="unix:///x", docker_tls_verify=True, docker_cert_path=str(tmp_path))
    assert tls_of(settings) is None


@pytest.mark.parametrize("skip_verify", [False, True])
def test_a_context_brings_its_own_tls_files(tmp_path: Path, skip_verify: bool) -> None:
    folder = write_certificates(write_context(tmp_path, "far", "tcp://127.0.0.1:2376", skip_verify=skip_verify))
    found = tls_of(Settings(docker_context="far", docker_config=str(tmp_path)))
    assert found == Tls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", verify=not skip_verify)


def test_docker_tls_verify_says_nothing_about_a_context(tmp_path: Path) -> None:
    write_context(tmp_path, "plain", "tcp://127.0.0.1:2375")
    settings = Settings(docker_context="plain", docker_tls_verify=True, docker_config=str(tmp_path))
    assert tls_of(settings) is None
