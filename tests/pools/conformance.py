"""What every delegated pool must keep, run with real runners on hosts that share nothing with the manager.

The default suite has one test of each kind (tickets: `test_tickets.py`); the others are `slow` (`make cluster`).
A later engine passes if a subclass of `PoolConformance` with a site that uses it does. What the engine can be made
to do wrong is said by `SpoolPool.lie` and `SpoolPool.being`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.pools.site import Site

SLEEP = "sleep 600"


class PoolConformance:
    """A site has one pool `far` with at most four runners, and room for eight."""

    # -------------------------------------------------------------- up and down

    def test_jobs_run_far_away_and_their_output_comes_home(self, site: Site) -> None:
        jobs = site.add_all([f"echo line {n}; ls -A {site.home}; hostname" for n in range(3)], retries=0)
        site.wait(site.all_ended, "they have ended")
        assert set(site.states(*map(str, jobs)).values()) == {"complete"}
        for n, job in enumerate(jobs):
            assert site.ok("logs", str(job)).split("\n")[:2] == [f"line {n}", site.hosts[0].name]
        assert site.pool.notes("asked") == [["3"]], "one array for all that were missing"
        site.until_empty()

    @pytest.mark.slow
    def test_a_runner_serves_job_after_job_of_its_group(self, site: Site) -> None:
        site.add_all(["true"] * 40, retries=0)
        site.wait(site.all_ended, "they have ended")
        assert len(site.pool.notes("began")) < 20

    def test_less_demand_withdraws_what_waits_and_leaves_what_runs(self, site: Site) -> None:
        job = site.running(SLEEP)
        with site.pool.being("hold"):
            others = site.add_all([SLEEP] * 3)
            site.wait(lambda: len(site.pool.pending()) == 3, "three more wait")
            site.kill(*others)
            site.wait(lambda: not site.pool.pending(), "they are withdrawn")
        assert site.state(job) == "running"
        assert len(site.pool.running()) == 1

    @pytest.mark.slow
    def test_no_more_runners_than_allowed(self, site: Site) -> None:
        site.add_all(["sleep 0.2"] * 30, retries=0)
        site.wait(site.all_ended, "they have ended")
        assert site.pool.most_at_once() <= 4
        assert max(int(each[0]) for each in site.pool.notes("asked")) <= 4

    @pytest.mark.slow
    def test_two_sizes_have_runners_of_their_own(self, site: Site) -> None:
        small = site.add_all(["sleep 0.1"] * 2, retries=0)
        large = site.add_all(["sleep 0.1"] * 2, retries=0, cpus=2)
        site.wait(site.all_ended, "they have ended")
        hosts = [{site.shown(job).host for job in jobs} for jobs in (small, large)]
        assert not hosts[0] & hosts[1]

    # -------------------------------------------------------------- lies

    @pytest.mark.slow
    def test_a_refusal_is_shown_and_asked_again_later(self, site: Site) -> None:
        site.pool.lie("refuse")
        site.add("true", retries=0)
        site.wait(lambda: "no more today" in site.ok("manager", "status"), "the error is shown")
        site.wait(site.all_ended, "it was asked again")
        site.wait(lambda: "no more today" not in site.ok("manager", "status"), "the error is over")

    @pytest.mark.slow
    def test_a_submission_that_took_too_long_is_found_and_not_repeated(self, site: Site) -> None:
        site.pool.lie("hang")
        site.add_all([SLEEP] * 4)
        site.wait(lambda: len(site.states("state=running")) == 4, "they run")
        assert site.pool.notes("asked") == [["4", "hang"]]
        assert len(site.pool.notes("began")) == 4

    @pytest.mark.slow
    def test_what_appears_late_does_not_work_and_goes(self, site: Site) -> None:
        site.pool.lie("late")
        jobs = site.add_all([SLEEP] * 4)
        site.wait(lambda: len(site.states("state=running")) == 4, "others run them", seconds=90)
        mine = set(site.pool.running())
        site.pool.appear()
        site.wait(lambda: set(site.pool.running()) == mine and not site.pool.pending(), "the late ones are gone")
        assert set(site.states(*map(str, jobs)).values()) == {"running"}

    @pytest.mark.slow
    def test_an_engine_that_claims_is_asked_again(self, site: Site) -> None:
        site.pool.lie("claim")
        site.add_all(["true"] * 2, retries=0)
        site.wait(site.all_ended, "they have ended", seconds=90)

    @pytest.mark.slow
    def test_of_two_runners_with_one_ticket_one_works(self, site: Site) -> None:
        site.pool.lie("twice")
        site.add_all([SLEEP] * 2)
        site.wait(lambda: len(site.states("state=running")) == 2, "they run")
        site.wait(lambda: len(site.pool.running()) == 2 and not site.pool.pending(), "the others have left")
        site.judge_running()

    @pytest.mark.slow
    def test_a_runner_that_the_engine_forgot_goes_on(self, site: Site) -> None:
        job = site.running("while [ ! -e /tmp/go-on ]; do sleep 0.1; done", retries=0)
        with site.pool.being("forget"):
            site.wait_surveys(4)
            assert site.state(job) == "running"
        assert len(site.pool.notes("asked")) == 1
        site.hosts[0].run("touch", "/tmp/go-on")
        try:
            site.until(job, "complete")
        finally:
            site.hosts[0].run("rm", "/tmp/go-on")

    def test_while_the_engine_does_not_answer_nothing_is_given_up(self, site: Site) -> None:
        with site.pool.being("hold"):
            site.add_all(["true"] * 2, retries=0)
            site.wait(lambda: len(site.pool.pending()) == 2, "they wait there")
            with site.pool.being("deaf"):
                site.wait(lambda: "cannot hear you" in site.ok("manager", "status"), "the error is shown")
            assert len(site.pool.pending()) == 2
        site.wait(site.all_ended, "they have ended")
        assert len(site.pool.notes("asked")) == 1

    def test_what_nobody_asked_for_is_withdrawn(self, site: Site) -> None:
        with site.pool.being("hold"):
            site.add("true", retries=0)
            (id,) = site.wait_for(site.pool.pending, "one waits there")
            known = (site.pool.spool / "pending" / id).read_text()
            orphan = known.replace("-far-", "-far-f")[:-1] + "}"
            (site.pool.spool / "pending" / "orphan").write_text(orphan)
            site.wait(lambda: site.pool.pending() == [id], "the orphan is gone")
        site.wait(site.all_ended, "the other one works")

    @pytest.mark.slow
    def test_nothing_is_left_of_what_is_withdrawn_while_a_slow_engine_is_being_asked(self, site: Site) -> None:
        with site.pool.being("hold"), site.pool.being("slow"):
            jobs = [site.add(SLEEP)]
            for _ in range(3):
                site.wait_surveys(1)  # what is asked for now waits for the end of this one
                jobs.append(site.add(SLEEP))
                site.wait(lambda: site.intents() == 2, "another runner is on record")
                site.kill(jobs[-1])
                site.wait(lambda: site.intents() == 1, "nothing is left of it")
            site.kill(jobs[0])
            site.until_empty()

    # -------------------------------------------------------------- crashes of the manager

    @pytest.mark.parametrize(
        "step",
        [
            pytest.param("list die-before", marks=pytest.mark.slow),
            pytest.param("start die-before", marks=pytest.mark.slow),
            "start die-after",
        ],
    )
    def test_the_manager_dies_while_runners_are_asked_for(self, site: Site, step: str) -> None:
        program, lie = step.split()
        with site.pool.being("hold"):
            site.add_all([SLEEP] * 6)
            site.pool.lie(lie, program=program)
            site.until_dead()
            site.start()
            site.wait(lambda: len(site.pool.pending()) == 4, "four wait there", seconds=90)
            site.wait_surveys(2)
            assert len(site.pool.pending()) == 4
        site.wait(lambda: len(site.states("state=running")) == 4, "four run")
        assert site.pool.most_at_once() == 4

    @pytest.mark.slow
    def test_the_manager_dies_while_runners_are_withdrawn(self, site: Site) -> None:
        with site.pool.being("hold"):
            jobs = site.add_all([SLEEP] * 3)
            site.wait(lambda: len(site.pool.pending()) == 3, "three wait there")
            site.pool.lie("die-before", program="stop")
            site.kill(*jobs)
            site.until_dead()
            site.start()
            site.wait(lambda: not site.pool.pending(), "they are withdrawn")
            site.wait(lambda: site.intents() == 0, "nothing is left of them")

    @pytest.mark.slow
    def test_the_manager_dies_while_jobs_run(self, site: Site) -> None:
        jobs = site.add_all(["sleep 2"] * 4, retries=0)
        site.wait(lambda: len(site.states("state=running")) == 4, "they run")
        site.restart_manager()
        site.wait(site.all_ended, "they have ended")
        assert set(site.states(*map(str, jobs)).values()) == {"complete"}
        assert len(site.pool.notes("began")) == 4

    # -------------------------------------------------------------- deaths of runners

    def test_the_job_of_a_runner_that_died_is_tried_again_by_another(self, site: Site) -> None:
        job = site.running(SLEEP, retries=1, backoff="0s")
        site.kill_runners()
        site.wait(lambda: site.witness.seen(job) == ["start", "start"], "it began again", seconds=90)
        site.until(job, "running")

    @pytest.mark.slow
    def test_without_retries_the_job_of_a_runner_that_died_ends_as_lost(self, site: Site) -> None:
        job = site.running(SLEEP, retries=0)
        site.kill_runners()
        site.until(job, "failed")
        assert site.outcomes(job) == [("failed", "lost")]

    # -------------------------------------------------------------- tickets

    @pytest.mark.slow
    def test_a_ticket_is_used_once(self, site: Site) -> None:
        """Stolen once it is bound: refused, and the owner goes on."""
        job = site.running(SLEEP)
        (id,) = site.pool.running()
        assert self.use(site, (site.pool.spool / "tickets" / id).read_text()) == 0
        assert "this ticket is not accepted" in (site.work / "thief.log").read_text()
        assert site.state(job) == "running"
        assert len(site.json("manager", "status")["runners"]) == 1
        site.wait(lambda: not os.listdir(site.home / "tickets"), "its file is removed")

    @pytest.mark.slow
    def test_a_ticket_is_worthless_once_its_demand_is_withdrawn(self, site: Site) -> None:
        with site.pool.being("hold"):
            job = site.add(SLEEP)
            (id,) = site.wait_for(site.pool.pending, "one waits there")
            ticket = (site.pool.spool / "tickets" / id).read_text()
            site.kill(job)
            site.wait(lambda: not site.pool.pending(), "it is withdrawn")
            site.add(SLEEP)
            assert self.use(site, ticket) == 0
        assert "this ticket is not accepted" in (site.work / "thief.log").read_text()

    def use(self, site: Site, ticket: str) -> int:
        """A runner with this ticket on the head; its exit status."""
        file, log = site.work / "stolen", site.work / "thief.log"
        log.unlink(missing_ok=True)
        file.write_text(ticket)
        file.chmod(0o600)
        argv = [*site.before, sys.executable, "-m", "rota.runner", "--ticket", str(file)]
        argv += ["--dir", str(site.work / "thief"), "--log", str(log)]
        return subprocess.run(argv, env=site.env, timeout=60, check=False).returncode
