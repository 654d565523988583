"""The manager of tables, with real databases, a real Redis and unmodified workers of rq."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from rota.populate.loop.api import Api
from rota.populate.transport import rq as rq_transport
from tests.populate.laboratory import wait_for
from tests.populate.scene import Scene
from tests.populate.servers import free_port

#: The command, beside the interpreter.
ROTA = str(Path(sys.executable).parent / "rota")

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


def test_what_a_manager_marked_before_it_died_is_free_within_two_cycles_and_run_once(
    make_scene: Callable[..., Scene],
) -> None:
    scene = make_scene(keys=5)
    scene.source.claim({"never-sent": [{"recording": 1}, {"recording": 2}]}, 3600)
    manager = scene.manager(serial=5)
    for _ in range(3):
        manager.cycle()
    assert manager.status.tables["lab.Trace"].queued == 5
    scene.work()
    assert sorted(scene.lab.made) == scene.lab.done == [1, 2, 3, 4, 5]


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
    manager = scene.manager(serial=3, job_timeout="5s")
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
    assert not manager.is_empty
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

        status, uptime = asked(api.port, "/status"), asked(api.port, "/uptime")
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
    running.join(120)
    assert not running.is_alive()
    assert worker.poll() is None
    assert scene.lab.done == [1, 2, 4, 5, 6, 7]
    assert list(scene.lab.errors) == [3]


def test_the_command_checks_migrates_runs_and_shows_the_status(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene("sql-postgresql", keys=4)
    scene.lab.execute("DROP TABLE trace_jobs")
    port = free_port()
    scene.write(serial=2)
    scene.file.write_text(scene.file.read_text().replace("api.run: false", f"api.port: {port}"))
    checked = typed("check", str(scene.file), expected=1)
    assert "plain.trace: its jobs table" in checked.stderr
    assert "rq worker --serializer json" in checked.stderr
    assert "was made" in typed("migrate", str(scene.file)).stdout
    assert "nothing to do" in typed("migrate", str(scene.file)).stdout
    found = json.decode(typed("check", str(scene.file), "--json").stdout)
    assert found["tables"] == {"plain.trace": {"warnings": [], "error": None}}
    once = json.decode(typed("run", str(scene.file), "--once", "--json").stdout)
    assert once["tables"]["plain.trace"]["queued"] == 2
    assert "no manager of tables answers" in typed("status", str(scene.file), expected=4).stderr
    scene.lab.behave(1, "hang")
    command = [sys.executable, ROTA, "populate", "run", str(scene.file), "--until-empty"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        wait_for(lambda: asked(port, "/status").get("tables"), "the first cycle")
        shown = typed("status", str(scene.file))
        assert shown.stdout.split()[:3] == ["TABLE", "DONE", "TODO"]
        assert json.decode(typed("status", str(scene.file), "--json").stdout)["tables"]["plain.trace"]["done"] == 0
        (scene.lab.home / "key-1").unlink()
        scene.start_worker(burst=False)
        assert running.wait(60) == 0
    assert scene.lab.done == [1, 2, 3, 4]


def test_the_command_check_tries_the_conditions_of_bins(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(keys=3)
    scene.write(bins=[{"where": "hours > 5"}])
    assert "3 missing keys are in no bin" in typed("check", str(scene.file)).stderr
    scene.write(bins=[{"where": "days > 5"}, {"queue": "other"}])
    assert "days" in typed("check", str(scene.file), expected=1).stderr


def test_sigterm_ends_the_manager_after_its_cycle(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene()
    port = free_port()
    scene.write()
    text = scene.file.read_text().replace("api.run: false", f"api.port: {port}")
    scene.file.write_text(text.replace("target_cycle_time: 0", "target_cycle_time: 600"))
    with subprocess.Popen(
        [sys.executable, ROTA, "populate", "run", str(scene.file)], stderr=subprocess.DEVNULL
    ) as one:
        wait_for(lambda: asked(port, "/uptime").get("last_cycle_at"), "the first cycle")
        one.send_signal(signal.SIGTERM)
        assert one.wait(60) == 0


def asked(port: int, path: str) -> Any:
    """What the API says; nothing while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return json.decode(answer.read())
    except OSError:
        return {}


def typed(*words: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """`rota populate` in a process of its own."""
    command = [sys.executable, ROTA, "populate", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == expected, done.stdout + done.stderr
    return done
