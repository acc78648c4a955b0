"""Where a Docker engine may be: explicit, DOCKER_HOST, the context, the usual sockets (fault 36)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from memkernel.errors import EngineNotFoundError, InvalidInputError
from memkernel.models import Settings

_USUAL: Final = "/var/run/docker.sock"
_VERSION: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a TLS connection; None where there is no such file."""

    ca: Path | None
    certificate: Path | None
    key: Path | None
    verify: bool


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine may be. `source` says who named it: `DOCKER_HOST`, `context NAME`, `default`."""

    host: str
    source: str
    tls: Tls | None = None

    def __str__(self) -> str:
        return self.host if self.source == "default" else f"{self.host} from {self.source}"

    @property
    def socket(self) -> Path | None:
        """The unix socket's path, where it is one."""
        scheme, _, path = self.host.partition("://")
        return Path(path) if scheme == "unix" else None


def addresses(settings: Settings, host: str | None = None) -> tuple[Address, ...]:
    """Where to look, in order. Who names an engine means that one: there is no falling back to another.

    Args:
        settings: what the environment says.
        host: an explicit address, above all others.

    Raises:
        EngineNotFoundError: the context that is chosen is not there.
        InvalidInputError: an address or version that is none.
    """
    if settings.docker_api_version and not _VERSION.fullmatch(settings.docker_api_version):
        raise InvalidInputError(
            f"DOCKER_API_VERSION={settings.docker_api_version!r} is no version", hint="Such as 1.41"
        )
    if host:
        return (_checked(Address(host, "the host given", _environment_tls(settings, host))),)
    if settings.docker_host:
        return (
            _checked(Address(settings.docker_host, "DOCKER_HOST", _environment_tls(settings, settings.docker_host))),
        )
    folder = _config_folder(settings)
    name = settings.docker_context or _current_context(folder)
    if name and name != "default":
        return (_checked(_context(folder, name)),)
    return tuple(Address(f"unix://{path}", "default") for path in _usual_sockets())


def _usual_sockets() -> list[str]:
    """The system's engine, then a rootless one of this account, then Docker Desktop's."""
    own = [f"/run/user/{os.getuid()}/docker.sock", str(Path("~/.docker/run/docker.sock").expanduser())]
    return [_USUAL, *(path for path in own if os.path.lexists(path))]


def _checked(address: Address) -> Address:
    if not re.fullmatch(r"(unix:///.+|(tcp|http|https|ssh)://[^/\s]+/?\S*|npipe://\S+)", address.host):
        raise InvalidInputError(
            f"{address.host!r} from {address.source} is no Docker address",
            hint="One looks like unix:///var/run/docker.sock or tcp://127.0.0.1:2376.",
        )
    return address


def _config_folder(settings: Settings) -> Path:
    return Path(settings.docker_config) if settings.docker_config else Path("~/.docker").expanduser()


def _environment_tls(settings: Settings, host: str) -> Tls | None:
    """As the docker command does: for TCP, where DOCKER_TLS_VERIFY or DOCKER_CERT_PATH asks for it."""
    wanted = settings.docker_tls_verify or settings.docker_cert_path
    if not wanted or not host.startswith(("tcp://", "https://")):
        return None
    folder = Path(settings.docker_cert_path) if settings.docker_cert_path else _config_folder(settings)
    return _tls(folder, verify=settings.docker_tls_verify)


def _tls(folder: Path, *, verify: bool) -> Tls:
    def there(name: str) -> Path | None:
        return folder / name if (folder / name).is_file() else None

    return Tls(there("ca.pem"), there("cert.pem"), there("key.pem"), verify)


def _json(path: Path) -> dict[str, Any]:
    """A JSON object of a file; empty where there is none, or another thing."""
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _current_context(folder: Path) -> str | None:
    name = _json(folder / "config.json").get("currentContext")
    return name if isinstance(name, str) else None


def _context(folder: Path, name: str) -> Address:
    """A context of the docker command's store: its files lie below the name's sha256."""
    source, key = f"context {name}", hashlib.sha256(name.encode()).hexdigest()
    endpoints = _json(folder / "contexts" / "meta" / key / "meta.json").get("Endpoints")
    docker = cast("dict[str, Any]", endpoints).get("docker") if isinstance(endpoints, dict) else None
    if not isinstance(docker, dict):
        raise EngineNotFoundError([f"{source}: there is no such context"])
    endpoint = cast("dict[str, Any]", docker)
    tls_folder = folder / "contexts" / "tls" / key / "docker"
    verify = not endpoint.get("SkipTLSVerify", False)
    tls = _tls(tls_folder, verify=verify) if tls_folder.is_dir() else None
    return Address(str(endpoint.get("Host", "")), source, tls)
