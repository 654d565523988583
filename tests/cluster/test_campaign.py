"""Random faults, one after the other and together, on four nodes with many jobs and their witness."""

from __future__ import annotations

import contextlib
import random
import shlex
import time
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.hosts import Host
from tests.deployment import ROTA

_RSH = Path(ROTA).with_name("rota-rsh")


class Campaign:
    """Adds jobs, breaks something, waits, heals it; and judges at the end."""

    def __init__(self, made: Cluster, seed: int, *, gentle: bool = False) -> None:
        """`gentle`: nothing that holds jobs dies, so not one of them may be lost."""
        self._gentle = gentle
        self.cluster = made
        self.random = random.Random(seed)
        self.story: list[str] = [f"seed {seed}"]
        self._healing = contextlib.ExitStack()
        self._manager_is_up = True
        self._whole = list(made.hosts)

    def add(self, count: int) -> None:
        """Some that may be started once only, some that may be tried again."""
        for retries in (0, 50):
            naps = [self.random.choice(["0", "0.1", "0.3", "1"]) for _ in range(count)]
            self.cluster.add_all([f"sleep {nap}" for nap in naps], retries=retries)

    def add_wide(self) -> None:
        """One over two nodes, which does something on both of them."""
        there = self.cluster.witness.command("sleep 0.5", role="part")
        body = f"{_RSH} $(uniq $ROTA_NODEFILE | tail -n 1) {shlex.quote(there)}"
        self.cluster.add(body, retries=50, request=["nodes=2"])

    def break_something(self) -> None:
        """A fault of a node that has none, or of the manager."""
        host = self._whole.pop(self.random.randrange(len(self._whole)))
        faults = [self._cut, self._kill_agent, self._stop_agent, self._kill_manager]
        if not self._gentle:
            faults += [self._cut, self._reboot, self._crash, self._kill_launchers, self._kill_both]
        self.random.choice(faults)(host)

    def heal(self) -> None:
        self._healing.close()
        self._whole = list(self.cluster.hosts)

    def judge(self) -> None:
        """What may be tried again is complete at last; what may not either is or was lost, and says so."""
        for job, retries in self.cluster.retries.items():
            shown = self.cluster.shown(job)
            code = shown.reason.code if shown.reason is not None else None
            may_be_lost = not retries and not self._gentle
            assert shown.state == "complete" or (may_be_lost and code == "lost"), f"job {job}: {shown}"

    def _say(self, text: str) -> None:
        self.story.append(f"{time.time():.1f} {text}")

    def _cut(self, host: Host) -> None:
        how = self.random.choice(["cut", "lose_what_it_hears", "lose_what_it_says"])
        self._say(f"{host.name}: {how}")
        getattr(host, how)()
        self._healing.callback(host.heal)

    def _kill_agent(self, host: Host) -> None:
        self._say(f"{host.name}: agent killed")
        self.cluster.kill_agent(host)
        self._healing.callback(self.cluster.start_agent, host)

    def _kill_launchers(self, host: Host) -> None:
        self._say(f"{host.name}: launchers killed")
        self.cluster.kill_launchers(host)

    def _kill_both(self, host: Host) -> None:
        self._say(f"{host.name}: agent and launchers killed")
        self.cluster.kill_agent_and_launchers(host)
        self._healing.callback(self.cluster.start_agent, host)

    def _stop_agent(self, host: Host) -> None:
        self._say(f"{host.name}: agent stopped")
        self._healing.enter_context(self.cluster.stopped_agent(host))

    def _reboot(self, host: Host) -> None:
        self._say(f"{host.name}: reboot")
        self.cluster.reboot(host)

    def _crash(self, host: Host) -> None:
        self._say(f"{host.name}: crash")
        self.cluster.crash(host)
        self._healing.callback(self.cluster.boot, host)

    def _kill_manager(self, _host: Host) -> None:
        if self._manager_is_up:
            self._say("manager killed")
            self.cluster.kill_manager()
            self._manager_is_up = False
            self._healing.callback(self._start_manager)

    def _start_manager(self) -> None:
        self.cluster.start()
        self._manager_is_up = True


def _campaign(
    tmp_path: Path, *, seed: int, rounds: int, jobs: int, wide: bool = False, gentle: bool = False
) -> None:
    with cluster(tmp_path, hosts=4) as made:
        made.up()
        campaign = Campaign(made, seed, gentle=gentle)
        for _ in range(rounds):
            campaign.add(jobs)
            if wide:
                campaign.add_wide()
            time.sleep(campaign.random.uniform(0, 1))
            campaign.break_something()
            if campaign.random.random() < 0.3:
                campaign.break_something()
            time.sleep(campaign.random.choice([0, 0.5, 1, 4]))
            campaign.heal()
        try:
            made.wait(made.all_ended, "all jobs have ended", seconds=120)
            made.judge()
            campaign.judge()
        except AssertionError as error:
            raise AssertionError("\n".join([*campaign.story, str(error)])) from error


@pytest.mark.parametrize("wide", [False, True])
def test_many_jobs_survive_random_faults_of_a_cluster(tmp_path: Path, wide: bool) -> None:
    _campaign(tmp_path, seed=random.randrange(10**6), rounds=5, jobs=5, wide=wide)


def test_no_job_is_lost_while_only_agents_managers_and_links_fail(tmp_path: Path) -> None:
    _campaign(tmp_path, seed=random.randrange(10**6), rounds=4, jobs=4, gentle=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_no_job_is_lost_in_many_faults_of_agents_managers_and_links(tmp_path: Path, seed: int) -> None:
    _campaign(tmp_path, seed=seed, rounds=40, jobs=12, gentle=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(20))
def test_hundreds_of_jobs_survive_many_random_faults_of_a_cluster(tmp_path: Path, seed: int) -> None:
    _campaign(tmp_path, seed=seed, rounds=40, jobs=12, wide=seed % 2 == 1)
