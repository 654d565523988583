"""Jobs over several hosts: their parts are opened before they begin, and closed before anything is free."""

from __future__ import annotations

import msgspec

from rota.core import effects as e
from rota.core import events
from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.plan.site.node_facts import NodeFacts
from tests.core.machine import GIB, Machine
from tests.core.runners import ModelRunner

TWO = ("/host=2/core=4,walltime=1",)
THREE = ("/host=3/core=4,walltime=1",)
FACTS = NodeFacts(cores=4, mem=8 * GIB, disk=GIB, machine="m")


def cluster(hosts: int = 2) -> tuple[Machine, dict[str, ModelRunner]]:
    m = Machine(hosts=hosts)
    runners = {}
    for host in m.capacity:
        runners[host] = m.start_runner(host)
        m.join(runners[host])
    m.pump()
    return m, runners


def reason(m: Machine, job: int) -> str:
    found = m.world.jobs[job].reason
    return found.code if found is not None else ""


def talk(m: Machine, *models: ModelRunner) -> None:
    """Let only these hear and be heard until nothing moves."""
    for _round in range(20):
        m.commit()
        for model in models:
            model.deliver()
            if model.draft:
                model.report()
            m.hear(model)


def running(hosts: int = 2) -> tuple[Machine, dict[str, ModelRunner], int]:
    """A job that runs on all hosts, and another that waits for the same."""
    m, runners = cluster(hosts)
    request = (f"/host={hosts}/core=4,walltime=1",)
    job, _next = m.add("first", "second", request=request).added
    assert m.states(job, _next) == [State.RUNNING, State.READY]
    return m, runners, job


# ------------------------------------------------------------------ beginning


def test_the_first_host_gets_the_lease_when_all_others_have_opened_their_parts() -> None:
    m, runners = cluster(3)
    job = m.world.next_job
    m.add_quietly("job", request=THREE)
    talk(m, runners["h1"], runners["h2"])
    assert m.state(job) is State.STARTING
    assert m.world.jobs[job].reason.message == "waiting for h3 to be ready"
    assert not m.running()
    assert not runners["h1"].seats
    talk(m, runners["h3"], runners["h1"])
    assert m.state(job) is State.RUNNING
    assert m.world.jobs[job].reason is None
    assert {host for each, host in m.witness.parts if each == job} == {"h2", "h3"}
    given = m.world.jobs[job].lease.given
    assert (given.nodes, given.cpu_lists) == ((("h1", 4), ("h2", 4), ("h3", 4)), ("0-3", "0-3", "0-3"))


def test_each_host_is_told_its_own_cores() -> None:
    m, _runners = cluster(2)
    m.add("half", request=("/host=1/core=3,walltime=1",))
    (job,) = m.add("both", request=("/host=2/core=1,walltime=1",)).added
    given = m.world.jobs[job].lease.given
    assert dict(zip(dict(given.nodes), given.cpu_lists, strict=True)) == {"h1": "3", "h2": "0"}


def test_a_host_that_cannot_be_made_ready_costs_no_retry() -> None:
    m, runners = cluster(3)
    runners["h2"].unready = True
    m.add("job", request=TWO)
    (job,) = m.world.jobs.values()
    assert (job.state, job.attempt, job.tries) == (State.RUNNING, 2, 0)
    assert [host for host, _cores in job.lease.given.nodes] == ["h1", "h3"]
    assert m.store.attempts(job.id)[0].outcome == "void"
    story = [event.text for event in m.store.events(job.id)]
    assert "h2 could not be made ready for it: the prologue failed" in story
    assert m.witness.attempts[job.id] == [2]


def test_a_runner_that_dies_before_the_job_began_sends_it_back_to_wait() -> None:
    m, runners = cluster(2)
    m.add_quietly("job", request=TWO)
    (job,) = m.world.jobs
    m.commit()
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    assert m.state(job) is State.READY
    m.join(m.start_runner("h2"))
    m.pump()
    assert m.state(job) is State.RUNNING
    assert m.witness.attempts[job] == [2]


def test_a_host_whose_connection_breaks_while_its_part_is_on_the_way_is_told_again() -> None:
    m, runners = cluster(2)
    m.add_quietly("job", request=TWO)
    m.commit()
    m.disconnect(runners["h2"])
    m.join(runners["h2"])
    m.pump()
    assert m.state(1) is State.RUNNING
    assert m.witness.attempts[1] == [1]


def test_a_job_killed_while_its_hosts_get_ready_is_cancelled_when_they_are_clean() -> None:
    m, runners = cluster(2)
    m.add_quietly("job", request=TWO)
    m.commit()
    runners["h2"].deliver()
    m.act("kill", 1)
    m.commit()
    assert m.state(1) is State.FINISHING
    assert reason(m, 1) == "kill_requested"
    m.pump()
    assert m.state(1) is State.CANCELLED
    assert not m.witness.executed
    assert not m.witness.parts


def test_a_pause_calls_back_what_waits_for_its_hosts() -> None:
    m, _runners = cluster(2)
    m.add_quietly("job", request=TWO)
    m.happened(events.ManagerPaused())
    m.pump()
    assert m.state(1) is State.READY
    assert not m.witness.parts
    m.happened(events.ManagerResumed())
    m.pump()
    assert m.state(1) is State.RUNNING


def test_a_crash_before_the_lease_was_sent_sends_the_job_back_to_wait() -> None:
    m, runners = cluster(2)
    m.add_quietly("job", request=TWO)
    m.commit()
    runners["h2"].deliver()
    m.crash()
    m.heal()
    assert m.state(1) is State.RUNNING
    assert m.witness.attempts[1] == [2]


# ------------------------------------------------------------------ ending


def test_nothing_is_free_until_every_host_is_clean() -> None:
    m, runners, job = running(3)
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=0, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"], runners["h2"])
    assert m.state(job) is State.FINISHING
    assert m.world.jobs[job].reason.message == "it has ended; h2, h3 is being cleaned"
    assert m.store.attempts(job)[-1].outcome == "complete", "its end is on disk already"
    assert m.state(job + 1) is State.READY
    m.pump()
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]
    assert m.witness.attempts[job + 1] == [1]


def test_a_failed_attempt_is_tried_again_when_every_host_is_clean() -> None:
    m, runners = cluster(2)
    (job,) = m.add("job", request=TWO, retries=1, backoff_s=0.0).added
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=3, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"])
    assert (m.state(job), m.world.jobs[job].tries) == (State.FINISHING, 1)
    m.pump()
    assert m.state(job) is State.DELAYED


def test_a_kill_while_only_parts_are_left_keeps_the_job_from_being_tried_again() -> None:
    m, runners = cluster(2)
    (job,) = m.add("job", request=TWO, retries=1).added
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=3, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"])
    m.act("kill", job)
    while m.commit():
        pass
    m.crash()
    m.heal()
    assert m.state(job) is State.CANCELLED


def test_a_manager_that_dies_while_parts_are_closed_goes_on_with_that() -> None:
    m, runners, job = running(3)
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=0, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"])
    m.crash()
    assert m.state(job) is State.FINISHING
    m.join(runners["h1"])
    m.join(runners["h2"])
    talk(m, runners["h1"], runners["h2"])
    assert m.states(job, job + 1) == [State.FINISHING, State.READY], "h3 has not said anything"
    m.heal()
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_host_that_joins_again_is_not_clean_before_it_has_said_so() -> None:
    m, runners, job = running(2)
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=0, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"])
    m.disconnect(runners["h2"])
    m.join(runners["h2"])
    while m.commit():
        pass
    assert m.state(job) is State.FINISHING
    assert m.state(job + 1) is State.READY
    m.pump()
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_crash_between_the_end_and_its_record_loses_nothing() -> None:
    m, _runners, job = running(2)
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=0, started_at=1000.0, ended_at=m.wall), m.wall)
    model.report()
    m.hear(model)
    m.crash()
    assert m.state(job) is State.RUNNING
    m.heal()
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_recovering_twice_while_parts_are_closed_equals_recovering_once() -> None:
    m, runners, job = running(2)
    model, seat = m.running()[job]
    model.end(seat, Outcome(exit_code=0, started_at=1000.0, ended_at=m.wall), m.wall)
    talk(m, runners["h1"])
    for _crash in range(3):
        m.crash()
        found = m.world.jobs[job]
        assert found.lease is not None
        assert found.lease.ended is not None
        assert set(found.lease.parts) == {"h2"}
    m.heal()
    assert m.state(job) is State.COMPLETE


# ------------------------------------------------------------------ silence and death


def silence(m: Machine, runners: dict[str, ModelRunner], host: str) -> None:
    """Nothing is heard of one host for longer than the countdown."""
    m.disconnect(runners[host])
    for _tick in range(7):
        for model in runners.values():
            if model.connected:
                model.report()
                m.hear(model)
        m.advance(10.0)
    m.commit()


def test_a_job_is_lost_while_one_of_its_hosts_is_silent_and_found_when_it_answers() -> None:
    m, runners, job = running(2)
    silence(m, runners, "h2")
    assert (m.state(job), reason(m, job)) == (State.LOST, "lost")
    assert "h2" in m.world.jobs[job].reason.message
    m.join(runners["h2"])
    m.pump()
    assert m.state(job) is State.RUNNING
    m.end(job)
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_lost_job_is_found_only_when_all_its_hosts_answer() -> None:
    m, runners, job = running(3)
    silence(m, runners, "h2")
    silence(m, runners, "h3")
    m.join(runners["h2"])
    m.pump()
    assert m.state(job) is State.LOST
    m.join(runners["h3"])
    m.pump()
    assert m.state(job) is State.RUNNING


def test_a_kill_is_delivered_to_a_silent_host_when_it_answers() -> None:
    m, runners, job = running(2)
    silence(m, runners, "h2")
    m.do("kill", job)
    assert (m.state(job), reason(m, job)) == (State.LOST, "kill_requested")
    assert job not in m.running(), "it was killed where somebody answers"
    assert m.state(job + 1) is State.READY
    m.crash()
    m.join(runners["h1"])
    m.pump()
    assert (m.state(job), reason(m, job)) == (State.FINISHING, "kill_requested")
    m.join(runners["h2"])
    m.pump()
    assert m.states(job, job + 1) == [State.CANCELLED, State.RUNNING]


def test_a_job_that_ended_while_a_host_was_silent_is_lost_until_that_host_is_clean() -> None:
    m, runners, job = running(2)
    silence(m, runners, "h2")
    m.end(job)
    assert m.state(job) is State.LOST
    assert m.store.attempts(job)[-1].outcome == "complete"
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    assert m.state(job) is State.COMPLETE


def test_what_died_with_the_runner_of_another_host_does_not_end_the_job() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"])
    m.settle(runners["h2"])
    successor = m.start_runner("h2")
    m.join(successor)
    m.pump()
    assert m.state(job) is State.RUNNING
    assert (job, "h2") in m.witness.parts, "its part was opened again"
    assert [event.text for event in m.store.events(job) if event.kind == "part"] == [
        "everything of it on h2 has ended: runner r2 died"
    ]
    m.crash()
    m.heal()
    assert m.state(job) is State.RUNNING
    m.end(job)
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_suspended_job_one_of_whose_hosts_is_gone_goes_on_when_it_is_asked_to() -> None:
    m, runners, job = running(2)
    m.do("kill", job + 1)
    m.do("suspend", job)
    assert m.state(job) is State.SUSPENDED
    m.die(runners["h2"])
    m.settle(runners["h2"])  # and no successor comes
    m.do("resume", job)
    m.pump()
    assert m.state(job) is State.RUNNING
    assert not m.witness.stands_still(job)
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_a_job_is_suspended_when_the_host_that_did_not_answer_is_gone() -> None:
    m, runners, job = running(2)
    m.do("kill", job + 1)
    m.disconnect(runners["h2"])
    m.do("suspend", job)
    assert m.state(job) is State.RUNNING, "it may run on where nobody hears of it"
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    assert m.state(job) is State.SUSPENDED
    m.do("resume", job)
    m.pump()
    assert m.state(job) is State.RUNNING


def test_a_part_does_not_go_to_a_dead_runner_whose_connection_was_not_missed_yet() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"], noticed=False)
    m.settle(runners["h2"])
    m.pump()
    assert "r2" not in m.world.runners, "nobody will prove again that it is dead"
    m.join(m.start_runner("h2"))
    m.pump()
    assert (job, "h2") in m.witness.parts, "its part was opened again"
    m.end(job)
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_part_does_not_go_to_a_runner_from_before_its_machine_was_started_anew() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"], noticed=False)
    runners["h2"].settle("nobody", m.wall)  # everything ended with the machine, and nobody tells of it
    successor = m.start_runner("h2")
    m.happened(msgspec.structs.replace(successor.join(), node=FACTS, boot_id="another"))
    m.pump()
    assert "r2" not in m.world.runners
    assert (job, "h2") in m.witness.parts, "its part was opened again"
    m.end(job)
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_that_one_of_several_hosts_is_clean_is_known_after_a_crash() -> None:
    m, runners, job = running(3)
    m.disconnect(runners["h2"])
    m.disconnect(runners["h3"])
    m.end(job)
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    m.crash()
    assert list(m.world.jobs[job].lease.parts) == ["h3"]
    assert m.runners["r2"].settled, "nobody will tell again what became of it"
    for host in ("h1", "h3"):
        m.join(runners[host])
    m.pump()
    assert m.state(job) is State.COMPLETE


def test_a_host_that_has_said_that_it_is_clean_may_go_before_the_next_manager_comes() -> None:
    m, runners, job = running(3)
    m.disconnect(runners["h3"])
    m.end(job)
    assert (m.state(job), reason(m, job)) == (State.FINISHING, "closing")
    m.die(runners["h2"])  # it had nothing any more
    m.pump()
    m.crash()
    for host in ("h1", "h3"):
        m.join(runners[host])
    m.pump()
    assert m.state(job) is State.COMPLETE


def test_a_job_goes_on_while_a_host_has_no_runner_and_ends_without_it() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    assert m.state(job) is State.RUNNING
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_that_a_part_is_gone_is_known_after_a_crash() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"])
    m.settle(runners["h2"])
    m.pump()
    m.crash()
    m.join(runners["h1"])
    m.pump()
    for _tick in range(7):
        runners["h1"].report()
        m.hear(runners["h1"])
        m.advance(10.0)
    assert m.state(job) is State.RUNNING, "nobody is expected to say something about h2"
    m.join(m.start_runner("h2"))
    m.pump()
    assert (job, "h2") in m.witness.parts
    m.end(job)
    assert m.states(job, job + 1) == [State.COMPLETE, State.RUNNING]


def test_a_job_that_has_not_begun_does_not_wait_for_a_host_on_which_nobody_answers() -> None:
    m, runners = cluster(3)
    m.add_quietly("job", request=TWO)
    m.world.jobs[1].lease.parts["h2"].runner = ""  # as if its runner had gone in the same instant
    m.die(runners["h2"])
    m.advance(1.0)
    m.pump()
    assert m.state(1) is State.RUNNING
    assert [host for host, _cores in m.world.jobs[1].lease.given.nodes] == ["h1", "h3"]
    assert m.world.jobs[1].tries == 0


def test_a_journal_that_is_damaged_proves_nothing_about_parts() -> None:
    m, runners, job = running(2)
    m.die(runners["h2"])
    m.happened(events.RunnerSettled(runner="r2", by_runner="settle:r2", ended=[], whole=False))
    m.pump()
    m.end(job)
    assert m.state(job) is State.FINISHING
    m.advance(61.0)
    assert m.state(job) is State.LOST
    m.witness.parts.clear()
    m.do("confirm-dead", job)
    assert m.state(job) is State.COMPLETE


def test_confirmed_dead_where_nobody_answers_is_ended_where_somebody_does() -> None:
    m, runners = cluster(2)
    (job,) = m.add("job", request=TWO, retries=1).added
    silence(m, runners, "h2")
    m.witness.shut_part(job, "h2")
    m.act("confirm-dead", job)
    m.commit()
    assert m.state(job) is State.FINISHING
    m.pump()
    assert m.state(job) is State.DELAYED, "its retries decide"
    assert m.store.attempts(job)[-1].reason_message == "lost; declared dead by ann"
    assert not m.running()


def test_confirmed_dead_survives_a_crash_before_its_first_host_has_ended_it() -> None:
    m, runners = cluster(2)
    (job,) = m.add("job", request=TWO, retries=1).added
    silence(m, runners, "h2")
    m.witness.shut_part(job, "h2")
    runners["h2"].parts.clear()
    m.act("confirm-dead", job)
    while m.commit(perform=False):
        pass
    m.crash()
    m.heal()
    assert m.state(job) is State.DELAYED


def test_the_whole_job_is_confirmed_dead_when_no_host_answers() -> None:
    m, runners, job = running(2)
    for model in runners.values():
        m.die(model)
    m.advance(61.0)
    assert m.state(job) is State.LOST
    m.witness.running.clear()
    m.witness.parts.clear()
    m.do("confirm-dead", job)
    assert m.state(job) is State.FAILED
    assert not m.world.runners


def test_a_host_that_is_said_to_be_dead_ends_the_jobs_that_have_a_part_there() -> None:
    m, _runners, job = running(2)
    m.happened(events.SiteChanged(by=m.asker(), changes=[("host", "h2", {"state": "dead"})]))
    m.pump()
    assert m.state(job) is State.CANCELLED


def test_a_part_that_nobody_wants_any_more_is_closed_when_its_runner_joins() -> None:
    m, runners, job = running(2)
    silence(m, runners, "h2")
    m.witness.shut_part(job, "h2")
    m.do("confirm-dead", job)
    assert m.state(job) is State.FAILED
    assert runners["h2"].parts, "it lives after all"
    m.join(runners["h2"])
    runners["h2"].deliver()
    m.commit()
    runners["h2"].deliver(1)
    assert not [lease for lease in runners["h2"].parts if lease[0] == job]


def test_a_late_word_about_a_part_changes_nothing() -> None:
    m, runners, job = running(2)
    ref = next(iter(runners["h2"].parts))
    before = len(m.store.events(job))
    for model in runners.values():
        model.draft.shut.append(events.LeaseRef(ref[0], ref[1], ref[2] + 1))
        model.report()
    m.pump()
    assert m.state(job) is State.RUNNING
    assert len(m.store.events(job)) == before
    assert not [effect for effect in m.open.effects if isinstance(effect, e.CloseParts)]
