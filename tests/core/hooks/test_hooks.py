"""Scripts of the site, and jobs that run elsewhere or nowhere, in the engine: who is suspected, what is fenced,
what waits for a script, and what a crash leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import effects as e
from rota.core import events
from rota.core.attempts.leases import LeaseRef, NodeFault
from rota.core.engine_settings import EngineSettings
from rota.core.hooks.hook_records import ScriptState
from rota.core.jobs.outcome import Outcome
from rota.core.machines.fencing import to_fence
from rota.core.machines.suspected_hosts import to_heal
from rota.core.states import State
from tests.core.machine import LOST_AFTER_S, Entry, Machine, spec
from tests.core.runners import ModelRunner
from tests.core.test_planned import add, given, reason, running, site


class Scripted(Machine):
    """Remembers the scripts that it was told to run, instead of running them."""

    prologue = epilogue = False

    def _boot(self) -> None:
        super()._boot()
        self.scripts: list[e.RunServerScript] = []
        self.stopped: list[tuple[int, int]] = []
        if self.prologue or self.epilogue:
            scripts = self.world.use(ScriptState)
            scripts.prologue, scripts.epilogue = self.prologue, self.epilogue
        self.world.placement.ahead = not self.prologue

    def with_scripts(self, *, prologue: bool = False, epilogue: bool = False) -> None:
        self.prologue, self.epilogue = prologue, epilogue
        self._boot()

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case e.RunServerScript():
                self.scripts.append(effect)
            case e.StopServerScript(job, attempt):
                self.stopped.append((job, attempt))
            case _:
                super()._perform(effect)

    def ends(self, script: e.RunServerScript, wrong: str = "") -> None:
        self.scripts.remove(script)
        self.happened(
            events.ServerScriptEnded(
                hook=script.hook, job=script.job, attempt=script.attempt, token=script.token, wrong=wrong
            )
        )
        self.pump()


@pytest.fixture
def m() -> Scripted:
    """Two hosts of two cores, with runners."""
    return two_hosts()


def two_hosts(**scripts: bool) -> Scripted:
    machine = Scripted(cpus=200, hosts=2)
    if scripts:
        machine.with_scripts(**scripts)
    for host in machine.capacity:
        machine.join(machine.start_runner(host))
    machine.pump()
    return machine


def runner_of(m: Machine, host: str) -> ModelRunner:
    return next(model for model in m.runners.values() if model.host == host and not model.dead)


def sent_to(m: Machine, job: int) -> ModelRunner:
    lease = m.world.jobs[job].lease
    assert lease is not None
    return m.runners[lease.runner]


def put(m: Machine, **fields: Any) -> int:
    """Add a job whose lease is on its way and has not arrived."""
    n = m.send_chunk([Entry(f"job {len(m.world.outcomes)}", spec(**fields))], fresh=True)
    m.commit()
    return int(m.replies[n].added[0])


def prologue_fails(m: Machine, *jobs: int, hook: str = "prologue") -> str:
    """The runner to which these leases are on their way hands them back: the prologue of the first failed."""
    model = sent_to(m, jobs[0])
    model.incoming.clear()
    refs = []
    for job in jobs:
        lease = m.world.jobs[job].lease
        assert lease is not None
        refs.append(LeaseRef(job, m.world.jobs[job].attempt, lease.token))
    m.happened(
        events.RunnerReported(
            runner=model.id, seq=0, started=[], ended=[], returned=refs, closed=[],
            faults=[NodeFault(jobs[0], 1, hook, "exit 1: no disk")],
        )
    )  # fmt: skip
    m.pump()
    return model.host


def record(m: Machine, host: str) -> dict[str, Any]:
    return dict(m.world.site["host"].get(host, {}))


# ------------------------------------------------------------------ suspected hosts


def test_a_failing_prologue_suspects_the_host_and_the_job_runs_elsewhere_at_no_cost(m: Scripted) -> None:
    job = put(m, retries=0)
    host = prologue_fails(m, job)
    assert record(m, host)["state"] == "suspected"
    assert "no disk" in record(m, host)["why"]
    assert running(m) == {job}
    assert sent_to(m, job).host != host
    assert m.world.jobs[job].tries == 0
    m.end(job)
    assert m.state(job) is State.COMPLETE
    assert "prologue" in [event.kind for event in m.store.events(job)]


def test_nothing_begins_on_a_suspected_host_and_all_else_goes_on(m: Scripted) -> None:
    host = prologue_fails(m, put(m, retries=0))
    (other,) = m.capacity.keys() - {host}
    plain = m.add("a", "b", "c", "d", fresh=True).added
    planned = add(m, request="core=1")
    assert {sent_to(m, job).host for job in running(m)} == {other}
    assert len(running(m)) == 2
    while running(m):
        m.end(min(running(m)))
    assert m.states(*plain, planned) == [State.COMPLETE] * 5


def test_the_only_host_is_suspected_also_after_a_crash_until_it_is_healed() -> None:
    m = Machine(cpus=200)
    m.with_runner()
    job = put(m)
    host = prologue_fails(m, job)
    assert m.state(job) is State.READY
    m.crash()
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    assert running(m) == set()
    assert to_heal(m.world) == [host]
    m.happened(events.HostHealed(host=host, why="looked at"))
    m.pump()
    assert record(m, host) == {}
    assert running(m) == {job}


def test_a_host_that_does_not_answer_is_not_asked_about(m: Scripted) -> None:
    host = prologue_fails(m, put(m))
    m.disconnect(runner_of(m, host))
    assert to_heal(m.world) == []


def test_what_an_administrator_says_of_a_host_goes_before_what_a_hook_says(m: Scripted) -> None:
    host = prologue_fails(m, put(m))
    site(m, ("host", host, {**record(m, host), "state": "absent"}))
    assert record(m, host) == {"state": "absent"}
    m.happened(events.HostHealed(host=host, why="looked at"))
    assert record(m, host) == {"state": "absent"}
    site(m, ("host", host, {"gpus": 2}))
    prologue_fails(m, put(m, where=f"host = '{host}'"))
    assert record(m, host)["gpus"] == 2
    m.happened(events.HostHealed(host=host, why="looked at"))
    assert record(m, host) == {"gpus": 2}


def test_what_was_sent_to_a_host_that_is_suspected_then_is_called_back() -> None:
    m = Machine(cpus=200)
    model = m.with_runner()
    first, second = put(m), put(m)
    assert sent_to(m, first) is sent_to(m, second) is model
    refs = m.world.jobs[first].lease
    assert refs is not None
    model.incoming.pop(0)
    m.happened(
        events.RunnerReported(
            runner=model.id, seq=0, started=[], ended=[], returned=[LeaseRef(first, 1, refs.token)], closed=[],
            faults=[NodeFault(first, 1, "prologue", "exit 1")],
        )
    )  # fmt: skip
    assert m.committing is not None
    recalled = [each for each in m.committing.effects if isinstance(each, e.RecallLeases)]
    assert second in [lease[0] for each in recalled for lease in each.leases]


def test_a_failing_epilogue_suspects_the_host_and_changes_no_outcome(m: Scripted) -> None:
    job = add(m)
    model = sent_to(m, job)
    m.happened(
        events.RunnerReported(
            runner=model.id, seq=0, started=[], ended=[], returned=[], closed=[],
            faults=[NodeFault(job, 1, "epilogue", "exit 1")],
        )
    )  # fmt: skip
    assert record(m, model.host)["by"] == "epilogue"
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_what_a_runner_adds_to_stories_is_bounded_whether_it_has_a_lease_or_not(m: Scripted) -> None:
    job, waiting = add(m), add(m)
    model = sent_to(m, job)
    for _ in range(3):
        m.happened(
            events.RunnerReported(
                runner=model.id, seq=0, started=[], ended=[], returned=[], closed=[],
                faults=[NodeFault(each, 1, "epilogue", "x" * 9999) for each in (job, waiting) for _ in range(200)],
            )
        )  # fmt: skip
        m.pump()
    told = [event for each in (job, waiting) for event in m.store.events(each) if event.kind == "epilogue"]
    assert 0 < len(told) <= 200
    assert max(len(event.text) for event in told) < 1000


# ------------------------------------------------------------------ fencing


def fall_silent(m: Machine, model: ModelRunner) -> None:
    model.disconnect()
    m.happened(events.RunnerParted(runner=model.id))
    for _ in range(2):
        m.advance(LOST_AFTER_S)
        for other in m.runners.values():
            if other is not model and other.connected:
                other.report()
        m.pump()


def machine_off(m: Machine, model: ModelRunner) -> None:
    """What ran there is gone."""
    for busy in model.busy.values():
        m.witness.end(busy.grant.lease[0], busy.grant.lease[1], ok=False)
    model.busy.clear()
    model.dead, model.settled = True, True


def test_jobs_of_a_fenced_host_end_and_their_retries_decide(m: Scripted) -> None:
    once = add(m, where="host = 'h1'", retries=0)
    again = add(m, request="core=1", where="host = 'h1'", retries=1, backoff_s=0.0)
    model = runner_of(m, "h1")
    fall_silent(m, model)
    assert m.states(once, again) == [State.LOST, State.LOST]
    assert to_fence(m.world) == ["h1"]
    machine_off(m, model)
    m.happened(events.HostFenced(host="h1", why="power is off"))
    m.pump()
    assert m.state(once) is State.FAILED
    assert reason(m, once) == "lost"
    assert m.state(again) is State.DELAYED
    assert record(m, "h1")["state"] == "dead"
    assert to_fence(m.world) == []
    m.join(m.start_runner("h1"))
    m.pump()
    assert record(m, "h1") == {}
    m.advance(1.0)
    m.pump()
    assert running(m) == {again}


def test_a_host_that_answers_again_is_not_taken_for_fenced(m: Scripted) -> None:
    job = add(m, where="host = 'h1'")
    model = runner_of(m, "h1")
    fall_silent(m, model)
    m.join(model)
    m.pump()
    m.happened(events.HostFenced(host="h1", why="power is off"))
    assert m.state(job) is State.RUNNING
    assert record(m, "h1") == {}


def test_a_host_that_an_administrator_called_dead_stays_dead_when_its_agent_joins(m: Scripted) -> None:
    site(m, ("host", "h1", {"state": "dead"}))
    model = runner_of(m, "h1")
    m.disconnect(model)
    m.join(model)
    assert record(m, "h1") == {"state": "dead"}


# ------------------------------------------------------------------ nowhere and elsewhere


def test_a_noop_begins_and_ends_by_itself(m: Scripted) -> None:
    job = add(m, request="core=4,walltime=0:1:0", types=("noop",))
    assert m.state(job) is State.RUNNING
    assert running(m) == set()
    waiting = add(m, request="core=1")
    assert m.engine.next_due() == m.wall + 60
    m.advance(59.0)
    assert m.state(job) is State.RUNNING
    m.advance(1.0)
    m.pump()
    assert m.state(job) is State.COMPLETE
    assert running(m) == {waiting}
    assert all(not name.startswith("nowhere") for name in m.world.runners)


def test_a_noop_is_never_lost_and_is_the_same_after_a_crash(m: Scripted) -> None:
    job = add(m, request="core=3,walltime=1", types=("noop",))
    mine = given(m, job)
    m.advance(10 * LOST_AFTER_S)
    assert m.state(job) is State.RUNNING
    m.crash()
    for model in m.runners.values():
        m.join(model)
    m.pump()
    assert m.state(job) is State.RUNNING
    assert given(m, job) == mine
    others = [add(m, request="core=1") for _ in range(2)]
    assert running(m) == {others[0]}
    m.do("kill", job)
    assert m.state(job) is State.CANCELLED
    assert running(m) == set(others)


def test_a_besteffort_noop_makes_room_at_once(m: Scripted) -> None:
    low = add(m, request="core=4", types=("besteffort", "noop"), queue="besteffort")
    assert m.state(low) is State.RUNNING
    high = add(m, request="core=4")
    assert m.state(low) is State.FAILED
    assert reason(m, low) == "preempted"
    assert m.world.jobs[high].lease is not None


def test_a_deploy_job_holds_resources_here_and_runs_there(m: Scripted) -> None:
    m.world.settings.special_hosts["deploy"] = "h2"
    job = add(m, request="core=2", where="host = 'h1'", types=("deploy",))
    assert sent_to(m, job).host == "h2"
    assert given(m, job) == "1-2"
    # The cores of its resources are taken, those of the host that it runs on are not.
    there = [add(m, request="core=1") for _ in range(3)]
    assert running(m) == {job, *there[:2]}
    assert {sent_to(m, each).host for each in there[:2]} == {"h2"}
    m.crash()
    for model in m.runners.values():
        m.join(model)
    m.pump()
    assert running(m) == {job, *there[:2]}
    m.end(job)
    assert running(m) == set(there)


def test_a_deploy_job_waits_for_its_host_and_others_do_not_wait_for_it(m: Scripted) -> None:
    m.world.settings.special_hosts["deploy"] = "h2"
    m.disconnect(runner_of(m, "h2"))
    job = add(m, request="core=1", types=("deploy",))
    plain = add(m, request="core=1")
    assert running(m) == {plain}
    assert m.state(job) is State.READY
    m.join(runner_of(m, "h2"))
    m.pump()
    assert running(m) == {plain, job}


def test_only_jobs_that_run_on_their_nodes_end_when_these_are_said_to_be_gone(m: Scripted) -> None:
    m.world.settings.special_hosts.update(deploy="h2", cosystem="h2")
    kinds = {kind: add(m, size=spec().size, where="host = 'h1'", types=(kind,)) for kind in ("cosystem", "deploy")}
    site(m, ("host", "h1", {"state": "dead"}))
    m.pump()
    assert m.state(kinds["cosystem"]) is State.RUNNING
    assert m.state(kinds["deploy"]) is State.CANCELLED


# ------------------------------------------------------------------ scripts on the manager's host


def test_a_job_is_sent_when_its_prologue_went_well() -> None:
    m = two_hosts(prologue=True)
    job = add(m)
    assert m.state(job) is State.STARTING
    assert running(m) == set()
    (script,) = m.scripts
    assert (script.hook, script.job, script.about["ROTA_USER"]) == ("prologue", job, "ann")
    m.ends(script)
    assert running(m) == {job}
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_a_job_over_two_hosts_has_its_prologue_before_its_parts_are_opened() -> None:
    m = two_hosts(prologue=True)
    job = add(m, request="host=2/core=1")
    assert not any(model.incoming for model in m.runners.values())
    (script,) = m.scripts
    assert script.about["ROTA_NODES"] == "h1 h2"
    m.ends(script)
    assert running(m) == {job}
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_a_prologue_that_fails_thrice_fails_its_job_and_nobody_else() -> None:
    m = two_hosts(prologue=True)
    bad = add(m, "bad", retries=5)
    for tries in range(1, 4):
        (script,) = [each for each in m.scripts if each.job == bad]
        m.ends(script, "no licence")
        good = add(m, f"good {tries}")
        m.ends(next(each for each in m.scripts if each.job == good))
        assert good in running(m)
        m.end(good)
        if tries < 3:
            assert m.state(bad) is State.DELAYED
            m.crash()  # how often it failed is not forgotten
            for model in m.runners.values():
                m.join(model)
            m.pump()
            m.advance(600.0)
            m.pump()
    assert m.state(bad) is State.FAILED
    assert reason(m, bad) == "server_prologue"
    assert m.witness.attempts[bad] == []


def test_a_job_that_is_killed_or_paused_while_its_prologue_runs_is_not_sent() -> None:
    m = two_hosts(prologue=True)
    first, second = add(m, "first"), add(m, "second")
    scripts = list(m.scripts)
    m.do("kill", first)
    assert m.state(first) is State.CANCELLED
    assert m.stopped == [(first, 1)]
    m.happened(events.ManagerPaused())
    m.pump()
    for script in scripts:
        m.ends(script)
    assert running(m) == set()
    assert m.state(second) is State.READY
    m.happened(events.ManagerResumed())
    m.pump()
    m.ends(m.scripts[-1])
    assert running(m) == {second}


def test_a_prologue_begins_again_after_a_crash() -> None:
    m = two_hosts(prologue=True)
    job = add(m)
    (script,) = m.scripts
    m.crash()
    for model in m.runners.values():
        m.join(model)
    m.pump()
    (again,) = m.scripts
    assert (again.job, again.attempt) == (job, script.attempt + 1)
    m.scripts.append(script)
    m.ends(script)  # the end of the old one, should it come
    assert running(m) == set()
    m.ends(again)
    assert running(m) == {job}
    assert m.world.jobs[job].tries == 0


def test_an_epilogue_follows_every_attempt_and_is_remembered_until_it_has_run() -> None:
    m = two_hosts(epilogue=True)
    job = add(m, retries=1, backoff_s=0.0)
    m.end(job, exit_code=4)
    (script,) = m.scripts
    assert (script.about["ROTA_OUTCOME"], script.about["ROTA_EXIT_CODE"]) == ("failed", "4")
    m.crash()
    assert list(m.world.use(ScriptState).epilogues) == [(job, 1)]
    m.scripts.append(script)
    m.ends(script, "exit 1")
    assert m.world.use(ScriptState).epilogues == {}
    assert "server_epilogue" in [event.kind for event in m.store.events(job)]
    for model in m.runners.values():
        m.join(model)
    m.advance(1.0)
    m.pump()
    m.end(job)
    (script,) = m.scripts
    assert (script.attempt, script.about["ROTA_OUTCOME"]) == (2, "complete")


# ------------------------------------------------------------------ exit 99, and fewer than were asked for


@pytest.mark.parametrize(("seconds", "types", "expected"), [
    (60.0, ("idempotent",), "again"),
    (59.0, ("idempotent",), "failed"),
    (600.0, (), "failed"),
])  # fmt: skip
def test_exit_99_of_an_idempotent_job_that_ran_for_a_minute_is_no_end(
    m: Scripted, seconds: float, types: tuple[str, ...], expected: str
) -> None:
    job = add(m, request="core=1", types=types, retries=0)
    m.advance(seconds)
    m.end(job, exit_code=99)
    if expected == "failed":
        assert m.state(job) is State.FAILED
        return
    assert running(m) == {job}
    assert (m.world.jobs[job].attempt, m.world.jobs[job].tries) == (2, 0)
    m.advance(seconds)
    m.end(job, exit_code=1)
    assert m.state(job) is State.FAILED


def test_exit_99_of_a_job_that_is_being_killed_is_its_end(m: Scripted) -> None:
    job = add(m, request="core=1", types=("idempotent",))
    m.advance(100.0)
    model, seat = m.running()[job]
    m.act("kill", job)
    model.end(seat, Outcome(exit_code=99, started_at=m.wall - 100, ended_at=m.wall), m.wall)
    m.pump()
    assert m.state(job) is State.CANCELLED


def test_a_reservation_of_two_hosts_begins_on_the_one_that_is_there_and_ends_on_time(m: Scripted) -> None:
    m.world.settings = EngineSettings(patience_s=120.0)
    job = add(m, request="host=2,walltime=0:10:0", at=m.wall + 100)
    m.disconnect(runner_of(m, "h2"))
    m.advance(100.0)
    m.pump()
    assert running(m) == set()
    assert m.engine.next_due() == m.wall + 120
    m.advance(119.0)
    m.pump()
    assert running(m) == set()
    m.advance(1.0)
    m.pump()
    assert running(m) == {job}
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert lease.given is not None
    assert lease.given.nodes == (("h1", 2),)
    assert lease.given.walltime_s == 480.0
