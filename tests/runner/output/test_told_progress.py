"""What jobs say about their progress reaches the manager, whatever starts them and however much they say."""

from __future__ import annotations

import pytest

from rota.core.attempts.leases import JobProgress
from tests.runner.manager import FakeManager

_ENV = b"PATH=/usr/bin:/bin\0ROTA_PROGRESS="


def wait(name: str) -> str:
    return f"until test -e {name}; do sleep 0.05; done"


def told(manager: FakeManager) -> list[JobProgress]:
    return [each for report in manager.reports for each in report.progress]


def said(manager: FakeManager, text: str) -> JobProgress:
    """What a job has said, once it has said this."""
    manager.until(lambda: any(each.text == text for each in told(manager)))
    return next(each for each in told(manager) if each.text == text)


@pytest.mark.parametrize(
    "fields", [{}, {"pipefail": True}, {"walltime_s": 3600.0}], ids=["plain", "bash", "walltime"]
)
@pytest.mark.parametrize("lasting", [False, True], ids=["inside", "node"])
def test_the_last_line_is_told(manager: FakeManager, lasting: bool, fields: dict[str, object]) -> None:
    manager.lasting = lasting
    manager.begin()
    spec = manager.spec(**fields)
    grant = manager.grant(1, f"printf '1/3 x\\n2/3 y\\n' >&$ROTA_PROGRESS; {wait('go')}; echo done", spec)
    manager.work([grant], spec, env=_ENV)
    found = said(manager, "y")
    assert (found.job, found.attempt, found.token, found.done, found.of) == (1, 1, grant.token, 2.0, 3.0)
    (manager.home / "go").touch()
    manager.until(lambda: manager.ended)
    assert manager.ended[0].outcome.exit_code == 0


@pytest.mark.parametrize("lasting", [False, True], ids=["inside", "node"])
def test_a_job_is_not_told_the_progress_of_the_one_before_it_and_may_say_a_lot(
    manager: FakeManager, lasting: bool
) -> None:
    manager.lasting = lasting
    manager.begin()
    spec = manager.spec()
    much = "i=0; while [ $i -lt 40000 ]; do echo $i/9 a line that helps to fill a file >&9; i=$((i+1)); done"
    grants = [
        manager.grant(1, "echo 1/2 first >&$ROTA_PROGRESS", spec),
        manager.grant(2, f"{much}; echo 2/2 second >&9; {wait('go')}; echo 3 third >&9; {wait('end')}", spec),
    ]
    manager.work(grants, spec, env=_ENV)
    assert said(manager, "second").job == 2
    (file,) = manager.runners.glob("*/progress/*")
    assert file.stat().st_size <= 1 << 20, "it was emptied when it was read"
    (manager.home / "go").touch()
    assert said(manager, "third").of is None
    (manager.home / "end").touch()
    manager.wait_for([1, 2])
    assert not [each for each in told(manager) if each.job == 2 and each.text == "first"]


def test_no_file_is_made_for_jobs_without_it(manager: FakeManager) -> None:
    manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, 'test -z "$ROTA_PROGRESS"', spec)], spec)
    manager.until(lambda: manager.ended)
    assert manager.ended[0].outcome.exit_code == 0
    assert not list(manager.runners.glob("*/progress"))
