"""Containers that nobody owns any more are removed, and no others (fault 37)."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import pytest

from memkernel.sandbox import walls
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.sweep import sweep

_numbers = itertools.count(os.getpid() * 1000)


class Yard:
    """Containers with the labels of sessions, of two installations that are this test's own."""

    def __init__(self, engine: Engine, image: str) -> None:
        self.engine, self.image = engine, image
        self.mine, self.another = f"mine-{next(_numbers)}", f"another-{next(_numbers)}"

    def add(self, session: str, *, of: str | None = None, running: bool = True, **labels: str) -> str:
        """Make a container of a session; its id."""
        whose = {walls.LABEL_INSTALLATION: of or self.mine, walls.LABEL_SESSION: session}
        more = {walls.LABEL_LOOK: labels["look"]} if labels else {}
        config = {"Image": self.image, "Entrypoint": ["sleep", "600"], "Labels": {**whose, **more}}
        container = self.engine.create({**config, "HostConfig": {"NetworkMode": "none"}}, walls.names("yard"))
        if running:
            self.engine.start(container)
        return container

    def left(self) -> set[str]:
        """The ids that are still there."""
        return {
            container
            for whose in (self.mine, self.another)
            for container, _ in self.engine.labelled(f"{walls.LABEL_INSTALLATION}={whose}")
        }


@pytest.fixture
def yard(docker_engine: Engine, sandbox_image: str) -> Iterator[Yard]:
    made = Yard(docker_engine, sandbox_image)
    yield made
    for container in made.left():
        docker_engine.remove(container)


def test_containers_of_dead_sessions_go_running_or_not_and_the_living_stay(yard: Yard) -> None:
    yard.add("sesn_dead")
    yard.add("sesn_dead", running=False)
    living = yard.add("sesn_living")
    asked: list[str] = []

    def is_alive(session: str) -> bool:
        asked.append(session)
        return session == "sesn_living"

    assert sweep(yard.engine, yard.mine, is_alive) == ["sesn_dead"]
    assert yard.left() == {living}
    assert set(asked) == {"sesn_dead", "sesn_living"}
    assert yard.engine.state(living)["Running"]


def test_a_container_of_another_installation_is_never_judged(yard: Yard) -> None:
    """Its session folders are not here: nobody can say from here that it is dead."""
    others = yard.add("sesn_theirs", of=yard.another)

    def is_alive(session: str) -> bool:
        raise AssertionError(session)

    assert sweep(yard.engine, yard.mine, is_alive) == []
    assert yard.left() == {others}


def test_an_installation_whose_id_another_begins_with_is_another(yard: Yard) -> None:
    others = yard.add("sesn_theirs", of=f"{yard.mine}-longer")
    try:
        assert sweep(yard.engine, yard.mine, lambda session: False) == []
        assert yard.engine.state(others)["Running"]
    finally:
        yard.engine.remove(others)


def test_a_container_that_somebody_else_removes_meanwhile_is_no_error(yard: Yard) -> None:
    container = yard.add("sesn_dead")

    def is_alive(session: str) -> bool:
        yard.engine.remove(container)
        return False

    assert sweep(yard.engine, yard.mine, is_alive) == ["sesn_dead"]
    assert yard.left() == set()


def test_a_look_at_an_image_that_was_left_goes_once_it_is_old(yard: Yard) -> None:
    now = int(time.time())
    yard.add("", running=False, look=str(now - 3600))
    fresh = yard.add("", running=False, look=str(now))
    odd = yard.add("", running=False, look="whenever")
    assert sweep(yard.engine, yard.mine, lambda session: False) == []
    assert yard.left() == {fresh, odd}


def test_a_paused_container_of_a_dead_session_goes(yard: Yard) -> None:
    yard.engine.pause(yard.add("sesn_dead"))
    assert sweep(yard.engine, yard.mine, lambda session: False) == ["sesn_dead"]
    assert yard.left() == set()


def test_where_there_is_nothing_nothing_happens(yard: Yard) -> None:
    assert sweep(yard.engine, yard.mine, lambda session: False) == []
