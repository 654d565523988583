"""Admission rules: what a site refuses, changes or adds when a job is submitted.

A rule matches jobs and then does one thing: fill in a missing value (`default`), lower values (`cap`), replace
them (`set`), or refuse the job (`reject`). Rules are data and apply in order, each to the job as the earlier rules
left it, with the consequences of their changes (`_follow`). A cap also limits values that later defaults and
queues give; only a later `set` can exceed it.

`core.admission.rule_syntax` reads and writes rules. Where they are stored is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from msgspec import Struct

from rota.plan.language import expression
from rota.plan.policy.policy import BESTEFFORT

#: A value of a field or condition: text, a number (seconds, bytes, hundredths of a core), or yes or no.
Value = str | int | float | bool | tuple[str, ...]

#: The levels that a site has unless it says otherwise.
LEVELS: Final = ("host", "core")
#: The queue of jobs to which no rule gives one.
LAST_QUEUE: Final = "default"
#: A job always has values of these, given by its user or learned.
LEARNED: Final = ("mem", "disk", "time")
#: Fields of jobs without a request.
OF_ONE_HOST: Final = ("cpus", "gpus")


class JobFacts(Struct, frozen=True, kw_only=True):
    """A job as rules see it. Fields have the names that users write."""

    user: str = ""
    queue: str = ""  #: empty: not given
    project: str = ""
    group: tuple[str, ...] = ()
    name: str = ""
    type: tuple[str, ...] = ()  #: "besteffort", "inner=12"…
    walltime: float | None = None  #: seconds
    priority: int = 0
    cpus: int = 100  #: hundredths
    mem: int = 0
    disk: int = 0
    time: float = 3600.0
    gpus: int = 0
    retries: int = 0
    retry_on: tuple[str, ...] | None = None
    given: tuple[str, ...] = ()  #: which of mem, disk and time the user gave
    uses: tuple[str, ...] = ()  #: levels that its request names
    walltimes: tuple[float | None, ...] = ()  #: of the alternatives of its request
    interactive: bool = False
    reservation: bool = False
    reservations: int = 0  #: waiting reservations of this user, this one included
    system: bool = False  #: the deployment runs jobs of many users
    where: str = ""  #: a property expression, in its canonical text
    wheres: tuple[str, ...] = ()  #: expressions of the groups of its request
    unix_group: tuple[str, ...] = ()  #: the user's Unix groups on the manager's host
    admin: bool = False  #: submitted by an administrator
    pool: str = ""  #: empty: not given


class AdmissionRule(Struct, frozen=True, kw_only=True):
    """One rule, parsed and checked."""

    name: str
    match: dict[str, Value] = {}  #: all of these must hold; empty: every job
    does: str  #: default, cap, set or reject
    values: dict[str, Value] = {}
    message: str = ""  #: for `reject`


class FieldChange(Struct, frozen=True):
    """A field that a rule changed."""

    rule: str
    does: str
    field: str
    old: Value | None
    new: Value
    warn: bool = False  #: it lowered what the user gave


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of all rules for one job."""

    facts: JobFacts  #: after all rules, or up to the one that refused it
    matched: tuple[str, ...] = ()  #: rules, in order
    steps: tuple[FieldChange, ...] = ()
    rejected_by: str = ""  #: a rule
    message: str = ""


def judge(
    rules: Sequence[AdmissionRule],
    facts: JobFacts,
    *,
    queue_walltimes: Mapping[str, float] = {},
    levels: Sequence[str] = LEVELS,
) -> Verdict:
    """Apply the rules in order. `queue_walltimes`: queue → walltime for jobs without one. `levels`: the levels of
    the site, the largest first."""
    matched: list[str] = []
    steps: list[FieldChange] = []
    caps: dict[str, float] = {}
    for rule in rules:
        if not holds(rule.match, facts, levels=levels, queue_walltimes=queue_walltimes):
            continue
        matched.append(rule.name)
        if rule.does == "reject":
            return Verdict(
                facts=facts,
                matched=tuple(matched),
                steps=tuple(steps),
                rejected_by=rule.name,
                message=rule.message,
            )
        facts = _applied(rule, facts, steps, queue_walltimes, caps)
    if not facts.queue:
        facts = msgspec.structs.replace(facts, queue=LAST_QUEUE)
    if facts.walltime is None:
        usual = min(queue_walltimes.get(facts.queue, math.inf), caps.get("walltime", math.inf))
        if math.isfinite(usual):
            facts = msgspec.structs.replace(facts, walltime=usual)
    return Verdict(facts=facts, matched=tuple(matched), steps=tuple(steps))


# ------------------------------------------------------------------ matching


def holds(
    match: Mapping[str, Value],
    facts: JobFacts,
    *,
    levels: Sequence[str] = LEVELS,
    queue_walltimes: Mapping[str, float] = {},
) -> bool:
    """Does every condition hold of this job?"""
    usual = queue_walltimes.get(facts.queue)
    return all(_holds(name, wanted, facts, levels, usual) for name, wanted in match.items())


def _holds(name: str, wanted: Value, facts: JobFacts, levels: Sequence[str], usual: float | None) -> bool:
    if name.endswith("_over"):
        assert isinstance(wanted, int | float)
        return _amount(name.removesuffix("_over"), facts, usual) > wanted
    if isinstance(wanted, bool):
        return getattr(facts, name) is wanted
    assert isinstance(wanted, tuple)
    if name == "uses":
        return _any_of(tuple(_level(pattern) for pattern in wanted), _reached(facts.uses, levels))
    if name == "type":
        # `inner` is meant by any `inner=12`.
        return _any_of(wanted, (*facts.type, *(word.partition("=")[0] for word in facts.type)))
    if name in ("group", "unix_group"):
        return _any_of(wanted, getattr(facts, name))
    if name == "where":
        return _any_of(wanted, _said_of_properties(facts))
    return _any_of(wanted, (getattr(facts, name),))


def _said_of_properties(facts: JobFacts) -> tuple[str, ...]:
    """The expressions of a job and the properties that they name; an empty text for a job without any."""
    texts = [text for text in (facts.where, *facts.wheres) if text]
    names = {name for text in texts for name in expression.names(expression.parse(text))}
    return (*texts, *sorted(names)) or ("",)


def _amount(field: str, facts: JobFacts, usual: float | None) -> float:
    """How much of a field it asks for. A job without a walltime has the `usual` one of its queue, else an infinite
    one."""
    if field == "walltime":
        return _longest(facts, usual)
    amount = getattr(facts, field)
    assert isinstance(amount, int | float)
    return amount


def _longest(facts: JobFacts, usual: float | None = None) -> float:
    otherwise = math.inf if usual is None else usual
    own = otherwise if facts.walltime is None else facts.walltime
    return max((own if each is None else each for each in facts.walltimes), default=own)


def _any_of(patterns: tuple[str, ...], words: Sequence[str]) -> bool:
    """Does a pattern with `*` match a word, and no pattern after a `!`?"""
    refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if any(fnmatchcase(word, pattern) for pattern in refused for word in words):
        return False
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    return not wanted or any(fnmatchcase(word, pattern) for pattern in wanted for word in words)


def _reached(uses: tuple[str, ...], levels: Sequence[str]) -> tuple[str, ...]:
    """The levels that a request names and all levels below: a job that takes a switch takes its hosts."""
    names = [_level(name) for name in uses]
    top = min((levels.index(name) for name in names if name in levels), default=len(levels))
    return (*names, *levels[top:-1])  # the last level is the resource itself, which every job uses


def _level(name: str) -> str:
    """`nodes` is another name of `host`, also behind a `!`."""
    return {"node": "host", "nodes": "host", "!node": "!host", "!nodes": "!host"}.get(name, name)


# ------------------------------------------------------------------ changing


def _applied(
    rule: AdmissionRule,
    facts: JobFacts,
    steps: list[FieldChange],
    queue_walltimes: Mapping[str, float],
    caps: dict[str, float],
) -> JobFacts:
    for field in sorted(rule.values, key=lambda each: each == "type"):  # types last: they may change the queue
        value = rule.values[field]
        if field in OF_ONE_HOST and facts.walltimes:
            continue  # its request has the numbers
        if rule.does == "cap":
            assert isinstance(value, int | float)
            caps[field] = min(value, caps.get(field, math.inf))
            new = _capped(field, value, facts, queue_walltimes)
        elif rule.does == "default":
            if _is_given(field, value, facts, queue_walltimes):
                continue
            if isinstance(value, int | float) and field in caps:
                value = min(value, caps[field])
            new = _set(field, value, facts, whole=False)
        else:
            caps.pop(field, None)
            new = _set(field, value, facts, whole=True)
        if new == facts:
            continue
        old = getattr(facts, field) if field != "walltime" else _longest_given(facts)
        given = old is not None and (field in facts.given or field not in LEARNED)
        numbers = isinstance(old, int | float) and isinstance(value, int | float)
        taken = rule.does == "cap" and given and numbers and old > value  # type: ignore[operator]
        steps.append(FieldChange(rule.name, rule.does, field, old, value, warn=taken))
        facts = _follow(field, new)
        for other in ("queue", "type"):
            if (now := getattr(facts, other)) != (was := getattr(new, other)):
                steps.append(FieldChange(rule.name, rule.does, other, was, now))
    return facts


def _follow(field: str, facts: JobFacts) -> JobFacts:
    """Keep the besteffort queue and the besteffort type consistent after a change of either."""
    by_queue, by_type = facts.queue == BESTEFFORT, BESTEFFORT in facts.type
    if by_queue == by_type:
        return facts
    if field == "type":
        return msgspec.structs.replace(facts, queue=BESTEFFORT)
    if field == "queue":
        others = tuple(word for word in facts.type if word != BESTEFFORT)
        return msgspec.structs.replace(facts, type=(BESTEFFORT, *others) if by_queue else others)
    return facts


def _longest_given(facts: JobFacts) -> float | None:
    longest = _longest(facts)
    return longest if math.isfinite(longest) else None


def _is_given(field: str, value: Value, facts: JobFacts, queue_walltimes: Mapping[str, float]) -> bool:
    """Does the job or its queue have a value already, so that a default does not apply?"""
    if field == "type" and isinstance(value, tuple) and BESTEFFORT in value:
        return bool(facts.type) or facts.queue not in ("", LAST_QUEUE, BESTEFFORT)
    if field == "retry_on":
        return facts.retry_on is not None
    if field == "where":
        return bool(facts.where or any(facts.wheres))
    if field == "walltime":
        if facts.walltime is not None or facts.queue in queue_walltimes:
            return True
        return bool(facts.walltimes) and None not in facts.walltimes
    if field in LEARNED:
        return field in facts.given
    return bool(getattr(facts, field))


def _capped(field: str, most: Value, facts: JobFacts, queue_walltimes: Mapping[str, float]) -> JobFacts:
    assert isinstance(most, int | float)
    if field != "walltime":
        return facts if getattr(facts, field) <= most else msgspec.structs.replace(facts, **{field: most})
    own = facts.walltime if facts.walltime is not None else queue_walltimes.get(facts.queue, math.inf)
    each = tuple(None if one is None else min(one, most) for one in facts.walltimes)
    if own <= most:
        return msgspec.structs.replace(facts, walltimes=each)
    return msgspec.structs.replace(facts, walltime=most, walltimes=each)


def _set(field: str, value: Value, facts: JobFacts, *, whole: bool) -> JobFacts:
    if field == "type":
        assert isinstance(value, tuple)
        more = tuple(word for word in value if word not in facts.type)
        return msgspec.structs.replace(facts, type=(*facts.type, *more))
    if field == "where":
        assert isinstance(value, str)
        return msgspec.structs.replace(facts, where=expression.conjoined(facts.where, value))
    if field == "walltime":
        # A default does not change alternatives with a walltime of their own.
        each = tuple(value if whole and one is not None else one for one in facts.walltimes)
        return msgspec.structs.replace(facts, walltime=value, walltimes=each)
    given = facts.given
    if field in LEARNED and field not in given:
        given = (*given, field)
    return msgspec.structs.replace(facts, **{field: value}, given=given)
