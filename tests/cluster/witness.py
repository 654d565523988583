"""What jobs themselves saw (`witnessed.py`): the truth that Rota's records are compared with."""

from __future__ import annotations

import shlex
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

_TOOL = Path(__file__).with_name("witnessed.py")


class Line(NamedTuple):
    job: int
    attempt: int
    host: str
    pid: int
    what: str  #: start, end, part, part-end; twice: it ran already; crowded: its host had not enough cores left
    cores: frozenset[int]


class Witness:
    """The file and what follows from it."""

    def __init__(self, directory: Path, *, cores: int) -> None:
        self._directory = directory
        self._file = directory / "witness"
        self._cores = cores
        directory.mkdir(parents=True)
        self._file.touch()

    def command(self, body: str, *, role: str = "job") -> str:
        """A command line that is witnessed; that of a `part` is what a job runs on another of its nodes."""
        argv = [sys.executable, "-I", "-S", str(_TOOL), str(self._directory), str(self._cores), role, body]
        return shlex.join(argv)

    def lines(self) -> list[Line]:
        found = []
        for line in self._file.read_text().splitlines():
            job, attempt, host, pid, what, cores = line.split()
            found.append(Line(int(job), int(attempt), host, int(pid), what, frozenset(map(int, cores.split(",")))))
        return found

    def of(self, job: int) -> list[Line]:
        return [line for line in self.lines() if line.job == job]

    def seen(self, job: int) -> list[str]:
        return [line.what for line in self.of(job)]

    def hosts(self, *jobs: int) -> list[str]:
        """Where attempts of these jobs began, or of all."""
        return [line.host for line in self.lines() if line.what == "start" and (not jobs or line.job in jobs)]

    def judge(self, states: dict[int, str], *, retries: dict[int, int]) -> None:
        """Every job of `retries` is known and has ended, and nothing that they saw contradicts that."""
        assert set(retries) <= set(states), "an acknowledged job is gone"
        assert set(states.values()) <= {"complete", "failed", "cancelled"}, "a job has not ended"
        starts: dict[int, list[int]] = defaultdict(list)
        ends: Counter[int] = Counter()
        for line in self.lines():
            assert line.what != "twice", f"job {line.job} ran twice at once: {self.of(line.job)}"
            assert line.what != "crowded", f"job {line.job} found no free core on {line.host}"
            if line.what == "start":
                starts[line.job].append(line.attempt)
            elif line.what == "end":
                assert starts[line.job][-1] == line.attempt, f"job {line.job}: a late end: {self.of(line.job)}"
                ends[line.job] += 1
        for job, its in starts.items():
            assert its == sorted(set(its)), f"job {job}: its attempts began in the order {its}"
            # A voided attempt uses no retry, and does not begin either.
            assert len(its) <= retries.get(job, 0) + 1, f"job {job} began {len(its)} times"
        for job, state in states.items():
            if job in retries and state == "complete":
                assert ends[job], f"job {job} is complete and never reached its end"
                assert ends[job] == 1 or retries[job], f"job {job} ended {ends[job]} times"
