"""Any sequence of edited inputs, reruns, groups, ends, kills and crashes, compared with a model of the rules.

The model is that of `test_group_properties`, which keeps every job and looks at all of them after every step, with
the rules of identity on top: what a submission replaces, changes, retries and leaves alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from rota.core.answers import Added
from rota.core.jobs.job import Condition, Parent, Spec
from rota.core.states import LEASED
from rota.errors import BadInput, RotaError
from tests.core.jobs.test_group_properties import BAD, GROUPS, OVER, Groups, Known, conditions, fates, numbers
from tests.core.jobs.test_group_properties import Model as GroupModel
from tests.core.machine import Entry, Machine, spec
from tests.dose import half, histories

INPUTS = ["/one", "/other"]
COMMANDS = ["a", "b", "c", "d"]

parents = st.tuples(st.sampled_from(["line", "line", "group", "job"]), numbers, conditions)
lines = st.tuples(
    st.sampled_from(COMMANDS),
    st.lists(st.sampled_from(GROUPS), max_size=1).map(tuple),
    st.lists(parents, max_size=2),
)
inputs = st.lists(lines, min_size=1, max_size=5)
reruns = st.sampled_from(["no", "no", "all", "first"])

Key = tuple[str, int]
Edge = tuple[Parent, Condition]


@dataclass
class Line:
    """An entry of an input, and what is decided about it."""

    key: Key
    groups: tuple[str, ...]
    after: list[Edge]  #: parents that are lines are negative: -1 is the first
    rerun: bool
    job: int = 0
    verdict: str = ""  #: new, replaces, existing, retried
    old: int = 0

    def edges(self, entries: list[Line], heirs: dict[int, int]) -> list[Edge]:
        found = []
        for parent, condition in self.after:
            if isinstance(parent, int):
                parent = entries[-parent - 1].job if parent < 0 else heirs.get(parent, parent)
            found.append((parent, condition))
        return list(dict.fromkeys(found))


def made(line: Line) -> Spec:
    return spec(dep_groups=line.groups, allow_empty_group=True)


@dataclass
class Model(GroupModel):
    keys: dict[int, Key] = field(default_factory=dict)  #: of jobs from inputs
    last: dict[str, list[int]] = field(default_factory=dict)  #: jobs of an input when it was added last
    stayed: dict[str, list[int]] = field(default_factory=dict)  #: jobs that it had before and that stayed
    ever: dict[Parent, set[Parent]] = field(default_factory=dict)  #: all that was ever waited for, or ever joined

    def named(self, key: Key) -> Known | None:
        """The job that a key names: nobody who was replaced or removed."""
        found = [id for id, its in self.keys.items() if its == key and id in self.jobs]
        return self.jobs[max(found)] if found else None

    def remember(self) -> None:
        for job in self.jobs.values():
            self.ever.setdefault(job.id, set()).update(parent for parent, _condition in job.after)
            for name in job.spec.dep_groups:
                self.ever.setdefault(name, set()).add(job.id)


@dataclass
class Decision:
    """What a submission does, by the rules."""

    model: Model
    leased: set[int]
    entries: list[Line]
    previous: list[int]
    stayed: list[int]
    first: int
    heirs: dict[int, int] = field(default_factory=dict)
    changed: dict[int, Line] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def make(self) -> None:
        self._identify()
        self._rerun_dependents()
        number = self.first
        for wanted in ("new or rerun", "late"):
            for line in self.entries:
                late = line.verdict == "replaces late"
                if line.verdict in ("new", "replaces", "replaces late") and late == (wanted == "late"):
                    line.job, number = number, number + 1
        self.heirs = {line.old: line.job for line in self.entries if line.verdict.startswith("replaces")}
        for line in self.entries:
            if line.verdict in ("existing", "retried"):
                self._look_at(line)
        self._drop()

    def _identify(self) -> None:
        for line in self.entries:
            known = self.model.named(line.key)
            if known is None:
                line.verdict = "new"
                continue
            line.job = line.old = known.id
            ended = known.state in OVER
            line.verdict = "replaces" if ended and line.rerun else "retried" if known.state in BAD else "existing"

    def _rerun_dependents(self) -> None:
        """In the same input, who waits for somebody who is replaced is replaced, once it has ended."""
        found = True
        while found:
            found = False
            again = [line for line in self.entries if line.verdict.startswith("replaces")]
            groups = {name for line in again for name in line.groups}
            ids = {line.old for line in again}
            for line in self.entries:
                if line.verdict not in ("existing", "retried") or self.model.jobs[line.old].state not in OVER:
                    continue
                if any(
                    parent in groups if isinstance(parent, str)
                    else self.entries[-parent - 1] in again if parent < 0 else parent in ids
                    for parent, _condition in line.after
                ):  # fmt: skip
                    line.verdict = "replaces late"
                    found = True

    def _look_at(self, line: Line) -> None:
        """A dependent takes what it is asked for now, unless it runs or is complete."""
        job = self.model.jobs[line.job]
        edges = line.edges(self.entries, self.heirs)
        depends = bool(line.after or job.after)
        same = set(edges) == set(job.after) and line.groups == job.spec.dep_groups
        if depends and not same and job.state != "complete" and job.id not in self.leased:
            self.changed[job.id] = line

    def _drop(self) -> None:
        here = {line.job for line in self.entries} | set(self.heirs)
        going = [id for id in self.stayed if id in self.model.jobs and self.model.jobs[id].state != "complete"]
        gone = [id for id in {*self.previous, *going} if id not in here and id in self.model.jobs]
        self.dropped = [
            id for id in gone
            if self.model.jobs[id].state in BAD or self.model.blocked(self.model.jobs[id], self.leased)
        ]  # fmt: skip
        found = True
        while found:
            found = False
            for id in list(self.dropped):
                if self._is_waited_for(id):
                    self.dropped.remove(id)
                    found = True
        self.kept = [id for id in gone if id not in self.dropped]

    def _is_waited_for(self, id: int) -> bool:
        """By its id, by somebody who has not ended and stays as he is, or by an entry."""
        for line in self.entries:
            if (line.job in self.changed or line.job not in self.model.jobs) and any(
                parent == id for parent, _condition in line.edges(self.entries, self.heirs)
            ):
                return True
        return any(
            any(parent == id for parent, _condition in job.after)
            for job in self.model.jobs.values()
            if job.state not in OVER and job.id not in self.dropped and job.id not in self.changed
        )

    def new_jobs(self) -> list[Known]:
        return [
            Known(line.job, made(line), line.edges(self.entries, self.heirs))
            for line in self.entries
            if line.job not in self.model.jobs
        ]

    def apply(self, model: Model) -> set[str]:
        """Change the model; the groups that grew."""
        for id in [*self.heirs, *self.dropped]:
            was = model.jobs.pop(id)
            model.replaced[id] = was.state if was.state in OVER else "cancelled"
        new = self.new_jobs()
        grown = {name for job in new for name in job.spec.dep_groups}
        for id, line in self.changed.items():
            job = model.jobs[id]
            grown |= {*line.groups} - {*job.spec.dep_groups}
            job.spec = made(line)
            job.after = line.edges(self.entries, self.heirs)
        for job in model.jobs.values():
            if job.id not in self.changed:
                heirs: dict[Parent, Parent] = {**self.heirs}
                job.after = list(dict.fromkeys((heirs.get(each, each), c) for each, c in job.after))
        model.jobs.update({job.id: job for job in new})
        model.known |= grown
        return grown


class Inputs(Groups):
    """Submissions of two inputs, among everything else that can happen."""

    model: Model

    @initialize(seed=numbers)
    def begin(self, seed: int) -> None:
        self.m = Machine(seed=seed, cpus=800)
        self.m.with_runner()
        self.model = Model()
        self.count = 0

    @rule(chosen=inputs, source=st.sampled_from([*INPUTS, ""]), again=reruns, fate=fates)
    def submit(self, chosen: list[tuple], source: str, again: str, fate: str) -> None:  # type: ignore[type-arg]
        self._submit(chosen, source, again, fate)

    @rule(source=st.sampled_from(INPUTS), again=reruns, fate=fates)
    def submit_unchanged(self, source: str, again: str, fate: str) -> None:
        if chosen := getattr(self, "files", {}).get(source):
            self._submit(chosen, source, again, fate)

    @rule(source=st.sampled_from(INPUTS), pick=numbers, line=lines, again=reruns, fate=fates)
    def edit_one_line(self, source: str, pick: int, line: tuple, again: str, fate: str) -> None:  # type: ignore[type-arg]
        if chosen := list(getattr(self, "files", {}).get(source, ())):
            chosen[pick % len(chosen)] = line
            self._submit(chosen, source, again, fate)

    def _submit(self, chosen: list[tuple], source: str, again: str, fate: str) -> None:  # type: ignore[type-arg]
        if not hasattr(self, "files"):
            self.files: dict[str, list[tuple]] = {}  # type: ignore[type-arg]
        entries, wanted, seen = [], [], Counter[str]()
        for n, (cmd, groups, after) in enumerate(chosen):
            edges, meant = [], []
            for kind, number, condition in after:
                if kind == "group":
                    name = GROUPS[number % len(GROUPS)]
                    edges.append((name, condition, False))
                    meant.append((name, condition))
                elif kind == "job" and self.model.jobs and number < 300:
                    id = sorted(self.model.jobs)[number % len(self.model.jobs)]
                    edges.append((id, condition, False))
                    meant.append((id, condition))
                elif kind == "line" and (n or number >= 950):
                    line = number % n if n and number < 950 else number % len(chosen)
                    edges.append((line, condition, True))
                    meant.append((-line - 1, condition))
            rerun = again == "all" or (again == "first" and n == 0)
            entries.append(Entry(cmd, spec(dep_groups=groups, allow_empty_group=True), tuple(edges)))
            wanted.append(Line((cmd, seen[cmd]), groups, meant, rerun))
            seen[cmd] += 1
        previous, stayed = self.model.last.get(source, []), self.model.stayed.get(source, [])
        decision = Decision(self.model, self.leased, wanted, previous, stayed, self.m.world.next_job)
        decision.make()
        must, may = self._cyclic(decision)
        leased = self.leased

        def apply(answer: object) -> None:
            if isinstance(answer, RotaError):
                assert may, f"refused without a reason: {answer}"
                assert isinstance(answer, BadInput)
                return
            assert not must, "a cycle was accepted"
            if isinstance(answer, Added):
                assert sorted(answer.replaced) == sorted([*decision.heirs, *decision.dropped])
                assert sorted(answer.changed) == sorted(decision.changed)
                assert sorted(answer.kept) == sorted(decision.kept)
            grown = decision.apply(self.model)
            self.model.keys.update({line.job: line.key for line in wanted})
            if source:
                self.model.last[source] = [line.job for line in wanted]
                self.model.stayed[source] = decision.kept
                self.files[source] = chosen
            self.model.grow(grown, leased)
            for line in wanted:
                if line.verdict == "retried":
                    self.model.jobs[line.job].state, self.model.jobs[line.job].tries = "waiting", 0

        flags = {"no": False, "all": True, "first": frozenset({0})}
        self._step(fate, lambda: self.m.send_chunk(entries, input=source, rerun=flags[again]), apply)
        self._nothing_runs_beside_itself()

    def _has_another_command(self, job: int) -> None:
        self.model.keys.pop(job, None)  # no line of an input names it any more

    def _cyclic(self, decision: Decision) -> tuple[bool, bool]:
        """Would somebody wait for himself? And would he by all that ever was?"""
        opened = {line.job for line in decision.entries if line.verdict == "retried"}
        now = Model()
        for id, job in self.model.jobs.items():
            # Who has ended and stays so waits for nobody by its id.
            over = job.state in OVER and id not in opened
            now.jobs[id] = Known(
                id, job.spec, [each for each in job.after if not over or isinstance(each[0], str)]
            )
        decision.apply(now)
        must = now.cyclic(list(now.jobs.values()), ghosts=False)
        self.model.remember()
        now.ever = {node: set(found) for node, found in self.model.ever.items()}
        now.remember()
        ids = {id: [heir] for id, heir in decision.heirs.items()}
        done: set[Parent] = set()

        def visit(node: Parent, path: tuple[Parent, ...]) -> bool:
            if node in path:
                return True
            if node in done:
                return False
            near = [*now.ever.get(node, ()), *(ids.get(node, ()) if isinstance(node, int) else ())]
            found = any(visit(parent, (*path, node)) for parent in near)
            done.add(node)
            return found

        return must, must or any(visit(node, ()) for node in list(now.ever))

    def _nothing_runs_beside_itself(self) -> None:
        running = [job.key for job in self.m.world.jobs.values() if job.state in LEASED]
        assert len(running) == len(set(running)), "a job runs beside itself"


TestInputs = Inputs.TestCase
TestInputs.settings = histories(half(30), steps=30)
