"""Quotas against a model that looks at every minute: never exceeded, never refused without need.

The model knows nothing of counters and steps. It holds a list of jobs and, for each rule and each group of jobs
that the rule counts together, adds up what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.policy.calendar_document import parse_calendar
from rota.plan.policy.quota_rules import QuotaSubject
from rota.plan.policy.quotas import Quotas
from rota.plan.site.clock import Clock, find_zone
from rota.plan.timeline.step_function import StepFunction
from tests.dose import dose, half

MINUTE = 60.0
EPOCH = datetime(2026, 1, 5, 8)
#: Every start that the model tries lies before this minute, and no period returns earlier.
FAR = 120

Values = tuple[int, int, int]  # resources, jobs, resource-minutes


@dataclass
class Job:
    who: QuotaSubject
    resources: int
    start: int
    end: int

    def at(self, minute: int) -> bool:
        return self.start <= minute < self.end


@dataclass
class Model:
    rules: dict[str, Values]
    sets: dict[str, dict[str, Values]]
    weekly: list[tuple[int, int, str]]
    oneshot: list[tuple[int, int, str]]
    jobs: dict[int, Job] = field(default_factory=dict)

    def periods(self) -> Iterator[tuple[str, set[int]]]:
        special = {minute for start, end, _name in self.oneshot for minute in range(start, end)}
        for start, end, name in self.weekly:
            yield name, set(range(start, end)) - special
        for start, end, name in self.oneshot:
            yield name, set(range(start, end))

    def exceeded(self) -> str | None:
        """A rule that is broken, in words."""
        jobs = list(self.jobs.values())
        minutes = range(min((job.start for job in jobs), default=0), max((job.end for job in jobs), default=0))
        for key, values in self.rules.items():
            for group in groups(key, jobs):
                for minute in minutes:
                    there = [job for job in group if job.at(minute)]
                    area = sum(job.resources * (job.end - job.start) for job in there)
                    if over(values, sum(job.resources for job in there), len(there), area):
                        return f"{key} at {minute}"
        for name, inside in self.periods():
            for key, values in self.sets[name].items():
                for group in groups(key, jobs):
                    if over(
                        values, 0, 0, sum(job.resources for job in group for minute in inside if job.at(minute))
                    ):
                        return f"{key} in {name}"
                    for minute in inside:
                        there = [job for job in group if job.at(minute)]
                        if over(values, sum(job.resources for job in there), len(there), 0):
                            return f"{key} of {name} at {minute}"
        return None

    def feasible(self, job: Job) -> bool:
        if "container" in job.who.types:
            return True
        self.jobs[-1] = job
        broken = self.exceeded()
        del self.jobs[-1]
        return broken is None


def over(values: Values, resources: int, jobs: int, area: int) -> bool:
    return any(0 <= most < found for most, found in zip(values, (resources, jobs, area), strict=True))


def groups(key: str, jobs: list[Job]) -> Iterator[list[Job]]:
    """The jobs that a rule counts, those together that it counts together."""
    found: dict[tuple[str, ...], list[Job]] = {}
    queue, project, kind, user = key.split(",")
    for job in jobs:
        who = job.who
        if "container" in who.types or (who.queue == "besteffort" and queue == "*"):
            continue
        for one in sorted(who.types) if kind == "/" else [kind]:
            if kind not in ("*", "/") and kind not in who.types:
                continue
            names = []
            for part, value in ((queue, who.queue), (project, who.project), (user, who.user)):
                if part not in ("*", "/", value):
                    break
                names.append(value if part == "/" else "")
            else:
                found.setdefault((*names, one), []).append(job)
    yield from found.values()


def limits() -> st.SearchStrategy[Values]:
    return st.tuples(
        st.sampled_from([-1, -1, 0, 2, 3, 5]), st.sampled_from([-1, -1, 1, 2]), st.sampled_from([-1, 0, 8, 12, 30])
    )


def rule_sets() -> st.SearchStrategy[dict[str, Values]]:
    keys = st.tuples(
        st.sampled_from(["*", "/", "default", "besteffort"]),
        st.sampled_from(["*", "*", "/", "p"]),
        st.sampled_from(["*", "*", "*", "/", "deploy"]),
        st.sampled_from(["*", "/", "/", "a"]),
    ).map(",".join)
    return st.dictionaries(keys, limits(), max_size=3)


WHO = st.builds(
    QuotaSubject,
    queue=st.sampled_from(["default", "default", "default", "besteffort"]),
    project=st.sampled_from(["p", "q"]),
    types=st.sampled_from([(), (), ("deploy",), ("deploy", "noop"), ("container",)]).map(frozenset),
    user=st.sampled_from(["a", "b"]),
)
SPAN = st.tuples(st.integers(0, 35), st.integers(1, 15))
STEPS = st.lists(
    st.tuples(WHO, st.integers(0, 4), st.integers(0, 30), st.integers(1, 12), st.booleans()),
    min_size=1,
    max_size=12,
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    sets = {"day": draw(rule_sets()), "night": draw(rule_sets())}
    periods = st.tuples(SPAN, st.sampled_from(["day", "night"])).map(lambda it: (it[0][0], sum(it[0]), it[1]))
    return Model(
        rules=draw(rule_sets()),
        sets=sets,
        weekly=draw(st.lists(periods, max_size=2)),
        oneshot=draw(st.lists(periods, max_size=2)),
    )


def quotas_of(model: Model) -> Quotas:
    def written(rules: dict[str, Values]) -> dict[str, list[float | str]]:
        return {key: [r, jobs, area if area < 0 else area / 60] for key, (r, jobs, area) in rules.items()}

    def wall(minute: int) -> datetime:
        return EPOCH + timedelta(minutes=minute)

    calendar = parse_calendar(
        {
            "periodical": [[f"{wall(a):%H:%M}-{wall(b):%H:%M}", name] for a, b, name in model.weekly],
            "oneshot": [[wall(a).isoformat(), wall(b).isoformat(), name] for a, b, name in model.oneshot],
            "sets": {name: written(rules) for name, rules in model.sets.items()},
        },
        Clock(find_zone("Europe/Paris"), EPOCH),
    )
    return Quotas(written(model.rules), total=32, calendar=calendar)


@dose(60)
@given(models(), STEPS)
def test_refusals_are_exact_and_again_skips_no_start(
    model: Model, steps: list[tuple[QuotaSubject, int, int, int, bool]]
) -> None:
    quotas = quotas_of(model)
    for number, (who, resources, start, length, gives) in enumerate(steps):
        if gives and model.jobs:
            oldest = next(iter(model.jobs))
            counted = quotas.counted(model.jobs.pop(oldest).who)
            if counted is not None:
                quotas.give(counted, oldest)
        counted = quotas.counted(who)
        job = Job(who, resources, start, start + length)
        if counted is None:
            assert model.feasible(job)
            model.jobs[number] = job
            continue
        refusal = quotas.refusal(counted, resources, MINUTE * job.start, MINUTE * job.end)
        assert (refusal is None) == model.feasible(job), refusal
        if refusal is not None:
            assert refusal.again > MINUTE * start
            later = start + 1
            while later * MINUTE < refusal.again and later < FAR:
                assert not model.feasible(Job(who, resources, later, later + length)), later
                later += 1
            if later < FAR and refusal.again < inf:
                again = refusal.again
                assert quotas.refusal(counted, resources, again, again + MINUTE * length) is None
                if later * MINUTE == again:
                    assert model.feasible(Job(who, resources, later, later + length))
            assert set(refusal.holders) <= set(model.jobs)
            if refusal.again == inf or later >= FAR:
                continue
            if later * MINUTE != refusal.again:
                continue
            job = Job(who, resources, later, later + length)
        quotas.take(counted, number, resources, MINUTE * job.start, MINUTE * job.end)
        model.jobs[number] = job
        assert model.exceeded() is None


@dose(60)
@given(models(), STEPS, st.data())
def test_who_is_taken_out_can_be_put_back_and_nothing_else_has_changed(
    model: Model, steps: list[tuple[QuotaSubject, int, int, int, bool]], data: st.DataObject
) -> None:
    quotas = quotas_of(model)
    placed: dict[int, Job] = {}
    for number, (who, resources, start, length, _gives) in enumerate(steps):
        counted = quotas.counted(who)
        if counted is not None:
            refusal = quotas.refusal(counted, resources, MINUTE * start, MINUTE * (start + length))
            if refusal is None:
                quotas.take(counted, number, resources, MINUTE * start, MINUTE * (start + length))
                placed[number] = Job(who, resources, start, start + length)

    def answers() -> list[object]:
        found: list[object] = []
        for who, resources, start, length, _gives in steps:
            counted = quotas.counted(who)
            if counted is not None:
                refusal = quotas.refusal(counted, resources, MINUTE * start, MINUTE * (start + length))
                found.append(refusal and (refusal.rule, refusal.what, refusal.again, refusal.holders))
        return found

    before = answers()
    for number in data.draw(st.permutations(sorted(placed))):
        job = placed[number]
        counted = quotas.counted(job.who)
        assert counted is not None
        quotas.give(counted, number)
        assert quotas.refusal(counted, job.resources, MINUTE * job.start, MINUTE * job.end) is None
        quotas.take(counted, number, job.resources, MINUTE * job.start, MINUTE * job.end)
    assert answers() == before


@dose(60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 30), st.integers(0, 8), st.integers(0, 3)),
            st.tuples(st.just("remove"), st.integers(0, 30), st.just(0), st.just(0)),
            st.tuples(st.just("ask"), st.integers(0, 30), st.integers(1, 8), st.integers(0, 4)),
            st.tuples(st.just("ask"), st.just(0), st.just(4), st.just(2)),
        ),
        max_size=30,
    ),
    st.sampled_from([inf, 12, 20]),
)
def test_steps_are_the_sum_of_what_was_added(ops: list[tuple[str, int, int, int]], bound: float) -> None:
    steps = StepFunction()
    added: list[tuple[int, int, int]] = []

    def amount_at(moment: int) -> int:
        return sum(amount for begins, lasts, amount in added if begins <= moment < begins + lasts)

    for what, start, length, number in ops:
        if what == "add":
            steps.add(start, start + length, number)
            added.append((start, length, number))
        elif what == "remove" and added:
            begins, lasts, amount = added.pop(start % len(added))
            steps.add(begins, begins + lasts, -amount)
        elif what == "ask" and start < bound:

            def fits(at: int, length: int = length, most: int = number) -> bool:
                return all(amount_at(moment) <= most for moment in range(at, at + length) if moment < bound)

            over = steps.over(start, int(min(start + length, bound)), number, length=length, bound=bound)
            assert (over is None) == fits(start)
            if over is not None:
                assert start <= over.at < start + length
                assert over.amount == amount_at(over.at) > number
                assert over.until == next(at for at in range(start, 99) if fits(at))
    for begins, lasts, amount in added:
        steps.add(begins, begins + lasts, -amount)
    assert steps.last == -inf


@dose(half(150))
@given(models(), STEPS, st.data())
def test_the_use_of_each_rule_is_what_its_running_and_ended_jobs_hold(
    model: Model, steps: list[tuple[QuotaSubject, int, int, int, bool]], data: st.DataObject
) -> None:
    quotas = quotas_of(model)
    inside = sorted(minute for _name, minutes in model.periods() for minute in minutes)
    now = data.draw(st.sampled_from(inside) | st.integers(0, 40) if inside else st.integers(0, 40), "now")
    running: list[Job] = []
    ended: list[Job] = []
    ids = set()
    for number, (who, resources, start, length, _gives) in enumerate(steps):
        counted = quotas.counted(who)
        if counted is None:
            continue
        job = Job(who, resources, start, start + length)
        if job.end <= now:
            ended.append(job)
            quotas.spend(counted, who, resources, MINUTE * job.start, MINUTE * job.end)
            continue
        quotas.take(counted, number, resources, MINUTE * job.start, MINUTE * job.end)
        if data.draw(st.booleans()):
            running.append(job)
            ids.add(number)

    def naive(key: str, most_area: int, periods: list[set[int]] | None) -> list[tuple[int, int, int]]:
        found = []
        for group in groups(key, [*running, *ended]):
            there = [job for job in group if job in running]
            if most_area < 0:
                area = 0
            elif periods is None:
                area = sum(job.resources * (job.end - job.start) for job in there)
            else:
                area = max(
                    sum(job.resources for job in group for at in inside if job.at(at)) for inside in periods
                )
            found.append((sum(job.resources for job in there), len(there), area))
        return sorted(each for each in found if any(each))

    expected: dict[tuple[str, str], object] = {}
    for name, rules in {"": model.rules, **model.sets}.items():
        periods = [its for of_set, its in model.periods() if of_set == name and now in its]
        for key, values in rules.items():
            if values != (-1, -1, -1):
                found = naive(key, values[2] if periods or not name else -1, periods if name else None)
                expected[name, key] = (bool(periods) or not name, found)
    found_uses: dict[tuple[str, str], object] = {}
    for use in quotas.uses(ids, MINUTE * now):
        held = [(each.resources, each.jobs, (each.area or 0) // 60_000_000) for each in use.holders]
        found_uses[use.rule.set, ",".join(use.rule.pattern)] = (
            use.applies,
            sorted(each for each in held if any(each)),
        )
    assert found_uses == expected
