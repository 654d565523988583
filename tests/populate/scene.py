"""A laboratory with a Redis, the file of a manager, and workers of rq."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from msgspec import json

from rota.populate.config.file import ConfigurationFile
from rota.populate.loop.cycles import Manager
from tests.populate.laboratory import LAB, Lab

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
            values["sql"] = self.lab.spec["sql"]
        trace = json.encode(values).decode()
        self.file.write_text(
            "manager: {target_cycle_time: 0, api.run: false}\n"
            f"transport: rq\nredis: {{url: '{self.redis.url}'}}\n"
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
        assert self.start_worker(*queues).wait(150) == 0, (self.home / "workers.log").read_text()

    def redis_does(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.redis.port), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def close(self) -> None:
        for manager in self._managers:
            manager.close()
        for worker in self._workers:
            worker.kill()
            worker.wait()
