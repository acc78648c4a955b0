"""The image: shipped, one's own, with packages; what is missing is said in a sentence."""

from __future__ import annotations

import io
import itertools
import os
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memkernel.errors import ImageError, InvalidInputError
from memkernel.sandbox import walls
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.image import REPOSITORY, REQUIREMENTS, Images, shipped_dockerfile, tag_of
from tests.docker_daemon import OFFLINE_BASE

MakeImage = Callable[..., str]
INSTALLATION = f"tests-image-{os.getpid()}"  # its own: what it counts is not a neighbour's
_numbers = itertools.count(os.getpid() * 1000)


@pytest.fixture
def make_image(docker_engine: Engine, sandbox_image: str) -> Iterator[MakeImage]:
    """Builds small images on the shipped one (or another), and takes them away again; the tag of each."""
    made: list[str] = []

    def make(*lines: str, base: str = sandbox_image) -> str:
        tag = f"memkernel-tests-own:{next(_numbers)}"
        dockerfile = "\n".join([f"FROM {base}", *lines]).encode()
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as tar:
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(dockerfile)
            tar.addfile(entry, io.BytesIO(dockerfile))
        context.seek(0)
        events = list(docker_engine.build(context, tag, arguments={}, network="none"))
        assert docker_engine.image(tag), events
        made.append(tag)
        return tag

    yield make
    for tag in made:
        remove_image(docker_engine, tag)


def remove_image(engine: Engine, tag: str) -> None:
    engine._api.remove_image(tag, force=True)  # pyright: ignore[reportPrivateUsage]  # memkernel itself removes none


Start = Callable[..., DockerSandbox]


@pytest.fixture
def start(docker_engine: Engine) -> Iterator[Start]:
    """Starts sandboxes of an image, and stops them."""
    started: list[DockerSandbox] = []

    def begin(image: str, **more: Any) -> DockerSandbox:
        spec = SandboxSpec(f"sesn_image{next(_numbers)}", INSTALLATION, image=image, **more)
        started.append(DockerSandbox(spec, docker_engine))
        started[-1].start()
        return started[-1]

    yield begin
    for sandbox in started:
        sandbox.stop()


def containers(engine: Engine) -> list[str]:
    """The containers that look at images."""
    found = engine.labelled(f"{walls.LABEL_INSTALLATION}={INSTALLATION}")
    return [container for container, labels in found if walls.LABEL_LOOK in labels]


# -- the shipped one -------------------------------------------------------------------------------------


def test_the_shipped_dockerfile_needs_no_buildkit_and_names_no_registry() -> None:
    text = shipped_dockerfile()
    assert "ARG BASE_IMAGE=python:3.12-slim\n" in text
    for word in ("--mount", "<<EOF", "http", "PIP_", "apt"):
        assert word not in text


@pytest.mark.usefixtures("sandbox_image")
def test_an_image_that_is_there_takes_no_time(docker_engine: Engine) -> None:
    images = Images(docker_engine, INSTALLATION)
    began = time.monotonic()
    images.ensure(base=OFFLINE_BASE)
    assert time.monotonic() - began < 0.5


def test_the_tag_changes_with_every_part() -> None:
    tags = {tag_of("a", "b"), tag_of("ab"), tag_of("b", "a"), tag_of("a"), tag_of("a", "c")}
    assert len(tags) == 5
    assert all(tag.startswith(f"{REPOSITORY}:") and len(tag.rpartition(":")[2]) == 12 for tag in tags)


@pytest.mark.usefixtures("sandbox_image")
def test_the_shipped_image_is_built_without_a_network_and_tells_how_far_it_is(docker_engine: Engine) -> None:
    """From a base of another name, so that its tag is new; pip of this machine fetches the wheels."""
    base = f"memkernel-tests-base:{next(_numbers)}"
    found = docker_engine.image(OFFLINE_BASE)
    assert found
    docker_engine._api.tag(found["Id"], *base.split(":"))  # pyright: ignore[reportPrivateUsage]  # as a person does
    told: list[tuple[str, float | None]] = []
    try:
        image = Images(docker_engine, INSTALLATION, lambda text, fraction: told.append((text, fraction))).ensure(
            base=base
        )
        made = docker_engine.image(image)
        assert made
        assert made["Config"]["Labels"]["org.memkernel.sandbox"] == "1"
        fractions = [fraction for _, fraction in told if fraction is not None]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
        assert containers(docker_engine) == []
    finally:
        remove_image(docker_engine, tag_of(shipped_dockerfile(), *REQUIREMENTS, base))
        remove_image(docker_engine, base)


# -- one's own -------------------------------------------------------------------------------------------


def test_an_own_images_entrypoint_user_command_and_volume_do_not_count(make_image: MakeImage, start: Start) -> None:
    image = make_image(
        "USER root",
        'ENTRYPOINT ["/bin/false"]',
        'CMD ["--nothing"]',
        "WORKDIR /root",
        "VOLUME /srv/data",
        "HEALTHCHECK --interval=1s CMD touch /tmp/healthy",
        "ENV OF_THE_IMAGE=here",
    )
    box = start(image)
    code = (
        "import os; print(os.getuid(), os.getcwd(), os.environ['OF_THE_IMAGE'], os.stat('/srv/data').st_mode & 0o777)"
    )
    assert box.run(code).stdout == f"{box.owner[0]} /home/sandbox here {0o777}\n"
    volume = box.bash("grep ' /srv/data ' /proc/mounts; rmdir /srv/data").stdout
    assert volume.startswith("tmpfs ")
    assert "size=" in volume
    time.sleep(1.5)
    assert box.run("print(os.path.exists('/tmp/healthy'))").stdout == "False\n"


def test_an_own_image_may_have_its_python_anywhere_on_its_path(make_image: MakeImage, start: Start) -> None:
    script = r"""printf '#!/bin/sh\nexec /opt/memkernel/bin/python "$@"' > /there/python3; chmod +x /there/python3"""
    image = make_image(f"RUN mkdir /there; {script}", "ENV PATH=/there:/usr/bin:/bin")
    assert start(image).run("1 + 1").result == "2"


def refused(engine: Engine, image: str) -> ImageError:
    sandbox = DockerSandbox(SandboxSpec(f"sesn_image{next(_numbers)}", INSTALLATION, image=image), engine)
    with pytest.raises(ImageError) as raised:
        sandbox.start()
    assert containers(engine) == []
    assert str(raised.value).startswith(f"image {image}: ")
    assert raised.value.hint
    return raised.value


def test_an_image_without_python_is_refused_with_what_it_needs(docker_engine: Engine, make_image: MakeImage) -> None:
    error = refused(docker_engine, make_image("ENV PATH=/nowhere"))
    assert "python3 cannot be run in it" in str(error)
    assert "python3 with ipykernel" in error.hint


def test_an_image_without_ipykernel_is_refused_with_the_line_that_adds_it(
    docker_engine: Engine, make_image: MakeImage
) -> None:
    error = refused(docker_engine, make_image(base=OFFLINE_BASE))
    assert "it has no ipykernel" in str(error)
    assert "pip install ipykernel" in error.hint


def test_an_image_with_a_broken_python_is_refused(docker_engine: Engine, make_image: MakeImage) -> None:
    script = r"printf '#!/bin/sh\necho broken >&2; exit 3' > /usr/local/bin/python3; chmod +x /usr/local/bin/python3"
    error = refused(docker_engine, make_image(f"RUN {script}", "ENV PATH=/usr/local/bin"))
    assert "python3 cannot be run in it (broken)" in str(error)


def test_an_image_whose_python_never_answers_is_refused(
    docker_engine: Engine, make_image: MakeImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memkernel.sandbox.image.LOOK_S", 2.0)
    python = "/usr/local/bin/python3"
    script = rf"printf '#!/bin/sh\nwhile :; do /bin/sleep 1; done' > {python}; chmod +x {python}"
    error = refused(docker_engine, make_image(f"RUN {script}", "ENV PATH=/usr/local/bin"))
    assert "python3 cannot be run in it (no answer in 2 seconds)" in str(error)


def test_an_image_that_is_nowhere_is_refused(docker_engine: Engine) -> None:
    refused(docker_engine, "memkernel-tests.invalid/no-such:1")


def test_a_name_that_is_none_is_refused(docker_engine: Engine) -> None:
    refused(docker_engine, "Not A Name!")


# -- packages ----------------------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of the test's own, which pip of this machine finds; its requirement."""
    name = f"mkpackage{next(_numbers)}"
    wheel = tmp_path / f"{name}-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", "VALUE = 42\n")
        information = f"{name}-1.2.dist-info"
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        archive.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{information}/RECORD", f"{name}.py,,\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return f"{name}>=1,<2"


def test_a_package_is_built_in_once_and_found_again(
    docker_engine: Engine, sandbox_image: str, start: Start, wheels: str
) -> None:
    name = wheels.partition(">")[0]
    box = start(sandbox_image, packages=(wheels,))
    assert box.run(f"import {name}; print({name}.VALUE)").stdout == "42\n"
    began = time.monotonic()
    image = Images(docker_engine, INSTALLATION).ensure(sandbox_image, (wheels,))
    assert time.monotonic() - began < 0.5
    box.stop()
    found = docker_engine.image(image)
    assert found
    remove_image(docker_engine, found["RepoTags"][0])


@pytest.mark.usefixtures("wheels")
def test_a_package_that_is_nowhere_is_an_error_that_says_what_pip_said(
    docker_engine: Engine, sandbox_image: str
) -> None:
    with pytest.raises(ImageError, match=r"a step of the build failed .*no-such-package"):
        Images(docker_engine, INSTALLATION).ensure(sandbox_image, ("no-such-package-of-memkernel",))


def test_an_option_is_no_package(docker_engine: Engine, sandbox_image: str) -> None:
    spec = SandboxSpec("sesn_option", INSTALLATION, image=sandbox_image, packages=("--index-url=http://x",))
    with pytest.raises(InvalidInputError, match="is no package"):
        DockerSandbox(spec, docker_engine).start()


# -- networks ------------------------------------------------------------------------------------------------


def test_a_network_is_on_by_its_name(sandbox_image: str, start: Start) -> None:
    box = start(sandbox_image, network="bridge")
    assert "network bridge" in box.isolation
    interfaces = box.run("import socket; print([name for _, name in socket.if_nameindex()])").stdout
    assert "eth0" in interfaces


@pytest.mark.parametrize("network", ["host", "container:abc"])
def test_a_network_of_others_is_refused_before_anything_starts(
    docker_engine: Engine, sandbox_image: str, network: str
) -> None:
    with pytest.raises(InvalidInputError, match="not its own"):
        DockerSandbox(
            SandboxSpec("sesn_net", INSTALLATION, image=sandbox_image, network=network), docker_engine
        ).check()


def test_the_hosts_network_is_refused_also_by_its_id(docker_engine: Engine, sandbox_image: str) -> None:
    host = docker_engine.network("host")
    assert host
    for name in (host["Id"], host["Id"][:12]):
        with pytest.raises(InvalidInputError, match="not its own"):
            DockerSandbox(
                SandboxSpec("sesn_net", INSTALLATION, image=sandbox_image, network=name), docker_engine
            ).check()


def test_a_network_that_is_not_there_is_refused(docker_engine: Engine, sandbox_image: str) -> None:
    with pytest.raises(InvalidInputError, match="there is no Docker network memkernel-none"):
        DockerSandbox(
            SandboxSpec("sesn_net", INSTALLATION, image=sandbox_image, network="memkernel-none"), docker_engine
        ).check()
