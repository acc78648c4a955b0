"""The image that a sandbox runs: the shipped one, built at first use, or a person's own; with packages built in."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Final, cast

from memkernel.errors import EngineError, ImageError
from memkernel.sandbox import walls
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.outcome import NO_PROGRAM, refusal

Progress = Callable[[str, float | None], None]

BASE_IMAGE: Final = "python:3.12-slim"
REQUIREMENTS: Final = ("ipykernel==7.4.0",)
REPOSITORY: Final = "memkernel-sandbox"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_BUILDERS_OWN: Final = ("--->", "Removing intermediate container", "Step ")
_STEP: Final = re.compile(r"Step (\d+)/(\d+)")
_ARCHITECTURES: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64"}
_DOWNLOAD_S: Final = 600.0

LOOK_S: Final = 60.0
"""How long the python3 of a person's own image may take to say what it is."""

_WITH_PACKAGES: Final = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER 0:0
COPY wheels /tmp/wheels
COPY requirements.txt /tmp/requirements.txt
RUN set -e; \\
    if ls /tmp/wheels/*.whl >/dev/null 2>&1; then from="--no-index --find-links /tmp/wheels"; fi; \\
    python3 -m pip install --no-cache-dir --disable-pip-version-check ${from:-} -r /tmp/requirements.txt; \\
    rm -rf /tmp/wheels /tmp/requirements.txt
"""

_PROBE: Final = r"""
import json, sys
try:
    import ipykernel
    kernel = ipykernel.__version__
except ImportError:
    kernel = ""
print(json.dumps({"python": list(sys.version_info[:2]), "ipykernel": kernel}))
"""


def shipped_dockerfile() -> str:
    """The text of the Dockerfile that memkernel brings."""
    return files("memkernel.sandbox").joinpath("Dockerfile").read_text()


def volumes(engine: Engine, image: str) -> tuple[str, ...]:
    """The paths that an image declares as volumes."""
    config: dict[str, Any] = (engine.image(image) or {}).get("Config") or {}
    return tuple(config.get("Volumes") or ())


def tag_of(*parts: str) -> str:
    """The tag of an image that is made of these parts."""
    return f"{REPOSITORY}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


_KNOWN: Final[dict[str, dict[str, Any]]] = {}
"""What was asked of an image, by its id, which is of its content."""


class Images:
    """The images of an engine, made where they are not there yet.

    Args:
        engine: where.
        installation_id: whose the containers are that look at an image.
        progress: is told what is done, and how far (0 to 1).
    """

    def __init__(self, engine: Engine, installation_id: str = "", progress: Progress | None = None) -> None:
        self._engine, self._installation_id = engine, installation_id
        self._tell: Progress = progress or (lambda text, fraction: None)

    def ensure(self, image: str | None = None, packages: Sequence[str] = (), base: str = BASE_IMAGE) -> str:
        """The id of the image to run, fetched and built where it is not there yet.

        Args:
            image: a person's own; None is the shipped one.
            packages: pip requirements to build in.
            base: what the shipped one is built on.

        Raises:
            ImageError: it cannot be fetched or built, or lacks what a kernel needs.
            EngineError: the engine refused or went away.
        """
        found = self._own(image) if image else self._shipped(base)
        return self._with_packages(found, packages) if packages else found

    # -- a person's own ------------------------------------------------------------------------------

    def _own(self, name: str) -> str:
        identity = self._fetched(name)
        facts = self._facts(identity, name)
        if tuple(facts["python"]) < (3, 8):
            version = ".".join(map(str, facts["python"]))
            raise ImageError(name, f"its python3 is {version}", hint="A sandbox's image needs Python 3.8 or newer.")
        if not facts["ipykernel"]:
            raise ImageError(name, "it has no ipykernel", hint="Add `RUN pip install ipykernel` to its Dockerfile.")
        return identity

    def _fetched(self, name: str) -> str:
        """The id of an image, pulled where it is not there."""
        if found := self._engine.image(name):
            return str(found["Id"])
        self._tell(f"fetching the image {name}", None)
        layers: dict[str, float] = {}
        for event in self._engine.pull(name):
            _raise_if_failed(event, name)
            detail: dict[str, int] = event.get("progressDetail") or {}
            if detail.get("total"):
                layers[str(event.get("id"))] = detail.get("current", 0) / detail["total"]
                self._tell(f"fetching the image {name}", min(1.0, sum(layers.values()) / max(4, len(layers))))
        found = self._engine.image(name)
        if not found:
            raise ImageError(name, "it is not there", hint="`docker images` lists what is there.")
        return str(found["Id"])

    def _facts(self, identity: str, name: str) -> dict[str, Any]:
        """What a kernel needs of an image, asked in a container of it without network; once an image and process."""
        if identity not in _KNOWN:
            _KNOWN[identity] = self._asked(identity, name)
        return _KNOWN[identity]

    def _asked(self, identity: str, name: str) -> dict[str, Any]:
        body = walls.container(
            SandboxSpec(session_id="", installation_id=self._installation_id),
            image=identity,
            main=["python3", "-c", _PROBE],
            who=(65534, 65534),
            info=self._engine.info,
            variables={},
            volumes=volumes(self._engine, identity),
            labels={walls.LABEL_LOOK: str(int(time.time()))},
        )
        said = self._said(body)
        for line in reversed(said.splitlines()):
            with contextlib.suppress(ValueError):
                found: object = json.loads(line)
                if isinstance(found, dict) and {"python", "ipykernel"} <= found.keys():
                    return cast("dict[str, Any]", found)
        words = " ".join(said.split())[-200:] or "it said nothing"
        hint = "A sandbox's image needs python3 with ipykernel."
        raise ImageError(name, f"python3 cannot be run in it ({words})", hint=hint)

    def _said(self, body: Mapping[str, Any]) -> str:
        """What the command of a container says until its end; why it could not be started."""
        container = self._engine.create(body, walls.names("look"))
        timer = threading.Timer(LOOK_S, self._engine.kill, [container])
        try:
            self._engine.start(container)
            timer.start()
            self._engine.wait(container)
            return self._engine.logs(container) or ("" if timer.is_alive() else f"no answer in {LOOK_S:g} seconds")
        except EngineError as error:
            if not str(error).startswith(NO_PROGRAM):
                raise
            return str(error)
        finally:
            timer.cancel()
            self._engine.remove(container)

    # -- the shipped one, and packages ---------------------------------------------------------------

    def _shipped(self, base: str) -> str:
        dockerfile = shipped_dockerfile()
        tag = tag_of(dockerfile, *REQUIREMENTS, base)
        if found := self._engine.image(tag):
            return str(found["Id"])
        self._fetched(base)
        arguments = {"BASE_IMAGE": base, "REQUIREMENTS": " ".join(REQUIREMENTS)}
        return self._built(tag, dockerfile, base, REQUIREMENTS, arguments)

    def _with_packages(self, identity: str, packages: Sequence[str]) -> str:
        wanted = sorted(packages)
        tag = tag_of(_WITH_PACKAGES, *wanted, identity)
        if found := self._engine.image(tag):
            return str(found["Id"])
        return self._built(tag, _WITH_PACKAGES, identity, wanted, {"BASE_IMAGE": identity})

    def _built(
        self,
        tag: str,
        dockerfile: str,
        base: str,
        requirements: Sequence[str],
        arguments: Mapping[str, str],
    ) -> str:
        """Build an image. Where it can, pip of this machine fetches the wheels: it knows index, proxy and CA."""
        with tempfile.TemporaryDirectory(prefix="memkernel-image-") as scratch:
            wheels = Path(scratch)
            self._tell("fetching packages", None)
            offline = self._download(base, requirements, wheels)
            with tempfile.TemporaryFile() as context:
                _write_context(context, dockerfile, requirements, wheels.glob("*.whl") if offline else ())
                context.seek(0)
                self._follow(
                    self._engine.build(context, tag, arguments=arguments, network="none" if offline else None), tag
                )
        found = self._engine.image(tag)
        if not found:
            raise ImageError(tag, "the engine built it and does not have it", hint="Try again.")
        return str(found["Id"])

    def _download(self, base: str, requirements: Sequence[str], folder: Path) -> bool:
        """Fetch the wheels for the image's Python with this machine's pip; whether that worked."""
        inspection = self._engine.image(base) or {}
        machine = _ARCHITECTURES.get(str(inspection.get("Architecture")))
        if machine is None or not _has_pip():
            return False
        version = ".".join(map(str, self._facts(str(inspection["Id"]), base)["python"]))
        platforms = [f"--platform={name}_{machine}" for name in ("manylinux_2_28", "manylinux2014", "manylinux_2_17")]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
        options = ["--only-binary=:all:", "--implementation=cp", f"--python-version={version}", *platforms]
        try:
            done = subprocess.run(
                [*command, *options, f"--dest={folder}", "--", *requirements],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_DOWNLOAD_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _follow(self, events: Iterator[dict[str, Any]], tag: str) -> None:
        said = ""
        for event in events:
            _raise_if_failed(event, tag, said)
            line = _COLOURS.sub("", str(event.get("stream", ""))).strip()
            said = line if line and not line.startswith(_BUILDERS_OWN) else said
            if step := _STEP.match(line):
                self._tell("building the sandbox's image", (int(step[1]) - 1) / int(step[2]))
            elif line:
                self._tell(line[:120], None)
        self._tell("the sandbox's image is built", 1.0)


@cache
def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _write_context(out: IO[bytes], dockerfile: str, requirements: Sequence[str], wheels: Iterable[Path]) -> None:
    with tarfile.open(fileobj=out, mode="w") as tar:

        def add(name: str, content: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))

        add("Dockerfile", dockerfile.encode())
        add("requirements.txt", "".join(f"{one}\n" for one in requirements).encode())
        folder = tarfile.TarInfo("wheels")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        for wheel in sorted(wheels):
            add(f"wheels/{wheel.name}", wheel.read_bytes())


def _raise_if_failed(event: Mapping[str, Any], name: str, said: str = "") -> None:
    if failure := event.get("error"):
        error = refusal(str(failure), doing="make the image")
        if isinstance(error, ImageError):
            raise error
        last = f" ({said[:200]})" if said else ""
        raise ImageError(name, f"{error}{last}", hint=error.hint)
