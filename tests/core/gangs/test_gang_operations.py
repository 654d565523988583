"""Random histories of gangs while the manager is paused, drained, in safe mode and started again, and hosts are
drained, provisioned before a run and held after it."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from rota.core import events
from rota.core.bugs.ledger import BUGS
from rota.core.machines.machine_events import MachineSet
from rota.core.machines.provision_records import SendProvision
from rota.core.site.manager_pause import starts_nothing
from tests.core.gangs.test_gang_properties import GangHistories, gang_specs
from tests.core.gangs.whole_placement import WholePlacement
from tests.core.machine import Entry, spec
from tests.core.machines.test_provisioning import Lab
from tests.core.test_planned import site
from tests.core.test_properties import numbers
from tests.dose import half, histories

#: What its machines go through before the run and after it.
around = st.builds(
    lambda provision, reserve: {"provision": provision, "reserve": reserve, "reserve_for_s": 100.0},
    st.sampled_from(["", "setup"]),
    st.sampled_from(["always", "onfail", "onabort"]),
) | st.just({})  # fmt: skip


class Operated(Lab):
    """A lab whose agents provision at once if they are `obliging`, else when the history says so."""

    obliging = False

    def pump(self) -> None:
        super().pump()
        while self.obliging and (orders := self.orders_heard()):
            self.orders.remove(orders[0])
            self.started_there(orders[0])
            self.ended_there(orders[0])

    def orders_heard(self) -> list[SendProvision]:
        """Those whose agents are there to follow them."""
        alive = {model.id for model in self.runners.values() if model.connected and not model.dead}
        return [order for order in self.orders if order.runner in alive]


class OperatedGangs(GangHistories):
    """What people and the manager's own faults do to gangs in each of their phases."""

    @initialize(seed=numbers, hosts=st.sampled_from([2, 3]), simple=st.booleans())
    def begin(self, seed: int, hosts: int, simple: bool) -> None:
        given = {"placement": lambda first_seat: WholePlacement(first_seat=first_seat)} if simple else {}
        self.m = self.lab = Operated(cpus=100, hosts=hosts, seed=seed, **given)
        self.gangs = 0
        self.held_when_stopped: set[tuple[int, int]] | None = None
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.m.pump()

    @rule(size=st.integers(1, 3), its=gang_specs, more=around)
    def add_prepared_gang(self, size: int, its: dict[str, object], more: dict[str, object]) -> None:
        self.gangs += 1
        name = f"g{self.gangs}"
        self.m.send_chunk(
            [
                Entry(f"gang {name} {n}", spec(gang=name, name=f"n{n}", **its, **more))
                for n in range(min(size, len(self.m.capacity)))
            ],
            fresh=True,
        )

    # -- machines

    @precondition(lambda self: self.lab.orders_heard())
    @rule(pick=numbers, ends=st.sampled_from([None, 0, 0, 1]))
    def machine_is_provisioned(self, pick: int, ends: int | None) -> None:
        orders = self.lab.orders_heard()
        order = orders[pick % len(orders)]
        self.lab.started_there(order)
        if ends is not None:
            self.lab.orders.remove(order)
            self.lab.ended_there(order, exit_code=ends)

    @rule(pick=numbers, drain=st.booleans())
    def host_is_drained(self, pick: int, drain: bool) -> None:
        hosts = sorted(self.m.capacity)
        site(self.m, ("host", hosts[pick % len(hosts)], {"drain": drain}))

    # -- the manager starts nothing

    @rule()
    def manager_is_paused(self) -> None:
        self.m.happened(events.ManagerPaused())

    @rule()
    def manager_is_drained(self) -> None:
        self.m.happened(events.ManagerDrained())

    @rule()
    def manager_meets_bugs(self) -> None:
        """Safe mode, as it is found after the start that follows a bug."""
        self.m.pump()
        self.m.world.bugs = msgspec.structs.replace(self.m.world.bugs, total=1, safe_mode="granting: KeyError: 7")
        self.m.open.changes.meta[BUGS] = self.m.world.bugs.text()
        self.m.happened(events.TimerFired())
        self.m.pump()
        self.crash(False)

    @rule()
    def manager_is_resumed(self) -> None:
        self.m.happened(events.ManagerResumed())

    @invariant()
    def nothing_is_leased_while_the_manager_starts_nothing(self) -> None:
        if not hasattr(self, "m"):
            return
        held = {(job.id, job.attempt) for job in self.m.world.jobs.values() if job.lease is not None}
        if not starts_nothing(self.m.world):
            self.held_when_stopped = None
        elif self.held_when_stopped is None:
            self.held_when_stopped = held
        else:
            assert held <= self.held_when_stopped

    def lift(self) -> None:
        self.lab.obliging = True
        self.m.happened(events.ManagerResumed())
        for host in self.m.capacity:
            site(self.m, ("host", host, {"drain": False}))
        self.m.happened(
            MachineSet(by=self.m.asker(), operator=True, hosts=sorted(self.m.capacity), condition="automated")
        )
        super().lift()


TestOperatedGangs = OperatedGangs.TestCase
TestOperatedGangs.settings = histories(half(16), steps=50)
