"""What every store promises, checked on each of them."""

from __future__ import annotations

import msgspec
import pytest
from rows import SPEC, a_world, an_add, attempt_row, changes, end_row, job_row, key_of, state_row

from rota.core.jobs.command import command_to_text
from rota.core.jobs.job import After, Condition
from rota.core.output.output_blocks import Output
from rota.core.output.output_report import OutputReport
from rota.core.rows import ReturnedRow, RunnerRow, SpecRow, SubmissionRow
from rota.core.states import State
from rota.core.stored import StoredAttempt
from rota.errors import Bug, NotFound
from rota.store.base import Clause, Order

ALL = [Clause()]


def test_an_empty_store_loads_as_nothing(store):
    snapshot = store.load()
    assert (snapshot.jobs, snapshot.open_attempts, snapshot.specs, snapshot.meta) == ([], [], {}, {})
    assert (snapshot.next_job, snapshot.next_spec, snapshot.next_env) == (1, 1, 1)
    assert snapshot.outcomes == b"\xff"


def test_what_was_committed_is_loaded_after_reopening(store, reopen):
    store.commit(a_world())
    snapshot = reopen(store).load()
    assert [job.id for job in snapshot.jobs] == [2, 3]
    assert snapshot.outcomes == bytes([255, State.COMPLETE, 0, 0])
    assert [(a.job, a.number, a.token) for a in snapshot.open_attempts] == [(2, 1, 5)]
    assert snapshot.runners == [RunnerRow("r1", "host1", "boot-1", 41, 12345, 999.5)]
    assert snapshot.specs[1].cwd == "/home/ann"
    assert snapshot.env_ids == {"digest-1": 1}
    assert snapshot.tally == {("default", State.COMPLETE): 1}
    assert snapshot.meta == {"name": "here"}
    assert (snapshot.next_job, snapshot.next_spec, snapshot.next_env) == (4, 2, 2)


def test_loading_twice_gives_the_same(store):
    store.commit(a_world())
    store.commit(an_add(4, submission="s2", answer=None))
    assert store.load() == store.load()


def test_an_attempt_may_be_inserted_started_and_ended_in_one_batch(store):
    store.commit(a_world())
    assert store.attempts(1) == [
        StoredAttempt(
            job=1, number=1, token=(1 << 63) - 1, runner="r1", host="host1", leased_at=1001.0,
            started_at=1001.5, pid=77, seat=2, outcome="complete", exit_code=0, ended_at=1002.125, cpu_s=0.1,
            peak_mem=1 << 40, peak_disk=0, segment="seg-1", offset=7, out_len=3, err_len=0, out_total=3,
            err_total=0, spec=1,
        )
    ]  # fmt: skip
    assert store.segments_in_use() == {"seg-1"}


def test_what_is_known_of_an_output_is_kept_with_where_it_lies(store, reopen):
    store.commit(a_world())
    known = OutputReport((1, 2), 3, 0, "disk_full", "the disk was full")
    text = msgspec.json.encode(known).decode()
    store.commit(changes(starts=[(2, 1, 1003.0, 5, 1)], ends=[end_row(2, segment=None, kept=text)]))
    store = reopen(store)
    assert store.attempts(2)[0].kept == known
    assert next(iter(store.jobs([2]))).newest.kept == known
    old = Output("seg-1", 7, 3, 0, 3, 0)
    assert store.outputs(after=(0, 0), limit=9) == [((1, 1), old), ((2, 1), Output("", 7, 3, 0, 3, 0, known))]
    assert [key for key, _ in store.outputs(after=(0, 0), limit=1)] == [(1, 1)]
    assert [key for key, _ in store.outputs(after=(1, 1), limit=9)] == [(2, 1)]


def test_pruned_segments_are_remembered(store, reopen):
    store.commit(changes(pruned=["seg-1", "seg-2"]))
    store.commit(changes(pruned=["seg-1"]))
    assert reopen(store).pruned({"seg-1", "seg-3"}) == {"seg-1"}


def test_an_end_that_does_not_know_the_start_keeps_it(store):
    store.commit(a_world())
    store.commit(changes(starts=[(2, 1, 1003.0, 5, 1)]))
    store.commit(changes(ends=[end_row(2, started_at=None)]))
    assert store.attempts(2)[0].started_at == 1003.0


def test_of_two_ends_in_one_batch_the_last_counts(store):
    store.commit(a_world())
    store.commit(changes(ends=[end_row(2, outcome="lost"), end_row(2, outcome="failed", started_at=None)]))
    (attempt,) = store.attempts(2)
    assert (attempt.outcome, attempt.started_at) == ("failed", 1001.5)


def test_a_void_lease_is_not_open(store):
    store.commit(a_world())
    store.commit(changes(voids=[(2, 1)]))
    assert store.load().open_attempts == []
    assert store.attempts(2)[0].outcome == "void"


def test_commands_and_dependencies_come_back_as_they_went_in(store):
    store.commit(
        changes(
            submissions=[("s1", "ann", 1.0, 3, "{}")],
            jobs=[
                job_row(1, cmd='\x01["printf","a b","\\u0001\\"ü"]'),
                job_row(2, cmd="echo '☃' \"$HOME\" \\\n\t\x02", after="[[1,1],[7,3]]"),
                job_row(3, cmd="", reason_code="blocked", reason_message="parent 1 failed", ready_at=None),
            ],
        )
    )
    first, second, third = store.load().jobs
    assert first.cmd == ["printf", "a b", '\x01"ü']
    assert second.cmd == "echo '☃' \"$HOME\" \\\n\t\x02"
    assert second.after == (After(1, Condition.OK), After(7, Condition.NOT_OK))
    assert (third.cmd, third.reason_code, third.ready_at) == ("", "blocked", None)
    assert [job.cmd for job in store.jobs([1, 2, 3])] == [first.cmd, second.cmd, third.cmd]


@pytest.mark.parametrize("value", [0.1, 1760000000.123457, 5e-324, 1.7976931348623157e308, -0.0, 2.0**53 + 2])
def test_times_come_back_exactly(store, value):
    store.commit(an_add(1, submitted_at=value))
    assert store.load().jobs[0].submitted_at == value
    assert store.jobs([1])[0].submitted_at == value


def test_jobs_come_with_their_newest_attempt_and_unknown_ids_are_left_out(store):
    store.commit(a_world())
    store.commit(
        changes(
            ends=[end_row(2, outcome="failed")],
            attempts=[attempt_row(2, 2, host="host2")],
            job_states={2: state_row(2, State.RUNNING, attempt=2, tries=1)},
        )
    )
    one, two = store.jobs([99, 2, 1])
    assert (one.id, one.newest.outcome) == (1, "complete")
    assert (two.id, two.newest.number, two.newest.host) == (2, 2, "host2")
    assert store.jobs([3])[0].newest is None


def test_the_newest_job_with_a_key_is_known_with_its_state(store):
    store.commit(an_add(1, 2))
    store.commit(an_add(3, submission="s2", key=key_of(1), state=State.HELD))
    assert store.known_keys("ann", [key_of(1), key_of(2), key_of("none")]) == {
        key_of(1): (3, State.HELD),
        key_of(2): (2, State.READY),
    }
    assert store.known_keys("ann", []) == {}


def test_a_submission_is_remembered_with_its_answer(store):
    store.commit(an_add(1, submission="a", at=5.0, answer='{"added": [1]}'))
    store.commit(an_add(2, submission="b", at=6.0))
    store.commit(an_add(3, submission="c", at=7.0, user="bob"))
    store.commit(an_add(4, submission="d", at=8.0, answer=None))
    assert store.submission("a") == SubmissionRow("a", "ann", 5.0, 1, '{"added": [1]}')
    assert store.submission("none") is None
    assert store.submission("d").answer is None
    assert store.last_submission("ann").id == "b"
    assert store.last_submission("zoe") is None


def some_groups(store):
    store.commit(an_add(1, 2, group="red"))
    store.commit(an_add(3, 4, submission="s2", group="blue", user="bob"))
    store.commit(an_add(5, submission="s3", group="red", user="bob"))
    store.commit(an_add(6, submission="s1", group="red"))
    store.commit(
        changes(
            attempts=[attempt_row(2, host="host1"), attempt_row(5, host="host2")],
            ends=[end_row(2, outcome="failed", exit_code=3), end_row(5, outcome="failed", exit_code=1)],
            job_states={
                2: state_row(2, State.FAILED, attempt=1, ended_at=2000.0),
                4: state_row(4, State.CANCELLED),
                5: state_row(5, State.FAILED, attempt=1, ended_at=3000.0),
            },
        )
    )


@pytest.mark.parametrize(
    ("clauses", "ids"),
    [
        ([], []),
        ([Clause()], [1, 2, 3, 4, 5, 6]),
        ([Clause(low=2, high=4)], [2, 3, 4]),
        ([Clause(low=5)], [5, 6]),
        ([Clause(low=4, high=2)], []),
        (
            [Clause(low=1, high=1), Clause(low=3, high=3), Clause(low=6, high=9), Clause(low=3, high=4)],
            [1, 3, 4, 6],
        ),
        ([Clause(group="red")], [1, 2, 5, 6]),
        ([Clause(group="none")], []),
        ([Clause(user="bob")], [3, 4, 5]),
        ([Clause(group="red", user="bob")], [5]),
        ([Clause(state=State.FAILED)], [2, 5]),
        ([Clause(state=State.READY)], [1, 3, 6]),
        ([Clause(state=State.FAILED, group="red", user="ann")], [2]),
        ([Clause(state=State.CANCELLED, low=5)], []),
        ([Clause(host="host1")], [2]),
        ([Clause(submission="s1")], [1, 2, 6]),
        ([Clause(submission="s1", low=2)], [2, 6]),
        ([Clause(submission="none")], []),
        ([Clause(group="blue"), Clause(user="bob"), Clause(low=1, high=1)], [1, 3, 4, 5]),
        ([Clause(host="host2", state=State.FAILED), Clause(group="none")], [5]),
        ([Clause(group_prefix="r")], [1, 2, 5, 6]),
        ([Clause(group_prefix="re", user="bob")], [5]),
        ([Clause(group_prefix="ed"), Clause(group_prefix="%")], []),
        ([Clause(group="red", group_prefix="b")], []),
        ([Clause(cmd_text="CHO 3"), Clause(cmd_text="o 6")], [3, 6]),
        ([Clause(cmd_text="%"), Clause(cmd_text="o_")], []),
        ([Clause(exits=(2, 3))], [2]),
        ([Clause(exits=(0, 255), state=State.FAILED)], [2, 5]),
        ([Clause(exits=(4, 255))], []),
        ([Clause(before=1000.25)], []),
        ([Clause(before=1000.5)], [1, 3, 4, 6]),
        ([Clause(before=2001, state=State.FAILED)], [2]),
    ],
)
def test_clauses_find_count_and_tally_the_same_jobs(store, clauses, ids):
    some_groups(store)
    assert store.find(clauses, above=0, limit=100) == ids
    assert store.find(clauses, above=2, limit=2) == [n for n in ids if n > 2][:2]
    assert store.count(clauses) == len(ids)
    expected: dict[tuple[str, int], int] = {}
    for job in store.jobs(ids):
        expected[job.group, job.state] = expected.get((job.group, job.state), 0) + 1
    assert store.tally(clauses) == expected


def test_text_is_found_in_the_words_of_commands(store):
    commands = [["sh", "-c", 'echo "a\\b"\n', "x,[y]"], 'echo "a', "\x01[echo", ["echo", "a"]]
    made = an_add(1, 2, 3, 4)
    made.jobs = [job_row(n, cmd=command_to_text(each)) for n, each in enumerate(commands, 1)]
    store.commit(made)
    for text, ids in {
        "SH -c": [1], 'echo "A': [1, 2], "a\\b": [1], '"\n': [1], "x,[": [1], "[": [1, 3], ",": [1], "echo a": [4],
        '"': [1, 2], "\x01": [3], "o": [1, 2, 3, 4], "y] ": [], "c echo": [1], "\\n": [],
    }.items():  # fmt: skip
        assert store.find([Clause(cmd_text=text)], above=0, limit=9) == ids, text


def test_jobs_are_found_by_name_and_by_its_beginning(store):
    made = an_add(1, 2, 3, 4)
    spec = msgspec.json.decode(SPEC)
    named = [spec, {**spec, "name": "blast"}, {**spec, "name": "blast2"}, {**spec, "name": "x\nblast"}]
    made.specs = [SpecRow(n, msgspec.json.encode(each).decode()) for n, each in enumerate(named, 1)]
    made.jobs = [job_row(n, spec_id=n) for n in (1, 2, 3, 4)]
    store.commit(made)
    for clause, ids in [
        (Clause(name="blast"), [2]),
        (Clause(name_prefix="bla"), [2, 3]),
        (Clause(name_prefix="%"), []),
        (Clause(name="blast2", name_prefix="bl"), [3]),
        (Clause(name="none"), []),
    ]:
        assert store.find([clause], above=0, limit=9) == ids


def test_jobs_of_pipelines_are_found_by_stage_and_by_element(store):
    made = an_add(1, 2, 3, 4)
    spec = msgspec.json.decode(SPEC)
    named = [{**spec, "name": "build"}, {**spec, "name": "build a b"}, {**spec, "name": "build2"}]
    made.specs = [SpecRow(n, msgspec.json.encode(each).decode()) for n, each in enumerate(named, 1)]
    made.jobs = [
        job_row(1, spec_id=1, pipeline_element="a b"),
        job_row(2, spec_id=1, pipeline_element="lib/é%.bst"),
        job_row(3, spec_id=2),
        job_row(4, spec_id=3, pipeline_element="a b"),
    ]
    store.commit(made)
    for clause, ids in [
        (Clause(name="build"), [1, 2]),
        (Clause(name="build a b"), [1, 3]),
        (Clause(name="build lib/é%.bst"), [2]),
        (Clause(name="build a"), []),
        (Clause(name_prefix="build"), [1, 2, 3, 4]),
        (Clause(name_prefix="build "), [1, 2, 3]),
        (Clause(name_prefix="build a"), [1, 3]),
        (Clause(name_prefix="build2 a"), [4]),
        (Clause(name="build lib/é%.bst", name_prefix="build l"), [2]),
        (Clause(name="lib/é%.bst"), []),
    ]:
        assert store.find([clause], above=0, limit=9) == ids, clause
    assert list(store.ordered([Clause()], Order(by="id"), search="LIB/é%", limit=9)) == [2]
    assert store.count([Clause()], search="a b", named=[2]) == 3
    assert [each.pipeline_element for each in store.jobs([1, 2, 3])] == ["a b", "lib/é%.bst", None]


def test_jobs_are_found_by_queue_and_project(store):
    made = an_add(1, 2, 3)
    spec = msgspec.json.decode(SPEC)
    others = [{**spec, "queue": "night", "project": "p"}, {**spec, "queue": "night"}]
    made.specs = [SpecRow(n, msgspec.json.encode(each).decode()) for n, each in enumerate([spec, *others], 1)]
    made.jobs = [job_row(n, spec_id=n) for n in (1, 2, 3)]
    store.commit(made)

    def find(*clauses):
        return store.find(list(clauses), above=0, limit=9)

    assert find(Clause(queue="night")) == [2, 3]
    assert find(Clause(queue="default")) == [1]
    assert find(Clause(queue="night", project="p")) == [2]
    assert find(Clause(project="p"), Clause(low=1, high=1)) == [1, 2]
    assert find(Clause(queue="night", state=State.READY, low=3, high=9)) == [3]
    assert find(Clause(queue="' OR 1"), Clause(project="none")) == []
    assert store.count([Clause(queue="night")]) == 2


def test_jobs_are_found_by_the_pool_that_they_name_or_were_in(store):
    made = an_add(1, 2, 3, 4, 5)
    spec = msgspec.json.decode(SPEC)
    made.specs = [
        SpecRow(n, msgspec.json.encode(each).decode()) for n, each in [(1, spec), (2, {**spec, "pool": "lab"})]
    ]
    made.jobs = [job_row(n, spec_id=2 if n == 1 else 1) for n in range(1, 6)]
    far = "rota-0123abcd-{}-0123456789abcdef"
    hosts = {2: far.format("lab"), 3: far.format("lab-2"), 4: "n1"}
    made.attempts = [attempt_row(job, host=host) for job, host in hosts.items()]
    made.job_states = {job: state_row(job, State.RUNNING, attempt=1) for job in hosts}
    store.commit(made)

    def find(pool, *hosts):
        return store.find([Clause(pool=pool, pool_hosts=hosts)], above=0, limit=9)

    assert find("lab") == [1, 2]
    assert find("lab-2") == [3]
    assert find("nodes", "n1", "n2") == [4]
    assert find("nodes") == find("*") == find("[a-z]") == []
    assert store.count([Clause(pool="lab")]) == 2


def test_more_clauses_than_a_statement_can_hold_are_no_limit(store):
    some_groups(store)
    many = [Clause(group="red", low=n, high=n) for n in range(1, 1001)] + [Clause(low=3, high=3)]
    assert store.find(many, above=0, limit=10) == [1, 2, 3, 5, 6]
    assert store.count(many) == 5
    ranges = [Clause(low=n, high=n) for n in range(1, 5000, 2)]
    assert store.find(ranges, above=0, limit=10) == [1, 3, 5]


def test_an_upload_is_invisible_until_it_is_sealed(store):
    store.commit(an_add(1))
    store.commit(an_add(2, 4, submission="up", answer=None, group="up"))
    store.commit(an_add(3, submission="s2"))
    store.commit(changes(jobs=[job_row(5, submission="up", group="up")]))
    assert store.find(ALL, above=0, limit=9) == [1, 3]
    assert store.find([Clause(submission="up"), Clause(group="up")], above=0, limit=9) == []
    assert store.count(ALL) == 2
    assert store.tally(ALL) == {("default", State.READY): 2}
    assert store.known_keys("ann", [key_of(2), key_of(3)]) == {key_of(3): (3, State.READY)}
    assert [job.id for job in store.jobs([1, 2, 3, 4, 5])] == [1, 3]
    store.commit(changes(submissions=[("up", "ann", 9.0, 3, "{}")]))
    assert store.find(ALL, above=0, limit=9) == [1, 2, 3, 4, 5]
    assert store.find([Clause(submission="up")], above=0, limit=9) == [2, 4, 5]
    assert store.known_keys("ann", [key_of(2)]) == {key_of(2): (2, State.READY)}
    assert store.last_submission("ann").id == "s2"


def test_uploads_that_were_never_sealed_are_gone_after_a_restart(store, reopen):
    store.commit(an_add(1))
    store.commit(an_add(2, 5, submission="up", answer=None))
    store.commit(an_add(3, submission="other", answer=None))
    store.commit(an_add(4, submission="s2"))
    again = reopen(store)
    snapshot = again.load()
    assert [job.id for job in snapshot.jobs] == [1, 4]
    assert snapshot.outcomes == bytes([255, 0, 255, 255, 0, 255])
    assert snapshot.next_job == 6
    assert again.submission("up") is None
    assert again.load() == snapshot


def test_a_sealed_submission_stays_sealed(store):
    store.commit(an_add(1, answer="{}"))
    store.commit(changes(submissions=[("s1", "ann", 1000.0, 1, None)]))
    assert store.submission("s1").answer == "{}"


def test_what_calls_returned_is_kept_by_attempt_and_goes_with_the_job(store, reopen):
    store.commit(an_add(1, 2, 3))
    store.commit(
        changes(attempts=[attempt_row(n) for n in (1, 2)], returned=[ReturnedRow(1, 1, '["a \\u0000 ä"]')])
    )
    store.commit(changes(returned=[ReturnedRow(2, 1, "[1]"), ReturnedRow(2, 1, "[2]")]))
    store.commit(changes(attempts=[attempt_row(2, 2)], returned=[ReturnedRow(2, 2, "[3]")]))
    store = reopen(store)
    assert store.returned([1, 2, 3, 77]) == {1: (1, '["a \\u0000 ä"]'), 2: (2, "[3]")}
    store.commit(changes(removed=[2]))
    assert store.returned([1, 2]) == {1: (1, '["a \\u0000 ä"]')}


def test_removed_jobs_leave_nothing_and_their_ids_are_not_given_out_again(store, reopen):
    store.commit(a_world())
    store.commit(changes(events=[(1.0, 1, 1, "kept", "no"), (1.0, 3, 0, "gone", "yes")]))
    store.commit(changes(removed=[1, 3, 77]))
    assert store.find(ALL, above=0, limit=9) == [2]
    assert store.attempts(1) == []
    assert store.events(1) == store.events(3) == []
    assert store.segments_in_use() == set()
    assert store.known_keys("ann", [key_of(1)]) == {}
    snapshot = reopen(store).load()
    assert snapshot.next_job == 4
    assert snapshot.outcomes == bytes([255, 255, 0, 255])


def test_events_are_told_oldest_first(store):
    store.commit(an_add(1))
    store.commit(
        changes(events=[(5.0, 1, 0, "a", "first"), (4.0, 1, 0, "b", "the clock went back"), (5.0, 2, 0, "c", "")])
    )
    assert [event.kind for event in store.events(1)] == ["a", "b"]


def test_tallies_add_up_and_facts_are_replaced(store):
    store.commit(changes(tally={("g", 12): 2, ("g", 13): 1}, meta={"a": "1", "b": "1"}))
    store.commit(changes(tally={("g", 12): 3, ("g", 13): -1}, meta={"a": "2"}))
    snapshot = store.load()
    assert snapshot.tally == {("g", 12): 5, ("g", 13): 0}
    assert snapshot.meta == {"a": "2", "b": "1"}


def test_a_runner_that_joins_again_replaces_its_row(store):
    store.commit(a_world())
    store.commit(changes(runners=[("r1", "host1", "boot-2", "42", None, 2000.0), ("idle", "h", "b", 1, 2, 3.0)]))
    assert store.load().runners == [RunnerRow("r1", "host1", "boot-2", "42", None, 2000.0)]


def test_environments_are_bytes(store):
    store.commit(a_world())
    assert store.env(1) == b"A=1\0B=\xff"
    with pytest.raises(NotFound):
        store.env(2)


def test_a_batch_that_contradicts_the_store_is_refused_whole(store):
    store.commit(an_add(1))
    with pytest.raises(Bug):
        store.commit(an_add(2, 1, submission="s2"))
    with pytest.raises(Bug):
        store.commit(changes(jobs=[job_row(5, submission="nobody added this")]))
    assert store.submission("s2") is None
    assert store.find(ALL, above=0, limit=9) == [1]
    store.commit(an_add(2, submission="s2"))


def test_an_empty_batch_writes_nothing(store):
    store.commit(changes())
    assert store.load().next_job == 1


def test_closing_twice_is_safe(store):
    store.close()
    store.close()
