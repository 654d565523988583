"""Reads the jobs of a trace. Each becomes an `Ask` of the planner, and what only the simulation knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.fields.after import CONDITIONS
from rota.core.jobs.job import Condition
from rota.core.machines.hold_rules import ALWAYS
from rota.errors import BadInput
from rota.plan.ask import Ask, whole_hosts
from rota.plan.language import expression
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.request_parser import check_alternative, parse_request
from rota.plan.language.type_parser import check_reservation, parse_types
from rota.plan.language.types import Types
from rota.plan.need import LimitUse
from rota.plan.policy.policy import BESTEFFORT, Queue
from rota.plan.site.resources import Site
from rota.sim.machine_terms import MachineTerms, machine_terms
from rota.sim.objects import refusal
from rota.sim.rows import ids_of
from rota.sim.values import Moments, WrongField, did_you_mean, duration, field, shown, size, walltime

#: Fields that a trace may contain and that do not affect a plan.
IGNORED: Final = frozenset(("cmd", "cwd", "env", "group", "stdout", "stderr", "notify", "checkpoint", "signal"))

_MOST_RETRIES: Final = 1000
_LIMIT: Final = re.compile(r"([^\s:!]+)(?::(\d{1,9}))?(!?)")


class JobFields(Struct, kw_only=True):
    """The fields of a job in the document."""

    id: int
    submit: float | str = 0
    request: str | list[str] | None = None
    cpus: float | None = None
    mem: float | str = 0
    gpus: int = 0
    disk: float | str = 0
    time: float | str | None = None
    walltime: float | str | None = None
    where: str = ""
    run: float | str | None = None
    user: str = ""
    project: str = ""
    name: str = ""
    queue: str | None = None
    priority: int = 0
    type: str | list[str] = []
    at: float | str | None = None
    after: int | str | list[int | str] = []
    start: float | str | None = None
    resources: str | int | list[int] | None = None
    limits: str | list[str] | dict[str, int] = []
    exit: int | list[int] = 0
    retries: int = 0
    retry_on: str | list[str] | None = None
    backoff: float | str = 30
    gang: str | None = None
    gang_same: str | None = None
    gang_share: bool | None = None
    on_member_failure: str | None = None
    allow_unsatisfiable: bool = False
    prefer: str = ""
    force_host: str = ""
    provision: float | str = 0
    provision_fails: str | list[str] = []
    reserve: str | None = None
    reserve_for: float | str | None = None


class Parent(Struct, frozen=True, array_like=True):
    """A parent, and the condition on its end."""

    id: int
    condition: Condition = Condition.OK


class TraceJob(Struct, frozen=True, kw_only=True):
    """One job of a trace."""

    id: int
    submit: float
    ask: Ask
    run_s: float | None = None  #: None: until its walltime, or as long as expected
    exits: tuple[int, ...] = (0,)  #: exit codes of its attempts, the last one also of all that follow
    retries: int = 0
    retry_on: frozenset[str] | None = None  #: reason codes; None: all but walltime
    backoff_s: float = 30.0
    after: tuple[Parent, ...] = ()
    start: float | None = None  #: set if it is already running: since when …
    resources: int = 0  #: … and on which resources
    terms: MachineTerms = MachineTerms()


class JobReader:
    """Reads the jobs of one trace. Equal requests are parsed once."""

    def __init__(
        self,
        site: Site,
        queues: Mapping[str, Queue],
        limits: set[str],
        moments: Moments,
        *,
        hosts: Collection[str] = (),
    ) -> None:
        """`hosts`: all machines, also those that are added later."""
        self._site = site
        self._hosts = hosts
        self._queues = queues
        self._limits = limits
        self._moments = moments
        self._levels = {*site.levels, *site.kinds}
        self._alternatives: dict[tuple[str, str], Alternative] = {}
        self._checked: set[str] = {""}

    def read(self, given: object) -> TraceJob:
        """Read one job. Raises `BadInput` with the path of the field."""
        fields = _fields(given)
        with field("submit"):
            submit = self._moments.read(fields.submit)
        start, resources = self._running(fields)
        terms = machine_terms(fields, hosts=self._hosts, properties=self._site.kinds)
        return TraceJob(
            id=fields.id,
            submit=submit if start is None else min(submit, start),
            ask=self._ask(fields, terms),
            run_s=None if fields.run is None else _in("run", fields.run),
            exits=(fields.exit,) if isinstance(fields.exit, int) else tuple(fields.exit) or (0,),
            retries=_retries(fields.retries),
            retry_on=_retry_on(fields.retry_on),
            backoff_s=_in("backoff", fields.backoff),
            after=_parents(fields.after),
            start=start,
            resources=resources,
            terms=terms,
        )

    def _ask(self, fields: JobFields, terms: MachineTerms) -> Ask:
        types = self._types(fields)
        queue = self._queue(fields, types)
        if queue == BESTEFFORT and not types.besteffort:
            types = msgspec.structs.replace(types, besteffort=True)
        if not 0 <= fields.priority <= 255:
            raise WrongField("priority", f"{fields.priority} is out of range", hint="give a number from 0 to 255")
        if fields.gpus < 0:
            raise WrongField("gpus", f"{fields.gpus} is negative", hint="give a number of GPUs")
        with field("mem"):
            mem = size(fields.mem)
        with field("disk"):
            disk = size(fields.disk)
        return Ask(
            alternatives=self._request(fields, self._queues[queue], provisioned=terms.provision_s > 0),
            user=fields.user,
            project=fields.project,
            name=fields.name,
            queue=queue,
            priority=fields.priority,
            time_s=3600.0 if fields.time is None else _in("time", fields.time, least=0.001),
            mem=mem,
            disk=disk,
            gpus=fields.gpus,
            share=round(fields.cpus * 100) if fields.cpus is not None and fields.cpus < 1 else 0,
            limits=self._uses(fields.limits),
            types=types,
            at=self._at(fields, types),
            prefer=fields.prefer,
            force_host=fields.force_host,
            before_s=terms.provision_s,
            after_s=terms.reserve_s if terms.reserve == ALWAYS else 0.0,
        )

    # -- its request

    def _request(self, fields: JobFields, queue: Queue, *, provisioned: bool) -> tuple[Alternative, ...]:
        self._check_expression("where", fields.where)
        self._check_expression("prefer", fields.prefer)
        limit = queue.walltime_s
        if fields.walltime is not None:
            with field("walltime"):
                limit = walltime(fields.walltime)
        found: list[Alternative] = []
        if fields.request is None:
            found.append(self._simple(fields))
        elif fields.cpus is not None:
            raise WrongField("cpus", "it has a request as well", hint="give one of them")
        elif isinstance(fields.request, str):
            found.append(self._alternative(fields.request, fields.where, "request"))
        elif not fields.request:
            raise WrongField("request", "it is empty", hint='write it like ["nodes=2,walltime=1h"]')
        else:
            for number, text in enumerate(fields.request):
                found.append(self._alternative(text, fields.where, f"request[{number}]"))
        if provisioned:
            found = [self._whole_hosts(each) for each in found]
        return tuple(
            msgspec.structs.replace(one, walltime_s=limit) if one.walltime_s is None and limit is not None else one
            for one in found
        )

    def _alternative(self, text: str, where: str, path: str) -> Alternative:
        found = self._alternatives.get((text, where))
        if found is None:
            with field(path):
                read = self._unit_for_core(parse_request(text), text)
                check_alternative(read, text, levels=self._levels, kinds=self._site.kinds)
            found = msgspec.structs.replace(read, groups=tuple(narrowed(group, where) for group in read.groups))
            self._alternatives[text, where] = found
        return found

    def _whole_hosts(self, one: Alternative) -> Alternative:
        """The same of whole hosts, as its machines are provisioned; one unit means one host."""
        unit = (Level(self._site.unit, 1),)
        levels = [(Level("host", 1),) if group.levels == unit else group.levels for group in one.groups]
        if "host" not in self._site.kinds or not all("host" in (each.name for each in own) for own in levels):
            hint = "name how many: nodes=1"
            raise WrongField("request", "provisioning takes whole hosts, and it asks for none", hint=hint)
        groups = (
            whole_hosts(msgspec.structs.replace(group, levels=own))
            for group, own in zip(one.groups, levels, strict=True)
        )
        return msgspec.structs.replace(one, groups=tuple(groups))

    def _unit_for_core(self, read: Alternative, text: str) -> Alternative:
        """A walltime alone means one core, even if the site's unit has another name."""
        if "core" in self._levels or "core" in text or read.groups != (ResourceGroup((Level("core", 1),)),):
            return read
        return msgspec.structs.replace(read, groups=(ResourceGroup((Level(self._site.unit, 1),)),))

    def _simple(self, fields: JobFields) -> Alternative:
        """The request of a job that gives only `cpus`: so many cores of one host."""
        cpus = 1.0 if fields.cpus is None else fields.cpus
        if cpus <= 0.005 or (cpus > 1 and cpus != int(cpus)):
            raise WrongField("cpus", f"{cpus:g} is no number of cores here", hint="give 0.01 to 1, or whole cores")
        unit = Level(self._site.unit, max(1, int(cpus)))
        hosts = (Level("host", 1),) if "host" in self._levels and unit.name != "host" else ()
        return Alternative((ResourceGroup((*hosts, unit), fields.where),))

    def _check_expression(self, name: str, text: str) -> None:
        if text not in self._checked:
            with field(name):
                expression.check(expression.parse(text), self._site.kinds)
            self._checked.add(text)

    # -- its terms

    def _types(self, fields: JobFields) -> Types:
        words = [fields.type] if isinstance(fields.type, str) else fields.type
        with field("type"):
            return parse_types([word for word in words if word], moment=self._moments.read)

    def _queue(self, fields: JobFields, types: Types) -> str:
        """The queue of a job. All besteffort jobs, and no others, are in the besteffort queue."""
        if types.besteffort:
            return BESTEFFORT
        queue = "default" if fields.queue is None else fields.queue
        if queue not in self._queues:
            raise WrongField(
                "queue", f"there is no queue {shown(queue)}", hint=did_you_mean(queue, self._queues, "queues")
            )
        return queue

    def _at(self, fields: JobFields, types: Types) -> float | None:
        if fields.at is None:
            return None
        with field("at"):
            at = self._moments.read(fields.at)
            check_reservation(types, at)
            return at

    def _uses(self, given: str | list[str] | dict[str, int]) -> tuple[LimitUse, ...]:
        uses: dict[str, LimitUse] = {}
        with field("limits"):
            if isinstance(given, dict):
                words = [f"{name}:{units}" for name, units in given.items()]
            else:
                words = [given] if isinstance(given, str) else given
            for word in words:
                match = _LIMIT.fullmatch(word)
                if match is None or match[2] == "0":
                    raise BadInput(
                        f"{shown(word)} is not a limit", hint="write it like bigmem, bigmem:2 or bigmem!"
                    )
                if match[1] not in self._limits:
                    raise BadInput(
                        f"there is no limit {shown(match[1])}",
                        hint=did_you_mean(match[1], sorted(self._limits), "limits"),
                    )
                if match[1] in uses:
                    raise BadInput(f"{shown(match[1])} is given twice", hint="name each limit once")
                uses[match[1]] = LimitUse(match[1], int(match[2] or 1), bool(match[3]))
        return tuple(uses.values())

    def _running(self, fields: JobFields) -> tuple[float | None, int]:
        if fields.start is None and fields.resources is None:
            return None, 0
        if fields.start is None or fields.resources is None:
            missing = "start" if fields.start is None else "resources"
            raise WrongField(missing, "missing", hint="a job that is running has both 'start' and 'resources'")
        with field("start"):
            start = self._moments.read(fields.start)
            if start > 0:
                raise BadInput(f"{start:g} is in the future", hint="a running job has a start of 0 or before")
        with field("resources"):
            return start, self._site.mask(ids_of(fields.resources))


def _in(path: str, value: float | str, *, least: float = 0.0) -> float:
    with field(path):
        return duration(value, least=least)


def _retries(given: int) -> int:
    if not 0 <= given <= _MOST_RETRIES:
        hint = f"give a number of attempts after the first, at most {_MOST_RETRIES}"
        raise WrongField("retries", f"{given} is out of range", hint=hint)
    return given


def _retry_on(given: str | list[str] | None) -> frozenset[str] | None:
    """`["exit", "walltime"]` or `"exit,walltime"`."""
    if given is None:
        return None
    words = given.split(",") if isinstance(given, str) else given
    return frozenset(word.strip() for word in words)


def narrowed(group: ResourceGroup, where: str) -> ResourceGroup:
    if not where:
        return group
    return msgspec.structs.replace(group, where=f"({where}) and ({group.where})" if group.where else where)


def _fields(given: object) -> JobFields:
    if not isinstance(given, dict):
        raise BadInput("it is not an object", hint='write it like {"id": 1, "request": ["nodes=2,walltime=60s"]}')
    known = JobFields.__struct_fields__
    for name in given:
        if name not in known and name not in IGNORED:
            raise BadInput(f"there is no field {shown(name)}", hint=did_you_mean(str(name), known, "fields"))
    try:
        return msgspec.convert(given, JobFields)
    except msgspec.ValidationError as error:
        raise refusal(error) from None


def _parents(given: int | str | list[int | str]) -> tuple[Parent, ...]:
    """`[1, 2]`, `"1,2"`, `"afterany:3"`."""
    found: dict[int, Parent] = {}
    for item in given if isinstance(given, list) else [given]:
        for word in str(item).split(","):
            condition, colon, name = word.strip().rpartition(":")
            if not name.strip().isdecimal() or len(name) > 400 or (colon and condition not in CONDITIONS):
                raise WrongField(
                    "after",
                    f"{shown(word)} is not a job",
                    hint="write an id, afterok:12, afterany:12 or afternotok:12",
                )
            found[int(name)] = Parent(int(name), Condition(CONDITIONS[condition]) if colon else Condition.OK)
    return tuple(found.values())
