"""The site: records of resources, properties, queues, quotas, calendars and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.api.routes.policy_views import QueuesView, RulesView, queues_view, rules_view
from rota.client import calls
from rota.client.rule_trial import KINDS, TrialView, try_rules
from rota.core.site.policy import queues_of
from rota.errors import NotFound
from rota.plan.policy.policy_records import opened_or_closed
from rota.wire.views import QuotasView, SiteView

table = OperationTable("site")

RecordName = Annotated[str, Meta(min_length=1, max_length=255)]


class Records(Struct):
    """Records of one kind by name. A change based on an older version is refused."""

    version: int
    records: dict[str, Any]


class OneRecord(Struct, forbid_unknown_fields=True):
    name: RecordName


class Base(Struct, forbid_unknown_fields=True):
    base: Annotated[int, Meta(ge=0, description="Refuse the change if the site has another version.")] | None = (
        None
    )


class SiteChange(Struct, forbid_unknown_fields=True):
    kind: str
    name: RecordName
    value: Any = None


class SiteChanges(Struct, forbid_unknown_fields=True):
    changes: Annotated[list[SiteChange], Meta(min_length=1, max_length=100_000)]
    base: int | None = None


class Version(Struct):
    version: int


@table.get("/site", "show_site", answer=SiteView)
async def show_site(request: ApiRequest) -> SiteView:
    """All records of the site, and the known hosts."""
    return await request.call(calls.site(()))


@table.patch("/site", "change_site", body=SiteChanges, answer=Version, role="admin", body_max=64 << 20)
async def change_site(request: ApiRequest) -> Version:
    """Change records, all or none; a value of null removes one."""
    changes = [(each.kind, each.name, each.value) for each in request.body.changes]
    return Version(await request.call(calls.set_site(changes, about="api", base=request.body.base)))


def _plain(kind: str) -> Callable[[SiteView], Any]:
    return lambda view: Records(view.version, view.of(kind))


def _records(
    kind: str,
    plural: str,
    what: str,
    *,
    answer: Any = Records,
    shown: Callable[[SiteView], Any] | None = None,
    call: Callable[[], calls.Call[Any]] | None = None,
) -> None:
    """Register the operations on records of one kind. `shown`: builds a list that has more than the records.
    `call`: the request for a list, if another one is needed."""
    show = shown or _plain(kind)

    async def list_records(request: ApiRequest) -> Any:
        return show(await request.call(calls.site((kind,)))) if call is None else await request.call(call())

    async def put_record(request: ApiRequest) -> Version:
        change = [(kind, request.path.name, request.body)]
        return Version(await request.call(calls.set_site(change, about=f"{kind} set", base=request.query.base)))

    async def delete_record(request: ApiRequest) -> None:
        view = await request.call(calls.site((kind,)))
        if request.path.name not in view.of(kind):
            raise NotFound(f"there is no {kind} '{request.path.name[:80]}'", hint=f"list them at /api/v1/{plural}")
        base = request.query.base if request.query.base is not None else view.version
        await request.call(calls.set_site([(kind, request.path.name, None)], about=f"{kind} remove", base=base))

    which = "recorded for the site" if shown is None else "including built-in ones"
    list_records.__doc__ = f"All {plural} {which}: {what}."
    put_record.__doc__ = f"Write a {kind}, a new one or in place of another."
    delete_record.__doc__ = f"Remove a {kind}."
    table.get(f"/{plural}", f"list_{plural}", answer=answer)(list_records)
    path, one = f"/{plural}/{{name}}", {"place": OneRecord, "query": Base, "role": "admin"}
    table.put(path, f"put_{kind}", body=dict[str, Any], answer=Version, **one)(put_record)
    table.delete(path, f"remove_{kind}", status=204, **one)(delete_record)


_records("property", "properties", "what resources may have, with its type")
_records("resource", "resources", "by id, with the values of their properties")
_records("host", "hosts", "figures and states of whole hosts")
_records("machine_group", "machine_groups", "members, and a cap on the priority of others")
_records("queue", "queues", "priority, order, backfill, walltime, shares", answer=QueuesView, shown=queues_view)
_records(
    "quota",
    "quotas",
    "rules with limits of resources, jobs and resource-hours, and their use",
    answer=QuotasView,
    call=calls.quotas,
)
_records("calendar", "calendars", "periods in which sets of quotas apply")
_records("rule", "rules", "admission rules in their order", answer=RulesView, shown=rules_view)


class Closing(Struct, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000, description="Shown to users whose job is refused.")] = ""


async def _open_or_close(request: ApiRequest, reason: str | None) -> Version:
    name = request.path.name
    view = await request.call(calls.site(("queue",)))
    if name not in queues_of(view.site()):
        raise NotFound(f"there is no queue '{name[:80]}'", hint="list them at /api/v1/queues")
    old = view.of("queue").get(name)
    record = opened_or_closed(name, old, reason)
    if record == old:
        return Version(view.version)
    about = f"queue {'open' if reason is None else 'close'} {name}"
    return Version(await request.call(calls.set_site([("queue", name, record)], about=about, base=view.version)))


@table.post("/queues/{name}/close", "close_queue", place=OneRecord, body=Closing, answer=Version, role="admin")
async def close_queue(request: ApiRequest) -> Version:
    """Close a queue to new jobs. Its waiting and running jobs continue."""
    return await _open_or_close(request, request.body.reason.strip())


@table.post("/queues/{name}/open", "open_queue", place=OneRecord, answer=Version, role="admin")
async def open_queue(request: ApiRequest) -> Version:
    """Open a closed queue to new jobs again."""
    return await _open_or_close(request, None)


class RuleTest(Struct, forbid_unknown_fields=True):
    job: Annotated[dict[str, Any], Meta(description="Fields as for 'rota add', without a command.")] = field(
        default_factory=dict
    )
    user: Annotated[str, Meta(max_length=64, description="Whose job it would be; empty: yours.")] = ""
    interactive: bool = False
    system: Annotated[bool, Meta(description="As in a deployment that runs jobs of many users.")] = False
    reservations: Annotated[int, Meta(ge=0, le=1_000_000, description="How many the user has already.")] = 0
    admin: Annotated[bool, Meta(description="As if an administrator added it.")] = False
    unix_groups: Annotated[
        list[str] | None, Meta(description="Of the user; null: as known to the manager's host.")
    ] = None


@table.post("/rules/test", "test_rules", body=RuleTest, answer=TrialView)
async def test_rules(request: ApiRequest) -> TrialView:
    """What would the admission rules change in such a job? Nothing is submitted."""
    asked: RuleTest = request.body
    async with request.services.connections.client(request.credential.token) as client:
        site, me = await client.call(calls.site(KINDS)), client.welcome.user
    judged = try_rules(
        site.site(),
        asked.job,
        user=asked.user or me,
        interactive=asked.interactive,
        system=asked.system,
        reservations=asked.reservations + 1,
        text=False,
        admin=asked.admin,
        unix_groups=asked.unix_groups,
    )
    return judged.view()
