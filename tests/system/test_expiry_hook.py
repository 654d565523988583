"""The site's expiry hook with a real manager: jobs that get more time, jobs that do not, and hooks that fail."""

from __future__ import annotations

from pathlib import Path

from tests.deployment import wait_until
from tests.system.queueing import Queue
from tests.system.test_hooks import site

HOOK = """
echo a word on stderr >&2
case $ROTA_JOB_NAME in
lucky) echo "$ROTA_HOOK:$ROTA_JOB_ID:$ROTA_WALLTIME_S" >> $W/asked; echo 10m;;
broken) exit 3;;
odd) echo soon;;
esac
"""


def story(queue: Queue, job: int) -> str:
    return queue.ok("show", str(job))


def test_a_job_gets_the_time_that_the_hook_prints_and_else_ends_at_its_walltime(tmp_path: Path) -> None:
    with site(tmp_path, scripts={"expiry_hook": HOOK}, expiry_notice="1h") as queue:
        names = ("lucky", "broken", "odd", "plain")
        # They are asked about after half of it; the other half is for hosts that are busy.
        lucky, *others = (queue.put(queue.waits_for("go"), walltime="12s", name=name) for name in names)
        wait_until(lambda: "its walltime is 10m" in story(queue, lucky), "it gets the time")
        assert queue.ran("asked") == [f"expiry_hook:{lucky}:12"]
        assert "10m more from the site's expiry hook" in story(queue, lucky)
        queue.until("failed", *others)
        queue.open("go")
        queue.until("complete", lucky)
        said = ("expiry_hook failed: exit 3", "expiry_hook printed no time: ", "gives it no more time")
        for job, text in zip(others, said, strict=True):
            assert text in story(queue, job)
            assert queue.shown(job)["reason"]["code"] == "walltime"
