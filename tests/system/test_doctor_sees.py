"""`rota doctor` on real deployments tells of what is damaged, with a manager or without. And full disks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import rota as rota_package
from tests.deployment import Deployment, deployment, wait_until


def found(rota: Deployment) -> dict[str, str]:
    """What doctor calls bad about what is stored."""
    done = rota.rota("doctor", "--json")
    said: dict[str, Any] = json.loads(done.stdout)
    bad = [each for each in said["checks"] if each["level"] == "bad"]
    assert done.returncode == (1 if bad else 0)
    stored = ("database", "output", "journals", "identity")
    return {each["name"]: each["message"] for each in bad if each["name"] in stored}


def change(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))


def test_doctor_tells_of_damaged_outputs_journals_and_databases(rota: Deployment) -> None:
    rota.ok("run", "--", "seq 1000")
    rota.start()
    rota.ok("add", "--", "sleep 1000")
    wait_until(lambda: rota.state(2) == "running", "a job runs")
    assert found(rota) == {}, "all is well beside a running manager"
    (segment,) = (rota.home / "output").iterdir()
    change(segment, 100)
    (journal,) = (rota.home / "runners").glob("*/journal")
    change(journal, 1)
    told = found(rota)
    assert told.keys() == {"output", "journals"}
    assert "job 1" in told["output"]
    rota.ok("manager", "stop", "--kill")
    change(rota.home / "rota.db", 40_000)
    assert "page 10 changed" in found(rota)["database"]
    refused = rota.rota("manager", "start")
    assert refused.returncode == 4
    assert "damaged" in refused.stderr
    assert "page 10" not in rota.rota("doctor", "--quick").stdout


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_questions_are_answered_while_a_commit_waits_for_room_and_status_names_the_disk(
    small_disk: Path, tmp_path: Path
) -> None:
    with deployment(small_disk) as rota:
        for number in (1, 2, 3):
            rota.ok("add", "--cpus", "0", "--", f"until test -e {tmp_path}/go{number}; do sleep 0.05; done")
        wait_until(lambda: set(rota.states().values()) == {"running"}, "they run")
        assert rota.json("status")["disk_full"] is None
        fill(small_disk / "full1")
        assert str(small_disk) in rota.ok("status"), "no job can be added any more"
        for number in (1, 2, 3):  # the first end takes what was set aside for it
            (tmp_path / f"go{number}").touch()
            wait_until(lambda number=number: rota.state(number) == "complete", "its end is known")  # type: ignore[misc]
            fill(small_disk / f"more{number}")
        log = rota.home / "logs" / "manager.log"
        (tmp_path / "go").touch()
        wait_until(lambda: "waiting for free space" in log.read_text(), "a commit waits")
        assert str(small_disk) in rota.ok("status", timeout=20)
        assert rota.json("status")["disk_full"] == rota.json("manager", "status")["disk_full"] == str(small_disk)
        assert "complete" in rota.ok("jobs", timeout=20)
        with rota_package.connect(rota.home, timeout=20) as client:
            assert client.would("kill", "all").changed == [], "nothing runs any more"
            assert client.would("remove", "all").changed == [1, 2, 3]
        for path in small_disk.glob("*[0-9]"):
            path.unlink()
        wait_until(lambda: rota.json("status")["disk_full"] is None, "there is room again")
        rota.ok("run", "--", "true")
