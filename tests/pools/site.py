"""A site for tests of delegated pools: a manager on the head, and engines on hosts that share nothing with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import mark as marks
from tests.cluster.cluster import ENDED, Cluster
from tests.cluster.hosts import Host, Process
from tests.cluster.witness import Witness
from tests.deployment import is_alive

ENGINE = Path(__file__).with_name("spool_engine.py")
_PYTHON = [sys.executable, "-I", "-S"]


class SpoolPool:
    """A pool of the engine `command`: its programs, its engine on a host of its own, and what it is told to do."""

    def __init__(self, name: str, spool: Path, *, slots: int, settings: dict[str, object]) -> None:
        self.name = name
        self.spool = spool
        self.slots = slots
        self._settings = settings
        self.process: Process | None = None
        for part in ("pending", "running", "later", "tickets", "stop"):
            (spool / part).mkdir(parents=True)

    def table(self) -> str:
        """Its part of rota.toml."""
        lines = [f"[pools.{self.name}]", 'engine = "command"']
        for what in ("start", "stop", "list"):
            words = ", ".join(f'"{word}"' for word in (*_PYTHON, str(ENGINE), what, str(self.spool)))
            lines.append(f"{what} = [{words}]")
        lines += [f"{key} = {value}" for key, value in self._settings.items()]
        return "\n".join(lines) + "\n"

    def start_engine(self, host: Host, *, hidden: list[Path]) -> None:
        """Begin to start runners there; none of these directories is seen by them."""
        for path in hidden:
            host.run("mount", "-t", "tmpfs", "tmpfs", str(path))
        local = host.directory / "local"
        local.mkdir()
        argv = [sys.executable, "-P", "-m", "rota.runner", "--dir", str(local), "--log", str(local / "runner.log")]
        (self.spool / "argv").write_text(json.dumps(argv))
        run = [*_PYTHON, str(ENGINE), "run", str(self.spool), str(self.slots)]
        env = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
        self.process = host.popen(*run, env=env)

    # -------------------------------------------------------------- what it has

    def pending(self) -> list[str]:
        return self._listed("pending")

    def running(self) -> list[str]:
        return self._listed("running")

    def _listed(self, part: str) -> list[str]:
        return sorted(name for name in os.listdir(self.spool / part) if not name.startswith("."))

    @property
    def exist(self) -> int:
        return len(self.pending()) + len(self.running())

    def notes(self, what: str) -> list[list[str]]:
        """What happened there: asked, began, ended, stopped."""
        path = self.spool / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words[1:] for line in lines if (words := line.split())[0] == what]

    def most_at_once(self) -> int:
        """The largest number of runners that ran at the same time."""
        path, now, most = self.spool / "notes", 0, 0
        for line in path.read_text().splitlines() if path.exists() else []:
            now += {"began": 1, "ended": -1}.get(line.split()[0], 0)
            most = max(most, now)
        return most

    # -------------------------------------------------------------- lies

    def lie(self, what: str, *, program: str = "start") -> None:
        """What the next submission does: refuse, fail, hang, late, claim, twice, die-before, die-after; programs
        `stop` and `list` know die-before."""
        (self.spool / f"lie-{program}").write_text(what)

    @contextlib.contextmanager
    def being(self, what: str) -> Iterator[None]:
        """Meanwhile: hold (nothing starts), deaf (surveys fail), forget (surveys are empty), inert (no runner),
        slow (surveys take two seconds)."""
        (self.spool / what).touch()
        try:
            yield
        finally:
            (self.spool / what).unlink(missing_ok=True)

    def appear(self) -> None:
        """What was late is there."""
        for id in self._listed("later"):
            (self.spool / "later" / id).rename(self.spool / "pending" / id)


class Site(Cluster):
    """A manager, its own host, and pools; the first hosts have the engines, the others may become nodes."""

    def __init__(self, top: Path, pools: dict[str, dict[str, object]], *, nodes: int = 0, **settings: str) -> None:
        super().__init__(top, hosts=len(pools) + nodes, **settings)
        self.pools: dict[str, SpoolPool] = {}
        for name, options in pools.items():
            slots = int(str(options.pop("slots", 4)))
            its = {"max_runners": 4, "idle_s": 0.5, "settle_s": 2, "timeout_s": 5, **options}
            self.pools[name] = SpoolPool(name, top / "spools" / name, slots=slots, settings=its)
        self.witness = Witness(top / "seen", cores=64)
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "rota.toml").write_text("\n".join(pool.table() for pool in self.pools.values()))

    def up(self) -> None:
        """Manager, engines and nodes."""
        self.start()
        for host, pool in zip(self.hosts, self.pools.values(), strict=False):
            host.boot()
            pool.start_engine(host, hidden=[self.home, self.work])
        nodes = self.hosts[len(self.pools) :]
        if nodes:
            self.ok("manager", "token", "add", "nodes", "--role", "runner", "--out", str(self._token))
        for host in nodes:
            self.boot(host)
            self.until_node(host, "alive")

    def ended(self) -> int:
        """How many jobs have ended."""
        with self.client() as client:
            return sum(number for state, number in client.status().counts.items() if state in ENDED)

    def until_dead(self) -> None:
        """A lie has killed the manager."""
        pid = self.manager_pid()
        self.wait(lambda: not is_alive(pid), "the manager is dead")

    def restart_manager(self) -> None:
        self.kill_manager()
        self.start()

    @property
    def pool(self) -> SpoolPool:
        """The only one."""
        (found,) = self.pools.values()
        return found

    def intents(self) -> int:
        """How many intents are on disk."""
        import sqlite3

        with contextlib.closing(sqlite3.connect(f"file:{self.home / 'rota.db'}?mode=ro", uri=True)) as db:
            (number,) = db.execute("SELECT count(*) FROM intents").fetchone()
        return int(number)

    def wait_for(self, found: Callable[[], list[str]], what: str) -> list[str]:
        self.wait(found, what)
        return found()

    def wait_surveys(self, number: int) -> None:
        """The engine is asked so many times more what it has."""
        for pool in self.pools.values():
            enough = len(pool.notes("listed")) + number
            self.wait(lambda: len(pool.notes("listed")) >= enough, "surveys", seconds=90)  # noqa: B023

    def judge_running(self) -> None:
        """No job runs twice, or on a core of another."""
        assert not {line.what for line in self.witness.lines()} & {"twice", "crowded"}

    def kill_runners(self) -> None:
        """Everything on the hosts of the engines dies except these, runners before they can tell of their jobs."""
        for host in self.hosts[: len(self.pools)]:
            self.wait(lambda: not self._kill_on(host), f"nothing else is left on {host.name}")  # noqa: B023

    def _kill_on(self, host: Host) -> int:
        """Kill everything there but the engine; how much there was."""
        found: dict[int, bytes] = {}
        for pid in host.pids():
            with contextlib.suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
        doomed = [pid for pid, words in found.items() if str(ENGINE).encode() not in words]
        for pid in sorted(doomed, key=lambda pid: b"rota.runner" not in found[pid]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(doomed)

    def until_empty(self, pool: SpoolPool | None = None) -> None:
        """The demand has fallen to zero: no runner, no intent, no ticket is left."""
        for each in [pool] if pool is not None else self.pools.values():
            self.wait(lambda each=each: each.exist == 0, f"no runner of {each.name} is left")  # type: ignore[misc]
        self.wait(lambda: self.intents() == 0, "no intent is left")
        self.wait(lambda: not os.listdir(self.home / "tickets"), "no ticket is left")

    def clear(self) -> None:
        """End what is left of a test."""
        for pool in self.pools.values():
            for name in ("hold", "deaf", "forget", "inert", "slow", "lie-start", "lie-stop", "lie-list"):
                (pool.spool / name).unlink(missing_ok=True)
        left = [job for job, state in self.states().items() if state not in ENDED]
        if left:
            self.kill(*left)
        self.wait(self.all_ended, "what is left has ended")
        self.until_empty()
        for pool in self.pools.values():
            (pool.spool / "notes").unlink(missing_ok=True)

    def logs(self) -> str:
        text = super().logs()
        for pool in self.pools.values():
            for path in (pool.spool / "notes", pool.spool / "runners.log"):
                with contextlib.suppress(OSError):
                    text += f"\n--- {pool.name} {path.name}\n{path.read_text()[-2000:]}"
        for host in self.hosts:
            with contextlib.suppress(OSError):
                log = (host.directory / "local" / "runner.log").read_text()
                text += f"\n--- {host.name} runner.log\n{log[-2000:]}"
        return text


@contextlib.contextmanager
def site(top: Path, pools: dict[str, dict[str, object]], *, nodes: int = 0, **settings: str) -> Iterator[Site]:
    """A site that is gone at the end, whatever happened."""
    if os.geteuid() != 0:
        pytest.skip("only root may make hosts of namespaces")
    assert shutil.which("ip"), "these tests need ip: sudo apt-get install iproute2"
    marks.sweep()
    made = Site(top, pools, nodes=nodes, **settings)
    try:
        yield made
    finally:
        made.close()
