"""Servers and interpreters that are started once for all tests here, and what is made for each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.populate.laboratory import LAB, Lab, Servers, WarmPythons, python_of
from tests.populate.scene import Scene


@pytest.fixture(scope="session")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPythons]:
    found = WarmPythons(tmp_path_factory.mktemp("pythons"))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    found.stop()


@pytest.fixture
def make_lab(servers: Servers, pythons: WarmPythons, tmp_path: Path) -> Iterator[Any]:
    made: list[Lab] = []

    def make(kind: str, **spec: object) -> Lab:
        lab = Lab(kind, servers.get(kind.partition("-")[2]), pythons, tmp_path, **spec)
        made.append(lab)
        return lab

    yield make
    for lab in made:
        lab.close()


@pytest.fixture
def lab(request: pytest.FixtureRequest, make_lab: Any) -> Lab:
    """A laboratory of the kind that the test is run for, with a ledger that is ready."""
    found: Lab = make_lab(request.param)
    found.add(*range(1, 26))
    found.ready()
    return found


@pytest.fixture
def rq_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> str:
    """The manager needs rq; it has that of a peer, after everything of its own."""
    (site,) = (Path(python_of("rq")).parents[1] / "lib").glob("python*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    return str(site)


@pytest.fixture
def make_scene(
    servers: Servers,
    make_lab: Callable[..., Lab],
    rq_of_the_manager: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def make(kind: str = "datajoint2-mariadb", *, keys: int = 25) -> Scene:
        lab = make_lab(kind)
        lab.add(*range(1, keys + 1))
        for name, value in lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", f"{LAB}:{rq_of_the_manager}")
        scene = Scene(lab, servers.get("redis"), tmp_path)
        scene.redis_does("FLUSHALL")
        scene.source.migrate()
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.close()
