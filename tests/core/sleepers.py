"""A cluster whose nodes sleep: a manager without a process, and what it asks of them."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core import effects as e
from rota.core.jobs.explain import why
from rota.core.machines.energy_rules import EnergyRules
from rota.core.machines.node_energy import NodeEnergy
from rota.core.machines.sleep_and_wake import WORDS
from rota.plan.site.node_facts import NodeFacts
from tests.core.machine import GIB, Machine
from tests.core.runners import ModelRunner

RULES = EnergyRules(
    sleeps=True, wakes=True, sleep_after_s=600.0, sleep_gap_s=1200.0, wake_s=120.0, wake_timeout_s=400.0
)


class Cluster(Machine):
    """Nodes h1, h2, … of two cores each, and what was asked of them."""

    def __init__(self, nodes: int = 2, *, rules: EnergyRules = RULES, **properties: dict[str, Any]) -> None:
        self.rules = rules
        self.asked: list[tuple[str, str]] = []  #: (sleep or wake, node), in order
        self.properties = properties
        super().__init__(cpus=200, hosts=nodes)
        self.nodes = {host: self.start_runner(host) for host in self.capacity}
        for host in self.nodes:
            self.come(host)
        self.tick()

    def _boot(self) -> None:
        super()._boot()
        self.world.use(NodeEnergy).rules = self.rules

    def come(self, host: str) -> None:
        """The agent of a node connects."""
        facts = NodeFacts(cores=2, mem=8 * GIB, disk=GIB, properties=self.properties.get(host, {}))
        self.happened(msgspec.structs.replace(self.nodes[host].join(), node=facts))

    def restart(self) -> None:
        """The manager is killed and started; those that are awake come again."""
        there = [host for host, model in self.nodes.items() if model.connected]
        self.crash()
        for host in there:
            self.come(host)
        self.pump()

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case e.SleepNodes(hosts):
                self.asked += [("sleep", host) for host in hosts]
            case e.WakeNodes(hosts):
                self.asked += [("wake", host) for host in hosts]
            case _:
                super()._perform(effect)

    def _send_work(self, model: ModelRunner, work: e.SendWork) -> None:
        # A lease may have been on its way before, but nothing is begun where somebody sleeps.
        for lease in work.leases:
            job = self.world.jobs.get(lease[0])
            if job is not None and job.lease is not None and job.lease.token == lease[2]:
                assert model.host not in self.world.site["energy"], f"job {job.id} is sent to {model.host}"
        super()._send_work(model, work)

    def tick(self, seconds: float = 1.0) -> None:
        """So much time passes, looked at after the first second and at the last; runners touch."""
        left = seconds
        while left > 0:
            step = 1.0 if left in (seconds, 1.0) else min(30.0, left - 1.0)
            left -= step
            self.advance(step)
            for model in self.nodes.values():
                model.report()
            self.pump()

    def part(self, host: str) -> None:
        """A node's agent is gone."""
        self.disconnect(self.nodes[host])
        self.pump()

    def wake(self, host: str) -> None:
        """A node is up: a new agent comes."""
        self.nodes[host] = self.start_runner(host)
        self.come(host)
        self.pump()

    def all_asleep(self) -> None:
        self.tick(RULES.sleep_after_s + 2)
        for host in [host for what, host in self.asked if what == "sleep"]:
            self.part(host)
        self.asked.clear()
        assert set(self.energy().values()) == {"asleep"}

    def energy(self) -> dict[str, str]:
        energy = self.world.site["energy"]
        return {host: WORDS[energy[host]["state"]] if host in energy else "" for host in self.nodes}

    def job(self, request: str = "nodes=1", **fields: Any) -> int:
        (job,) = self.add("true", fresh=True, request=(request,), **{"walltime_s": 600.0, **fields}).added
        return job

    def reasons(self, job: int) -> list[tuple[str, str]]:
        found = why(self.world, self.world.jobs[job], wall=self.wall)
        return [(each.code, each.message) for each in found]

    def runs_on(self, job: int) -> str:
        model, _seat = self.running()[job]
        return model.host

    def story(self) -> list[str]:
        return [event.text for event in self.store.events(0) if event.kind == "energy"]
