# Derived from rota/client/aio/site.py by `make client`: change it there.
"""Operations on what jobs run on and by which rules: plan, limits, site, sizes learned, accounts, nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rota.client import calls, submission
from rota.client.blocking.connection import Connection
from rota.client.calls import SiteChange
from rota.wire import messages as m
from rota.wire import sums, views

if TYPE_CHECKING:
    from rota.wire.gantt import GanttView


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

    def shares(self, *, queue: str = "") -> sums.SharesView:
        """How users and projects stand in queues that go by fair share, and why; in one if one is named."""
        return self.ask(calls.shares(queue=queue))

    def set_site(self, changes: Iterable[SiteChange], *, about: str = "", base: int | None = None) -> int:
        """Change records of the site, all of them or none; the new version. With `base`, only if the site
        still has that version.

            manager.set_site([("queue", "night", {"priority": 1}), ("queue", "old", None)])
        """
        return self.ask(calls.set_site(changes, about=about, base=base))

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
        """Who used what between two moments (Unix seconds), in windows that begin at multiples of `window_s`, or
        in those of `window` (`hour`, `day`, `week`, `month`, `all` or a time such as `36h`) in a time zone."""
        call = calls.accounting(since=since, until=until, by=by, window_s=window_s, window=window, zone=zone)
        return self.ask(call)

    def usage(self, *, since: float | None = None, until: float | None = None) -> sums.UsageView:
        """How hosts spent their time between two moments (Unix seconds)."""
        return self.ask(calls.usage(since=since, until=until))

    def history(self, *, minutes: int = 60) -> sums.HistoryView:
        """How many jobs started and ended in each of the last minutes."""
        return self.ask(calls.history(minutes=minutes))

    def nodes(self) -> list[sums.NodeView]:
        """All hosts, with what they have and what of it is in use."""
        return self.ask(calls.nodes())

    def node(self, host: str) -> sums.NodeDetailView:
        """One host, with what it did lately."""
        return self.ask(calls.node(host))
