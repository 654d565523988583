"""The manager of tables, with real databases, a real Redis and unmodified workers of rq."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from rota.populate.config.file import ConfigurationFile
from rota.populate.loop.api import Api
from rota.populate.loop.cycles import Manager
from rota.populate.transport import rq as rq_transport
from tests.populate.conftest import LAB, Lab, Servers, python_of, wait_for

_WORKER = "import sys; sys.argv[0] = 'rq'; from rq.cli import main; main()"


class Scene:
    """A laboratory, a Redis, the file of a manager, and workers."""

    def __init__(self, lab: Lab, redis: Any, home: Path) -> None:
        self.lab = lab
        self.redis = redis
        self.home = home
        self.file = home / "tables.yaml"
        self.source = lab.source()
        self._managers: list[Manager] = []
        self._workers: list[subprocess.Popen[str]] = []

    def write(self, *, tables: str = "", **fields: object) -> None:
        """The configuration, of the traces and of other tables."""
        values = {"ttl": "1h", "job_timeout": "1m", "python": self.lab.python, **fields}
        if self.lab.ledger == "sql":
            values["sql"] = {name: value for name, value in dict(self.lab.spec["sql"]).items()}  # type: ignore[call-overload]
        trace = json.encode(values).decode()
        self.file.write_text(
            f"manager: {{target_cycle_time: 0, api.run: false}}\ntransport: rq\nredis: {{url: '{self.redis.url}'}}\n"
            f"tables:\n  {self.lab.name}: {trace}\n{tables}"
        )

    def manager(self, **fields: object) -> Manager:
        if fields or not self.file.exists():
            self.write(**fields)
        manager = Manager(ConfigurationFile(str(self.file)))
        self._managers.append(manager)
        return manager

    def start_worker(self, *queues: str, burst: bool = True) -> subprocess.Popen[str]:
        options = ["--serializer", "json", "--url", self.redis.url, *(["--burst"] if burst else [])]
        command = [self.lab.python, "-c", _WORKER, "worker", *options, *(queues or ("default",))]
        with open(self.home / "workers.log", "a") as log:
            worker = subprocess.Popen(command, cwd=LAB, env=self.lab.env, stdout=log, stderr=log, text=True)
        self._workers.append(worker)
        return worker

    def work(self, *queues: str) -> None:
        """Until the queues are empty."""
        assert self.start_worker(*queues).wait(60) == 0, (self.home / "workers.log").read_text()

    def redis_does(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.redis.port), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def close(self) -> None:
        for manager in self._managers:
            manager.close()
        for worker in self._workers:
            worker.kill()
            worker.wait()


@pytest.fixture(autouse=True)
def _rq_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager needs rq; it has that of a peer, after everything of its own."""
    (site,) = (Path(python_of("rq")).parents[1] / "lib").glob("python*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])


@pytest.fixture
def make_scene(
    servers: Servers, make_lab: Callable[..., Lab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def make(kind: str = "datajoint2-mariadb", *, keys: int = 25) -> Scene:
        lab = make_lab(kind)
        lab.add(*range(1, keys + 1))
        for name, value in lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", str(LAB))
        scene = Scene(lab, servers.get("redis"), tmp_path)
        scene.redis_does("FLUSHALL")
        scene.source.migrate()
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.close()


KINDS = ("datajoint2-mariadb", "datajoint2-postgresql", "datajoint0-mariadb", "sql-postgresql")


@pytest.mark.parametrize("kind", KINDS)
def test_one_cycle_queues_serial_times_parallel_keys_and_no_key_is_in_two_batches(
    make_scene: Callable[..., Scene], kind: str
) -> None:
    """Cases 1 and 2, and all keys are made once by workers that ask for none."""
    scene = make_scene(kind, keys=100)
    manager = scene.manager(serial=10, parallel=3)
    manager.cycle()
    status = manager.status.tables[scene.lab.name]
    assert manager.errors == {}
    assert (status.queued, status.todo) == (30, 70)
    assert scene.redis_does("LLEN", "rq:queue:default") == "3"
    manager.cycle()
    assert scene.redis_does("LLEN", "rq:queue:default") == "6"
    assert manager.status.queues["default"].keys == 60
    manager.cycle()
    scene.work()
    assert sorted(scene.lab.made) == list(range(1, 91))
    manager.cycle()
    assert (manager.status.tables[scene.lab.name].done, manager.is_empty) == (90, False)
    scene.work()
    manager.cycle()
    assert manager.is_empty
    assert sorted(scene.lab.made) == scene.lab.done == list(range(1, 101))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_native_populate_makes_none_of_the_queued_keys_and_every_key_is_made_once(
    make_scene: Callable[..., Scene], kind: str
) -> None:
    """Case 4."""
    scene = make_scene(kind)
    scene.manager(serial=10, parallel=1).cycle()
    scene.lab.python_does("import lab; lab.Trace().populate(reserve_jobs=True)")
    assert sorted(scene.lab.made) == list(range(11, 26))
    scene.work()
    assert sorted(scene.lab.made) == scene.lab.done == list(range(1, 26))


def test_after_the_queue_was_flushed_its_keys_are_back_and_run_once(make_scene: Callable[..., Scene]) -> None:
    """Case 5."""
    scene = make_scene()
    manager = scene.manager(serial=25)
    manager.cycle()
    scene.redis_does("FLUSHALL")
    manager.cycle()
    manager.cycle()
    manager.cycle()
    scene.work()
    assert sorted(scene.lab.made) == scene.lab.done == list(range(1, 26))


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_that_was_killed_costs_its_own_key_only(make_scene: Callable[..., Scene], kind: str) -> None:
    """Case 6."""
    scene = make_scene(kind, keys=4)
    scene.lab.behave(2, "kill")
    manager = scene.manager(serial=4)
    manager.cycle()
    scene.work()
    assert scene.lab.made == [1, 2]
    manager.cycle()
    assert scene.lab.done == [1]
    assert list(scene.lab.errors) == [2]
    manager.cycle()
    scene.work()
    assert scene.lab.made == [1, 2, 3, 4]
    assert scene.lab.done == [1, 3, 4]


@pytest.mark.parametrize("how", ["hang", "swallow"])
def test_after_a_timeout_no_later_key_runs_even_if_the_code_of_a_key_swallowed_it(
    make_scene: Callable[..., Scene], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rq_transport, "ALARM_AFTER_S", 1)
    scene = make_scene(keys=3)
    scene.lab.behave(1, how)
    manager = scene.manager(serial=3, job_timeout="1s")
    manager.cycle()
    scene.work()
    assert scene.lab.made == [1]
    # What swallowed its timeout has made its key after all.
    assert (scene.lab.done, list(scene.lab.errors)) == (([1], []) if how == "swallow" else ([], [1]))
    manager.cycle()
    status = manager.status.tables["lab.Trace"]
    assert (status.queued, status.running) == (2, 0)


def test_a_table_that_cannot_be_imported_is_named_and_the_others_go_on(
    make_scene: Callable[..., Scene], caplog: pytest.LogCaptureFixture
) -> None:
    """Case 7."""
    scene = make_scene()
    other = json.encode({"ttl": "1h", "job_timeout": "1h", "python": scene.lab.python}).decode()
    scene.write(tables=f"  nowhere.at.All: {other}\n", serial=25)
    manager = scene.manager()
    manager.cycle()
    manager.cycle()
    assert "nowhere" in str(manager.status.tables["nowhere.at.All"].error)
    assert manager.health == "degraded"
    assert [record.message for record in caplog.records if "No module named 'nowhere'" in record.message] != []
    assert sum("nowhere" in record.message for record in caplog.records) == 1
    assert manager.status.tables["lab.Trace"].queued == 25
    scene.work()
    manager.cycle()
    assert scene.lab.done == list(range(1, 26))
    # Nothing is left queued.
    assert manager.is_empty
    assert scene.redis_does("LLEN", "rq:queue:default") == "0"


def test_idle_workers_ask_the_database_nothing(make_scene: Callable[..., Scene]) -> None:
    """Case 8: statements are the same for 1, 4 and 16 workers, all of them the manager's."""
    scene = make_scene(keys=2)
    manager = scene.manager(serial=2)
    manager.cycle()
    scene.work()
    manager.cycle()
    counts = []
    for workers in (1, 4, 16):
        while len(scene._workers) - 1 < workers:
            scene.start_worker(burst=False)
        wait_for(lambda n=workers: scene.redis_does("SCARD", "rq:workers:default") == str(n), "workers")
        before = scene.lab.server.mark()
        for _ in range(3):
            manager.cycle()
        counts.append(len(scene.lab.server.statements(before)))
        assert manager.status.queues["default"].workers == workers
    # For each cycle the lock and one look.
    assert counts == [6, 6, 6]


def test_of_two_managers_one_is_active_and_the_other_takes_over_within_a_cycle(
    make_scene: Callable[..., Scene],
) -> None:
    scene = make_scene()
    one, other = scene.manager(serial=5), scene.manager()
    one.cycle()
    other.cycle()
    assert (one.health, other.health) == ("ok", "standby")
    assert one.status.tables["lab.Trace"].queued == 5
    one.close()

    def taken_over() -> bool:
        other.cycle()
        return other.health == "ok"

    wait_for(taken_over, "the other manager")
    assert other.status.tables["lab.Trace"].queued == 10
    scene.work()
    assert sorted(scene.lab.made) == scene.lab.done == list(range(1, 11))


def test_without_redis_nothing_stays_queued_and_the_manager_goes_on_when_it_is_back(
    make_scene: Callable[..., Scene],
) -> None:
    scene = make_scene()
    manager = scene.manager(serial=25)
    port, right = scene.redis.port, scene.file.read_text()
    scene.file.write_text(right.replace(f":{port}/", ":1/"))
    manager.cycle()
    assert "Redis" in str(manager.errors["lab.Trace"])
    scene.file.write_text(right)
    manager.cycle()
    assert manager.errors == {}
    assert manager.status.tables["lab.Trace"].queued == 25
    scene.work()
    assert scene.lab.done == list(range(1, 26))


def test_a_changed_configuration_is_in_force_in_the_next_cycle_and_a_bad_one_is_not(
    make_scene: Callable[..., Scene],
) -> None:
    scene = make_scene()
    manager = scene.manager(serial=1)
    manager.cycle()
    scene.write(serial=3)
    manager.cycle()
    assert manager.status.tables["lab.Trace"].queued == 4
    scene.file.write_text("tables: nothing")
    manager.cycle()
    assert manager.status.tables["lab.Trace"].queued == 7
    assert manager.health == "degraded"


def test_bins_go_to_their_queues_and_workers_serve_them_in_their_order(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(keys=3)
    scene.lab.add(11, 12, hours=2)
    bins = [{"where": "hours <= 1"}, {"queue": "high-mem"}]
    manager = scene.manager(serial=10, bins=bins)
    manager.cycle()
    assert {name: each.keys for name, each in manager.status.queues.items()} == {"default": 3, "high-mem": 2}
    scene.work("high-mem", "default")
    assert scene.lab.made == [11, 12, 1, 2, 3]


def test_the_api_shows_tables_queues_and_workers(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene()
    scene.lab.behave(1, "hang")
    manager = scene.manager(serial=5, parallel=2)
    api = Api(manager, host="127.0.0.1", port=0)
    try:
        manager.cycle()
        scene.start_worker(burst=False)
        wait_for(lambda: scene.lab.made == [1], "the first key")
        manager._look_at_workers()

        def asked(path: str) -> Any:
            with urllib.request.urlopen(f"http://127.0.0.1:{api.port}{path}") as answer:
                return json.decode(answer.read())

        status, uptime = asked("/status"), asked("/uptime")
        assert status["tables"]["lab.Trace"]["queued"] == 10
        assert set(status["tables"]["lab.Trace"]) == {
            "asked_at", "took_s", "done", "todo", "queued", "running", "errors", "error",
        }  # fmt: skip
        assert status["queues"]["default"] == {"batches": 1, "keys": 5, "workers": 1}
        (worker,) = status["workers"]
        assert (worker["queues"], worker["state"], worker["table"]) == (["default"], "busy", "lab.Trace")
        assert worker["for_s"] >= 0
        assert (uptime["health"], uptime["workers_active"]) == ("ok", 1)
    finally:
        api.close()
        pid = int((scene.lab.home / "made").read_text().split()[1])
        os.kill(pid, signal.SIGKILL)


def test_a_manager_runs_until_nothing_is_left(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(keys=7)
    scene.lab.behave(3, "raise")
    manager = scene.manager(serial=2)
    worker = scene.start_worker(burst=False)
    running = threading.Thread(target=manager.run, kwargs={"until_empty": True})
    running.start()
    running.join(60)
    assert not running.is_alive()
    assert worker.poll() is None
    assert scene.lab.done == [1, 2, 4, 5, 6, 7]
    assert list(scene.lab.errors) == [3]
