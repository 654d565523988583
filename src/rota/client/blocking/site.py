# Derived from rota/client/aio/site.py by `make client`: change it there.
"""Operations on what jobs run on and by which rules: plan, limits, site, sizes learned, accounts, nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rota.client import calls, submission
from rota.client.blocking.connection import Connection
from rota.client.calls import SiteChange
from rota.wire import client_messages as m
from rota.wire import gang_views, pool_views, sums, views

if TYPE_CHECKING:
    from rota.wire.gantt import GanttView
    from rota.wire.usage_views import MachineUsageView


class SiteOperations(Connection):
    """What can be asked about the site, its plan and its past, and changed there."""

    def plan(self, *, user: str = "", **fields: Any) -> views.PlanView:
        """When and where a job with these fields of `add` would run; nothing is submitted."""
        return self.plan_for(submission.spec_of(fields), user=user)

    def plan_for(self, spec: m.NewSpec, *, user: str = "") -> views.PlanView:
        """The same for a specification."""
        return self.ask(calls.plan(spec, user=user))

    def gantt(self, *, since: float | None = None, until: float | None = None, limit: int = 10_000) -> GanttView:
        """What runs and what is planned between two moments (Unix seconds)."""
        return self.ask(calls.gantt(since=since, until=until, limit=limit))

    def limits(self) -> list[views.LimitView]:
        """All limits with capacity, use and waiting jobs."""
        return self.ask(calls.limits())

    def set_limit(self, text: str, *, host: str = "") -> None:
        """Declare or change a limit: `"blast:5"`, `"blast:unlimited"`, `"night@22:00-06:00"`."""
        self.ask(calls.set_limit(text, host=host))

    def site(self, *kinds: str) -> views.SiteView:
        """Records of the site of these kinds, or (none given) of all, with their version."""
        return self.ask(calls.site(kinds))

    def quotas(self) -> views.QuotasView:
        """All quotas, and who holds how much of each."""
        return self.ask(calls.quotas())

    def pools(self, name: str = "") -> pool_views.PoolsView:
        """Where jobs run: all pools in the order in which they are tried, or one."""
        return self.ask(calls.pools(name))

    def gang(self, name: str) -> gang_views.GangView:
        """The newest gang of this name: its members with their states and hosts, and who is missing."""
        return self.ask(calls.gang(name))

    def shares(self, *, queue: str = "") -> sums.SharesView:
        """How users and projects stand in queues that go by fair share, and why; in one if one is named."""
        return self.ask(calls.shares(queue=queue))

    def set_site(self, changes: Iterable[SiteChange], *, about: str = "", base: int | None = None) -> int:
        """Change records of the site, all of them or none; the new version. With `base`, only if the site
        still has that version.

            manager.set_site([("queue", "night", {"priority": 1}), ("queue", "old", None)])
        """
        return self.ask(calls.set_site(changes, about=about, base=base))

    def node_ready(self, host: str = "") -> str:
        """Say that a machine that is being provisioned is ready. Returns its name."""
        return self.ask(calls.node_ready(host))

    def provision_output(self, job: int, *, attempt: int = 0) -> list[tuple[int, str, bytes]]:
        """(attempt, machine, output) of what provisioned the machines of a job, for its latest attempt or this
        one."""
        return self.ask(calls.provision_output(job, attempt))

    def learned(self, name: str = "") -> list[views.LearnedGroupView]:
        """What was learned about a learning group, with histograms, or (no name) about all."""
        return self.ask(calls.learned(name))

    def forget_learned(self, name: str = "") -> None:
        """Forget what was learned about a group, or (no name) about all."""
        self.ask(calls.forget_learned(name))

    def accounting(
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
        return self.ask(call)

    def usage(self, *, since: float | None = None, until: float | None = None) -> sums.UsageView:
        """How hosts spent their time between two moments (Unix seconds)."""
        return self.ask(calls.usage(since=since, until=until))

    def machine_usage(
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
        return self.ask(
            calls.machine_usage(since=since, until=until, hosts=hosts, by=by, window=window, zone=zone)
        )

    def history(self, *, minutes: int = 60) -> sums.HistoryView:
        """How many jobs started and ended in each of the last minutes."""
        return self.ask(calls.history(minutes=minutes))

    def nodes(self) -> list[sums.NodeView]:
        """All hosts, with what they have and what of it is in use."""
        return self.ask(calls.nodes())

    def node(self, host: str) -> sums.NodeDetailView:
        """One host, with what it did lately."""
        return self.ask(calls.node(host))

    def set_machines(
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
        return self.ask(
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

    def reserve_machine(self, host: str, *, seconds: float, when_free: bool = False) -> float | None:
        """Reserve a machine for use by hand; until when (Unix seconds), or None: as soon as it is free."""
        return self.ask(calls.reserve_machine(host, seconds=seconds, when_free=when_free))

    def return_machine(self, host: str) -> None:
        """Return a machine that was reserved by hand, or give up waiting for it."""
        self.ask(calls.return_machine(host))
