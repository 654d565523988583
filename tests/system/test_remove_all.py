"""`rota remove all` with a real manager: what waits stays unless that is said, and many are asked about at a
terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.deployment import ROTA
from tests.system.queueing import Queue, queue_of
from tests.typist import Typist, typing_in


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("removing")) as made:
        yield made


def at(queue: Queue, *words: str) -> contextlib.AbstractContextManager[Typist]:
    """Somebody who gives this command at a terminal."""
    return typing_in([ROTA, *words], env=queue.env, cwd=queue.work)


def test_remove_all_keeps_what_waits_and_runs_unless_it_is_told_otherwise(queue: Queue) -> None:
    done = queue.add("--", "true")
    queue.until("complete", done)
    runs = queue.put(queue.waits_for("go"))
    queue.until("running", runs)
    queue.ok("manager", "pause")
    waits = queue.add_lines("echo 1", "echo 2")
    array, element = queue.add_all("--array", "1-2", "--", "true")
    refused = queue.rota("remove", str(done), str(waits[0]))
    assert (refused.returncode, refused.stderr) == (
        2,
        f"rota: job {waits[0]} is ready: it has not ended; "
        f"remove it all the same: rota remove --waiting {waits[0]}\n",
    )
    assert "rota remove --waiting" in queue.rota("remove", f"{array}_2").stderr, "an element is named, too"
    assert queue.rota("remove", str(runs)).stderr.endswith(f"kill it first: rota kill {runs}\n")
    assert queue.state(done) == "complete", "nothing was removed"
    found = queue.json("remove", "all")
    assert (found["changed"], found["removed"], found["kept"]) == ([done], 1, 5)
    said = queue.ok("remove", "all")
    assert said == "0 jobs removed; 5 kept (1 running, 4 ready)\n"
    with queue.client() as client:
        assert client.would("remove", "all", waiting=True).changed == [*waits, array, element]
        assert len(client.remove("all", waiting=True).changed) == 4
    assert queue.state(runs) == "running"
    queue.ok("manager", "resume")
    queue.open("go")
    queue.until("complete", runs)


def test_at_a_terminal_many_are_asked_about(queue: Queue) -> None:
    queue.ok("manager", "pause")
    jobs = queue.add_lines(*(f"echo many {n}" for n in range(101)))
    kill, remove = ("kill", f"{jobs[0]}-{jobs[-1]}"), ("remove", f"{jobs[0]}-{jobs[-1]}")
    with at(queue, *kill) as typist:
        typist.sees("Kill 101 jobs? [y/N]")
        typist.type("n\n")
        assert typist.ends() == 1
        assert "nothing was changed" in typist.shown
    assert set(queue.states(kill[1]).values()) == {"ready"}
    with at(queue, "kill", f"{jobs[0]}-{jobs[99]}") as typist:
        assert typist.ends() == 0, "a hundred are not many"
    with at(queue, "remove", "--waiting", *remove[1:]) as typist:
        typist.sees("Remove 101 jobs? [y/N]")
        typist.type("\n")
        assert typist.ends() == 1
    with at(queue, *remove) as typist:
        assert typist.ends() == 0
        assert "100 jobs removed" in typist.shown
        assert "1 kept (ready)" in typist.shown
    more = queue.add_lines(*(f"echo more {n}" for n in range(101)))
    with at(queue, "kill", "--yes", f"{more[0]}-{more[-1]}") as typist:
        assert typist.ends() == 0
    assert queue.json("remove", f"{more[0]}-{more[-1]}")["removed"] == 101, "without a terminal nothing is asked"
    queue.ok("manager", "resume")
