"""Learning: jobs like others ask for what those needed, and every decision can be seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of

MB = 1 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("learning")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


def takes(megabytes: int) -> list[str]:
    """A program that touches this much memory."""
    return ["python3", "-c", f"x = bytearray({megabytes} << 20); x[::4096] = b'x' * len(x[::4096])"]


def teach(queue: Queue, name: str, megabytes: int, times: int) -> None:
    """So many successes that each took this much."""
    jobs = [queue.put(takes(megabytes), learn=name, mem="50M") for _ in range(times)]
    queue.until("complete", *jobs)


def test_a_job_over_its_memory_request_is_not_killed_and_the_next_of_its_group_asks_more(queue: Queue) -> None:
    first = queue.add("--mem", "50M", "--learn", "over", "--", *takes(300))
    queue.until("complete", first)
    seen = queue.shown(first)
    assert len(seen["attempts"]) == 1
    assert seen["peak_mem_bytes"] > 300 * MB
    assert seen["size"]["mem_bytes"] == 50 * MB
    second = queue.add("--mem", "50M", "--learn", "over", "--", *takes(300))
    queue.until("complete", second)
    seen = queue.shown(second)
    assert seen["asked"]["mem_bytes"] == 50 * MB
    assert seen["size"]["mem_bytes"] > 300 * MB
    assert seen["size"]["mem_bytes"] % (128 * MB) == 0
    assert seen["attempts"][0]["size"]["mem_bytes"] == seen["size"]["mem_bytes"]
    assert seen["learn"] == "over"


def test_the_peak_memory_of_a_short_job_is_not_the_runners_own(queue: Queue) -> None:
    """It is not known, which is shown as null, and teaches nobody to ask for more."""
    short = ("--mem", "10M", "--learn", "short", "--retries", "0", "--")
    jobs = [queue.add(*short, "sh", "-c", end) for end in ("exit 1", ": 1", ": 2", ": 3")]
    queue.until("failed", jobs[0])
    queue.until("complete", *jobs[1:])
    for job in jobs:
        seen = queue.shown(job)
        assert seen["peak_mem_bytes"] is None
        assert [each["peak_mem_bytes"] for each in seen["attempts"]] == [None]
    again = queue.add(*short, "true")
    queue.until("complete", again)
    assert queue.shown(again)["size"]["mem_bytes"] == 10 * MB


def test_show_tells_what_was_asked_learned_and_used(queue: Queue) -> None:
    teach(queue, "shown", 200, 3)
    queue.set_limits("wait:0")
    job = queue.put(takes(1), learn="shown", mem="50M", time="10m", limits=["wait"])
    seen = queue.shown(job)
    assert (seen["asked"]["mem_bytes"], seen["asked"]["time_s"]) == (50 * MB, 600)
    assert seen["learned"]["mem_bytes"] > 200 * MB
    assert seen["learned"]["mem_bytes"] % (128 * MB) == 0
    assert seen["learned"]["time_s"] in (60, 300, 900)
    assert seen["size"]["mem_bytes"] == seen["learned"]["mem_bytes"]
    assert seen["size"]["time_s"] == max(600, seen["learned"]["time_s"])
    lines = {line.split()[0]: line for line in queue.ok("show", str(job)).splitlines()[1:] if line.strip()}
    assert "memory" in lines["takes"]
    assert lines["learning"].split() == ["learning", "shown"]
    asked, learned, given, measured = lines["memory"].split()[1:]
    assert (asked, given, measured) == ("50M", "-", "-")
    assert learned != "-"
    queue.set_limits("wait:unlimited")


def test_each_override_chooses_as_it_says(queue: Queue) -> None:
    teach(queue, "modes", 200, 3)
    queue.set_limits("modes:0")

    def used(**fields: str) -> int:
        return queue.look(queue.put(takes(1), learn="modes", limits=["modes"], **fields)).size.mem_bytes

    learned = used(override="no", mem="10M")
    assert 200 * MB < learned < 1024 * MB
    assert used(override="no", mem="8G") == learned
    assert used(override="higher", mem="8G") == 8192 * MB
    assert used(override="higher", mem="10M") == learned
    assert used(override="always", mem="10M") == 10 * MB
    assert used(mem="8G") == 8192 * MB, "what the user gave is not lowered"
    assert used(mem="10M") == learned
    assert used() == learned, "a default is replaced by what was learned"
    done = queue.rota("add", "--override", "sometimes", "--", "true")
    assert (done.returncode, "--override" in done.stderr) == (2, True)
    queue.set_limits("modes:unlimited")


def test_the_learning_group_is_the_program_unless_it_is_named(queue: Queue) -> None:
    for command, name in (
        ("cd / && env A=1 nice -n 5 ls -l", "ls"),
        ("python3 /no/such/script.py --x", "script.py"),
        (["bash", "-c", "ls; true"], "ls"),
        ("/bin/ls", "ls"),
    ):
        assert queue.look(queue.put(command)).learn == name
    named = queue.add("--learn", "mine", "--", "ls")
    assert queue.look(named).learn == "mine"


def test_names_never_mix_by_prefix(queue: Queue) -> None:
    teach(queue, "blast", 200, 3)
    other = queue.put(takes(1), learn="blastp", mem="10M")
    assert queue.look(other).size.mem_bytes == 10 * MB
    queue.until("complete", other)


def test_learn_lists_draws_and_forgets(queue: Queue) -> None:
    teach(queue, "drawn", 100, 3)
    teach(queue, "drawn", 300, 1)
    queue.until("failed", queue.put("exit 1", learn="drawn", retries=0))
    (group,) = queue.json("learn", "drawn")["groups"]
    assert (group["name"], group["observations"], group["successes"]) == ("drawn", 5, 4)
    assert group["mem_bytes"] > 100 * MB
    assert sum(count for _low, _high, count in group["mem_histogram"]) == 4
    assert "drawn" in [each["name"] for each in queue.json("learn")["groups"]]
    card = queue.ok("learn", "drawn")
    assert "█" in card
    assert "5 attempts, 4 complete" in card
    assert "drawn" in queue.ok("learn")
    queue.ok("learn", "drawn", "--forget")
    assert queue.rota("learn", "drawn").returncode == 3
    assert queue.rota("learn", "drawn", "--forget").returncode == 3
    fresh = queue.put(takes(1), learn="drawn", mem="10M")
    assert queue.look(fresh).size.mem_bytes == 10 * MB
    assert queue.rota("learn", "--forget").returncode == 2


def test_what_was_learned_is_kept_by_a_restart(queue: Queue) -> None:
    teach(queue, "kept", 200, 3)
    (before,) = queue.json("learn", "kept")["groups"]
    queue.kill_manager()
    queue.start()
    (after,) = queue.json("learn", "kept")["groups"]
    assert after == before
    with queue.client() as client:
        client.forget_learned("kept")
        assert "kept" not in [each.name for each in client.learned()]


def test_an_attempt_that_ran_out_of_time_asks_for_more_of_it(queue: Queue) -> None:
    job = queue.put(
        "test $ROTA_ATTEMPT = 2 || sleep 100",
        walltime="0.5s",
        time="1m",
        retries=1,
        backoff="0s",
        retry_on=["walltime"],
    )
    queue.until("complete", job)
    first, second = queue.shown(job)["attempts"]
    assert first["reason"]["code"] == "walltime"
    assert first["size"]["time_s"] == 60
    assert second["size"]["time_s"] >= 3600


def test_jobs_that_wait_already_profit_from_what_is_learned_meanwhile(queue: Queue) -> None:
    queue.set_limits("profit:0")
    waits = queue.put("true", learn="profit", mem="10M", limits=["profit"])
    teach(queue, "profit", 200, 3)
    queue.set_limits("profit:unlimited")
    queue.until("complete", waits)
    assert queue.look(waits).size.mem_bytes > 200 * MB


def test_the_size_of_the_input_counts_when_it_is_given(queue: Queue) -> None:
    sizes = {100: 1, 150: 2, 200: 3, 250: 4, 300: 5, 350: 6, 400: 7, 450: 8}
    jobs = [
        queue.put(takes(mem), learn="scaled", mem="50M", input_bytes=f"{gigabytes}G")
        for mem, gigabytes in sizes.items()
    ]
    queue.until("complete", *jobs)
    queue.set_limits("scaled:0")

    def learned(gigabytes: int) -> int:
        job = queue.put("true", learn="scaled", mem="50M", limits=["scaled"], input_bytes=f"{gigabytes}G")
        return queue.look(job).size.mem_bytes

    assert learned(1) < learned(8) < learned(16)
    assert queue.json("learn", "scaled")["groups"][0]["lines"]["mem"]
    (queue.work / "input").write_bytes(bytes(1000))
    by_file = queue.add("--input-file", "input", "--limit", "scaled", "--", "true")
    assert queue.shown(by_file)["input_bytes"] == 1000
    queue.set_limits("scaled:unlimited")
    wait_until(lambda: queue.state(by_file) == "complete", "it ran")
