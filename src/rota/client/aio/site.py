"""Operations on what jobs run on and by which rules: plan, limits, site, sizes learned, accounts, nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rota.client import calls, submission
from rota.client.aio.connection import AsyncConnection
from rota.client.calls import SiteChange
from rota.wire import client_messages as m
from rota.wire import gang_views, pool_views, sums, views

if TYPE_CHECKING:
    from rota.wire.gantt import GanttView
    from rota.wire.usage_views import MachineUsageView


class SiteOperations(AsyncConnection):
    """What can be asked about the site, its plan and its past, and changed there."""

    async def plan(self, *, user: str = "", **fields: Any) -> views.PlanView:
        """When and where a job with these fields of `add` would run; nothing is submitted."""
        return await self.plan_for(submission.spec_of(fields), user=user)

    async def plan_for(self, spec: m.NewSpec, *, user: str = "") -> views.PlanView:
        """The same for a specification."""
        return await self.ask(calls.plan(spec, user=user))

    async def gantt(
        self, *, since: float | None = None, until: float | None = None, limit: int = 10_000
    ) -> GanttView:
        """What runs and what is planned between two moments (Unix seconds)."""
        return await self.ask(calls.gantt(since=since, until=until, limit=limit))

    async def limits(self) -> list[views.LimitView]:
        """All limits with capacity, use and waiting jobs."""
        return await self.ask(calls.limits())

    async def set_limit(self, text: str, *, host: str = "") -> None:
        """Declare or change a limit: `"blast:5"`, `"blast:unlimited"`, `"night@22:00-06:00"`."""
        await self.ask(calls.set_limit(text, host=host))

    async def site(self, *kinds: str) -> views.SiteView:
        """Records of the site of these kinds, or (none given) of all, with their version."""
        return await self.ask(calls.site(kinds))

    async def quotas(self) -> views.QuotasView:
        """All quotas, and who holds how much of each."""
        return await self.ask(calls.quotas())

    async def pools(self, name: str = "") -> pool_views.PoolsView:
        """Where jobs run: all pools in the order in which they are tried, or one."""
        return await self.ask(calls.pools(name))

    async def gang(self, name: str) -> gang_views.GangView:
        """The newest gang of this name: its members with their states and hosts, and who is missing."""
        return await self.ask(calls.gang(name))

    async def shares(self, *, queue: str = "") -> sums.SharesView:
        """How users and projects stand in queues that go by fair share, and why; in one if one is named."""
        return await self.ask(calls.shares(queue=queue))

    async def set_site(self, changes: Iterable[SiteChange], *, about: str = "", base: int | None = None) -> int:
        """Change records of the site, all of them or none; the new version. With `base`, only if the site
        still has that version.

            await manager.set_site([("queue", "night", {"priority": 1}), ("queue", "old", None)])
        """
        return await self.ask(calls.set_site(changes, about=about, base=base))

    async def node_ready(self, host: str = "") -> str:
        """Say that a machine that is being provisioned is ready. Returns its name."""
        return await self.ask(calls.node_ready(host))

    async def provision_output(self, job: int, *, attempt: int = 0) -> list[tuple[int, str, bytes]]:
        """(attempt, machine, output) of what provisioned the machines of a job, for its latest attempt or this
        one."""
        return await self.ask(calls.provision_output(job, attempt))

    async def learned(self, name: str = "") -> list[views.LearnedGroupView]:
        """What was learned about a learning group, with histograms, or (no name) about all."""
        return await self.ask(calls.learned(name))

    async def forget_learned(self, name: str = "") -> None:
        """Forget what was learned about a group, or (no name) about all."""
        await self.ask(calls.forget_learned(name))

    async def accounting(
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        by: Iterable[str] = ("user", "project", "queue"),
        window_s: int = 86_400,
        window: str = "",
        zone: str = "",
    ) -> sums.AccountingView:
        """Who used what between two moments (Unix seconds), in windows that begin at multiples of `window_s`.
        `window` (`hour`, `day`, `week`, `month`, `all` or a time such as `36h`): in windows of this time zone."""
        call = calls.accounting(since=since, until=until, by=by, window_s=window_s, window=window, zone=zone)
        return await self.ask(call)

    async def usage(self, *, since: float | None = None, until: float | None = None) -> sums.UsageView:
        """How hosts spent their time between two moments (Unix seconds)."""
        return await self.ask(calls.usage(since=since, until=until))

    async def machine_usage(
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        hosts: Iterable[str] = (),
        by: str = "host",
        window: str = "",
        zone: str = "",
    ) -> MachineUsageView:
        """How machines spent their time between two moments (Unix seconds): by host, group or a property (empty:
        all together), in one window or in several."""
        return await self.ask(
            calls.machine_usage(since=since, until=until, hosts=hosts, by=by, window=window, zone=zone)
        )

    async def history(self, *, minutes: int = 60) -> sums.HistoryView:
        """How many jobs started and ended in each of the last minutes."""
        return await self.ask(calls.history(minutes=minutes))

    async def nodes(self) -> list[sums.NodeView]:
        """All hosts, with what they have and what of it is in use."""
        return await self.ask(calls.nodes())

    async def node(self, host: str) -> sums.NodeDetailView:
        """One host, with what it did lately."""
        return await self.ask(calls.node(host))

    async def set_machines(
        self,
        *hosts: str,
        condition: str | None = None,
        reason: str | None = None,
        owner: str | None = None,
        groups: Iterable[str] | None = None,
        provision_cmd: str | None = None,
        now: bool = False,
    ) -> list[str]:
        """Change machines: their condition and its reason, owner, machine groups or provision command; what is
        None stays. With `now`, jobs there are aborted."""
        return await self.ask(
            calls.set_machines(
                hosts,
                condition=condition,
                reason=reason,
                owner=owner,
                groups=groups,
                provision_cmd=provision_cmd,
                now=now,
            )
        )

    async def reserve_machine(self, host: str, *, seconds: float, when_free: bool = False) -> float | None:
        """Reserve a machine for use by hand; until when (Unix seconds), or None: as soon as it is free."""
        return await self.ask(calls.reserve_machine(host, seconds=seconds, when_free=when_free))

    async def return_machine(self, host: str) -> None:
        """Return a machine that was reserved by hand, or give up waiting for it."""
        await self.ask(calls.return_machine(host))
