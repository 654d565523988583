"""What needs a person though no state of a job tells it: over HTTP, and in the card of the manager."""

from __future__ import annotations

import socket
from typing import Any

from tests.api.conftest import Site
from tests.deployment import wait_until

HOST = socket.gethostname()


def attention(site: Site, kind: str) -> list[Any]:
    found = site.user.get("/api/v1/manager").json["attention"]
    return [each for each in found if each["kind"] == kind]


def test_jobs_that_never_fit_are_told_together(site: Site) -> None:
    fits = site.add("sleep 600", mem="1M")
    jobs = site.add("true", "echo", mem="900T", allow_unsatisfiable=True)
    (view,) = attention(site, "never_fits")
    assert (view["jobs"], view["total"]) == (jobs, 2)
    assert "asked 900T mem" in view["message"]
    assert f"2 jobs never fit ({jobs[0]}, {jobs[1]}): asked 900T mem" in site.rota.ok("manager", "status")
    # With a plan, in which others have a place of their own.
    (wide,) = site.add("true", request="nodes=7,walltime=1h", allow_unsatisfiable=True)
    wait_until(lambda: wide in [id for each in attention(site, "never_fits") for id in each["jobs"]], "it is told")
    for job in (*fits, *jobs, wide):
        site.admin.post("/api/v1/jobs/actions", {"action": "kill", "select": [str(job)]})
    wait_until(lambda: attention(site, "never_fits") == [], "nothing is left of it")


def test_a_reservation_on_a_drained_host_is_in_danger(site: Site) -> None:
    site.rota.ok("add", "-l", "core=1,walltime=10m", "-r", "now+2h", "--", "true")
    (job,) = site.rota.states("state=ready")
    assert attention(site, "reservation") == []
    site.rota.ok("node", "set", HOST, "--drain")
    wait_until(lambda: attention(site, "reservation"), "it is told")
    (view,) = attention(site, "reservation")
    assert (view["jobs"], view["total"], view["message"]) == ([job], 1, f"{HOST} is drained")
    assert f"the reservation of job {job} is in danger: {HOST} is drained" in site.rota.ok("manager", "status")
    site.rota.ok("node", "set", HOST, "--no-drain")
    wait_until(lambda: attention(site, "reservation") == [], "it is safe again")
