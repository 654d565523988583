"""kill -9 of agents, launchers and the manager at random moments: every job runs once, and its output is exact.

Each phase kills other processes and promises something else; its jobs have ended before the next one begins.
"""

from __future__ import annotations

import random
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.hosts import Host
from tests.deployment import ROTA

_RSH = Path(ROTA).with_name("rota-rsh")
#: Phases in which the agent or the launcher of each job lives on, so none may be lost. An agent that comes back
#: adopts launchers that are no children of its own: their death is for the last phase.
_KEEPING = (("launcher", "manager"), ("agent", "manager", "agent manager"))
_LOSING = ("agent", "launcher", "both", "manager", "both manager")


class Campaign:
    """Adds jobs, kills, and compares what Rota says in the end with what the jobs were to do."""

    def __init__(self, made: Cluster, seed: int) -> None:
        self.cluster = made
        self.random = random.Random(seed)
        self.kills = 0
        self.expected: dict[int, tuple[bytes, int, str]] = {}  #: output, exit code, file that its behaviour writes

    def phase(self, victims: tuple[str, ...], *, kills: int, keeping: bool) -> None:
        """`keeping`: no job may be lost."""
        enough, first = self.kills + kills, len(self.expected)
        while self.kills < enough:
            self._add()
            time.sleep(self.random.choice([0, 0.1, 0.4, 0.8]))
            self._kill(self.random.choice(victims))
        self.cluster.wait(self.cluster.all_ended, "all jobs have ended", seconds=600)
        for job in list(self.expected)[first:]:
            self._judge(job, keeping=keeping)
        self.cluster.judge()

    # -------------------------------------------------------------- jobs

    def _add(self) -> None:
        """Quiet ones, ones that print, one that fails and behaves, and perhaps one over two nodes."""
        draw = self.random
        for retries in (0, 50):
            self._put("sleep 0.05", b"", 0, retries=retries)
            lines = draw.choice([1, 100, 20000])
            nap = draw.choice(["0", "0.2", "0.6"])
            printed = "".join(f"{n}\n" for n in range(1, lines + 1)).encode()
            self._put(f"seq {lines}; sleep {nap}; echo over", printed + b"over\n", 0, retries=retries)
        after = self.cluster.work / f"after-{len(self.expected)}"
        behaviour = f"run: echo after >> {after}"
        self._put("sleep 0.1; exit 3", b"", 3, after=str(after), retries=0, on_exit=(behaviour,))
        if draw.random() < 0.4:
            self._add_wide()

    def _add_wide(self) -> None:
        there = self.cluster.witness.command("echo there; sleep 0.2", role="part")
        # Its channel to the other node ends with the agent there: then it tries again.
        over_there = f"{_RSH} $(uniq $ROTA_NODEFILE | tail -n 1) {shlex.quote(there)} > /dev/null"
        wide = f"until {over_there}; do sleep 0.1; done; echo wide"
        self._put(wide, b"wide\n", 0, retries=50, request=["nodes=2"])

    def _put(self, body: str, output: bytes, code: int, *, after: str = "", **fields: Any) -> None:
        self.expected[self.cluster.add(body, **fields)] = (output, code, after)

    # -------------------------------------------------------------- kills

    def _kill(self, victims: str) -> None:
        host = self.random.choice(self.cluster.hosts)
        if "agent" in victims:
            self.kills += 1
            self.cluster.kill_agent(host)
        if "launcher" in victims:
            self._kill_launchers(host)
        if "both" in victims:
            self.kills += 1 + len(self.cluster.launchers_on(host))
            self.cluster.kill_agent_and_launchers(host)
        if "manager" in victims:
            self.kills += 1
            self.cluster.kill_manager()
        time.sleep(self.random.choice([0, 0, 0.5]))
        if "manager" in victims:
            self.cluster.start()
        if host.name not in self.cluster.agents:
            self.cluster.start_agent(host)

    def _kill_launchers(self, host: Host) -> None:
        self.kills += len(self.cluster.launchers_on(host))
        self.cluster.kill_launchers(host)

    # -------------------------------------------------------------- the end

    def _judge(self, job: int, *, keeping: bool) -> None:
        output, code, after = self.expected[job]
        # A void attempt was leased to a node that never began it.
        outcomes = [outcome for outcome in self.cluster.outcomes(job) if outcome[0] != "void"]
        if not keeping:
            lost = [outcome for outcome in outcomes if outcome == ("failed", "lost")]
            if len(lost) == len(outcomes):
                assert not self.cluster.retries[job], f"job {job} was lost and may be tried again"
                return
            outcomes = outcomes[len(lost) :]
        assert outcomes == [("failed", "exit") if code else ("complete", None)], f"job {job}: {outcomes}"
        with self.cluster.client() as client:
            assert client.output(job) == output, f"job {job}"
        if keeping:
            assert self.cluster.witness.seen(job).count("start") == 1, f"job {job}"
        if after:
            assert Path(after).read_text() == "after\n", f"job {job}: its behaviour ran once"


def _campaign(tmp_path: Path, *, seed: int, kills: int) -> None:
    with cluster(tmp_path, hosts=2) as made:
        made.up()
        campaign = Campaign(made, seed)
        try:
            for victims in _KEEPING:
                campaign.phase(victims, kills=kills, keeping=True)
            campaign.phase(_LOSING, kills=kills, keeping=False)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, after {campaign.kills} kills: {error}") from error
        assert campaign.kills >= 3 * kills


def test_no_job_is_lost_or_run_twice_whatever_is_killed(tmp_path: Path) -> None:
    _campaign(tmp_path, seed=random.randrange(10**6), kills=3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2))
def test_no_job_is_lost_or_run_twice_in_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    _campaign(tmp_path, seed=seed, kills=70)
