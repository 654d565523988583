"""Rules, applied to specifications as they are taken in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core.accounts.amounts import asked_of
from rota.core.admission.admission import Admission
from rota.core.admission.modification import respecify
from rota.core.jobs.job import Job, Spec
from rota.core.states import State
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.dispatch.planning import Planning
from rota.plan.policy.limits import Limits
from rota.plan.size import Size
from tests.core.admission.groups import NOBODYS_GROUPS, KnownGroups

HOUR = 3600.0
PLAIN = Spec(user="ann", cwd="/home/ann", env=1, queue="")


def spec(**fields: Any) -> Spec:
    return msgspec.structs.replace(PLAIN, **fields)


def admission(*rules: dict[str, Any], **queues: dict[str, Any]) -> Admission:
    world = World(Planning())
    world.site = {
        "rule": {f"r{at}": {"rank": 1000 + at, **rule} for at, rule in enumerate(rules)},
        "queue": queues,
    }
    return Admission(world, KnownGroups(ann=("staff",)))


def test_a_plain_job_gets_the_default_queue_and_nothing_else() -> None:
    admitted = admission().admit(PLAIN)
    assert admitted.spec == spec(queue="default")
    assert admitted.notices == ()


def test_equal_specifications_are_judged_once_until_the_site_changes() -> None:
    world = World(Planning())
    rules = Admission(world, NOBODYS_GROUPS)
    first = rules.admit(PLAIN)
    assert rules.admit(spec()) is first
    world.site = {"rule": {"mine": {"rank": 1, "set": {"priority": 7}}}}
    world.site_version += 1
    assert rules.admit(PLAIN).spec.priority == 7


def test_what_was_asked_for_stays_known_whatever_rules_make_of_it() -> None:
    rules = admission(
        {"match": {"user": "ann"}, "cap": {"mem": "1G"}}, {"match": {"user": "ann"}, "default": {"walltime": "2h"}}
    )
    asked = spec(size=Size(mem=8 << 30), given=("mem",))
    found = rules.admit(asked).spec
    assert (found.size.mem, found.walltime_s) == (1 << 30, 2 * HOUR)
    assert asked_of(found) == (100, 8 << 30, None, None, None)
    again = rules.admit(found).spec
    assert asked_of(again) == asked_of(found), "also when it is judged once more"
    assert rules.admit(spec(size=Size(mem=1 << 20), given=("mem",), walltime_s=60.0)).spec.wrote is None


def test_what_is_modified_is_asked_for_and_what_rules_made_of_the_rest_is_not() -> None:
    rules = admission({"match": {"user": "ann"}, "cap": {"mem": "1G", "walltime": "1h"}})
    found = rules.admit(spec(size=Size(mem=8 << 30), given=("mem",), walltime_s=2 * HOUR)).spec
    assert (found.size.mem, found.walltime_s) == (1 << 30, HOUR)
    changed = respecify(found, {"time_s": 60.0}, Limits(), {}, rules).spec
    assert (changed.size.mem, changed.walltime_s, changed.size.time_s) == (1 << 30, HOUR, 60.0)
    assert asked_of(changed) == (100, 8 << 30, None, 60.0, 2 * HOUR)
    less = respecify(changed, {"mem": 1 << 20, "walltime_s": 30.0}, Limits(), {}, rules).spec
    assert asked_of(less) == (100, 1 << 20, None, 60.0, 30.0)
    assert less.wrote is None, "the rules change nothing any more"


def test_the_walltime_that_a_queue_gives_to_a_request_was_not_asked_for() -> None:
    rules = admission(long={"walltime_s": 7200.0})
    found = rules.admit(spec(queue="long", request=("/nodes=2/core=3", "core=6,walltime=1h"))).spec
    assert found.wrote is not None
    assert (asked_of(found).walltime_s, asked_of(found).cpus) == (None, 600)


RULES: list[dict[str, Any]] = [
    {"match": {"user": "ann"}, "set": {"priority": 3}},
    {"match": {"uses": "!nodes"}, "set": {"priority": 4}},
    {"match": {"uses": ["gpu", "!nodes"]}, "set": {"priority": 5}},
    {"match": {"type": "!besteffort"}, "set": {"priority": 6}},
    {"match": {"type": "container"}, "set": {"priority": 7}},
    {"match": {"reservation": False}, "cap": {"walltime": "1h"}},
    {"match": {"system": False}, "default": {"walltime": "2h"}},
    {"match": {"interactive": False}, "set": {"retries": 5}},
    {"match": {"reservation": True}, "reject": "x"},
    {"default": {"queue": "night"}},
    {"match": {"queue": "night"}, "default": {"queue": "admin"}},
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("queue", ["", "default", "night", "timed", "besteffort"])
def test_the_short_way_for_plain_jobs_leads_where_the_long_one_does(rule: dict[str, Any], queue: str) -> None:
    # What is first decides, so the rule comes before those that are built in.
    world = World(Planning())
    world.site = {"rule": {"mine": {"rank": 1, **rule}}, "queue": {"night": {}, "timed": {"walltime_s": 60}}}
    book = Admission(world, NOBODYS_GROUPS).rulebook()
    asked = spec(queue=queue)
    short = book.admit(asked)
    book._plain = {}
    assert book.admit(asked) == short


def test_who_asks_for_nodes_gets_two_hours_unless_somebody_says_otherwise() -> None:
    rules = admission(short={"walltime_s": 600})
    assert rules.admit(spec(request=("nodes=2",))).spec.walltime_s == 2 * HOUR
    assert rules.admit(spec(request=("nodes=2,walltime=5h",))).spec.walltime_s is None
    assert rules.admit(spec(request=("nodes=2",), walltime_s=60.0)).spec.walltime_s == 60.0
    assert rules.admit(spec(request=("nodes=2",), queue="short")).spec.walltime_s == 600.0
    assert rules.admit(spec(request=("core=2",))).spec.walltime_s is None


def test_a_cap_reaches_into_the_request_and_the_user_is_told() -> None:
    admitted = admission({"cap": {"walltime": "12h"}}).admit(
        spec(
            request=("{gpu='YES, walltime=9'}/nodes=2,walltime=20:0", "core=1,walltime=3h", "core=2"),
            walltime_s=9.0,
        )
    )
    first, second, third = admitted.spec.request
    assert first.endswith(",walltime=12h")
    assert "YES, walltime=9" in first
    assert (second, third, admitted.spec.walltime_s) == ("core=1,walltime=3h", "core=2", 9.0)
    assert admitted.notices == ("walltime 20h is more than allowed; it is 12h (rule 'r0')",)


def test_sizes_are_capped_and_set() -> None:
    rules = admission(
        {"cap": {"cpus": 4, "mem": "2G"}}, {"set": {"time": "10m", "retries": 0, "type": "idempotent"}}
    )
    found = rules.admit(spec(size=Size(cpus=800, mem=8 << 30, time_s=60.0), given=("mem",), retries=3)).spec
    assert found.size == Size(cpus=400, mem=2 << 30, time_s=600.0)
    assert (found.retries, found.types, found.given) == (0, ("idempotent",), ("mem", "time"))


def test_a_request_says_itself_how_many_cores_it_takes() -> None:
    rules = admission({"set": {"cpus": 4, "gpus": 1}}, {"cap": {"cpus": 0.5}})
    assert rules.admit(spec(request=("core=2",))).spec == spec(request=("core=2",), queue="default")


def test_types_that_a_rule_adds_must_go_with_those_of_the_job() -> None:
    rules = admission({"set": {"type": "besteffort"}})
    assert rules.admit(spec(types=("idempotent",))).spec.types == ("besteffort", "idempotent"), "in one order"
    rules = admission({"set": {"type": "noop"}})
    with pytest.raises(BadInput, match="field 'type'"):
        rules.admit(spec(types=("deploy",)))


def test_a_refusal_names_the_rule_and_its_message() -> None:
    with pytest.raises(BadInput, match=r"give a project \(rule 'r0'\)"):
        admission({"match": {"project": ""}, "reject": "give a project"}).admit(PLAIN)


def test_a_queue_that_there_is_not_is_refused_with_those_there_are() -> None:
    rules = admission(night={})
    assert rules.admit(spec(queue="night")).spec.queue == "night"
    with pytest.raises(BadInput, match="there is no queue 'day'; use one of admin, default, night, besteffort"):
        rules.admit(spec(queue="day"))
    with pytest.raises(BadInput, match="there is no queue 'gone'"):
        admission({"set": {"queue": "gone"}}).admit(PLAIN)


def test_rules_see_besteffort_as_a_queue_and_as_a_type_however_it_was_said() -> None:
    by_queue = admission({"match": {"queue": "besteffort"}, "set": {"priority": 1}})
    by_type = admission({"match": {"type": "besteffort"}, "set": {"priority": 1}})
    for asked in (spec(types=("besteffort",)), spec(queue="besteffort")):
        for rules in (by_queue, by_type):
            found = rules.admit(asked).spec
            assert (found.queue, found.types, found.priority) == ("besteffort", ("besteffort",), 1)


def test_a_rule_that_makes_a_job_besteffort_makes_it_so_by_both() -> None:
    found = admission({"set": {"type": "besteffort"}}).admit(PLAIN).spec
    assert (found.queue, found.types) == ("besteffort", ("besteffort",))


def test_a_request_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(BadInput, match="field 'request'"):
        admission().admit(spec(request=("nodes=",)))


def test_waiting_reservations_of_a_user_are_counted() -> None:
    world = World(Planning())
    rules = Admission(world, NOBODYS_GROUPS)
    asked = rules.admit(spec(at=2e9)).spec
    rules.refuse_reservation(asked, 2)
    with pytest.raises(BadInput, match="at most 2 reservations"):
        rules.refuse_reservation(asked, 3)
    for id, state in enumerate((State.READY, State.RUNNING, State.COMPLETE), 1):
        world.jobs[id] = Job(
            id=id, key=str(id), spec=asked, spec_id=1, cmd="x", state=state, submission="s", submitted_at=0.0
        )
    assert (rules.waiting_reservations("ann"), rules.waiting_reservations("bob")) == (1, 0)


# ------------------------------------------------------------------ who gave it, and from which groups


def test_only_an_administrator_or_a_rule_takes_a_job_out_of_the_quotas() -> None:
    exempt = spec(types=("no_quotas",))
    rules = admission({"match": {"project": "ops"}, "set": {"type": "no_quotas"}})
    with pytest.raises(BadInput, match="only an administrator or a rule may give 'no_quotas'"):
        rules.admit(exempt)
    assert rules.admit(exempt, admin=True).spec.types == ("no_quotas",)
    with pytest.raises(BadInput, match="only an administrator"):
        rules.admit(exempt)  # what an administrator was told is not told others
    given = rules.admit(spec(project="ops")).spec
    assert given.types == ("no_quotas",)
    changed = msgspec.structs.replace(given, priority=5)
    assert rules.admit(changed, before=given).spec.types == ("no_quotas",)


def test_a_rule_matches_the_unix_groups_of_the_user() -> None:
    rules = admission({"match": {"unix_group": "staff"}, "set": {"priority": 9}})
    assert rules.admit(spec()).spec.priority == 9
    assert rules.admit(spec(user="a stranger")).spec.priority == 0


def test_groups_are_asked_for_only_where_a_rule_matches_them() -> None:
    assert admission().to_look_up("ann", "bob") == []
    rules = admission({"match": {"unix_group": "staff"}, "set": {"priority": 9}})
    first, _second = rules.to_look_up("ann", "bob")
    first()
    assert len(rules.to_look_up("ann", "bob")) == 1


def test_a_rule_binds_a_queue_to_nodes_beside_what_its_jobs_say() -> None:
    rules = admission({"match": {"queue": "night"}, "set": {"where": "gpu = yes"}}, night={})
    assert rules.admit(spec(queue="night")).spec.where == "gpu=yes"
    own = rules.admit(spec(queue="night", where="mem > 5 or host='a'")).spec
    assert own.where == "(mem>5 or host='a') and gpu=yes"
    assert rules.admit(own).spec == own, "when it is modified nothing is added twice"
    assert rules.admit(spec(where="mem  >  5")).spec.where == "mem  >  5", "what nobody changes stays as written"


def test_types_of_the_site_are_matched_and_given() -> None:
    rules = admission(
        {"match": {"type": "type:yop"}, "set": {"priority": 7}},
        {"match": {"user": "bob"}, "set": {"type": ["type:late", "type:yop"]}},
    )
    assert rules.admit(spec(types=("type:yop=3",))).spec.priority == 7
    assert rules.admit(spec(user="bob", types=("noop",))).spec.types == ("noop", "type:late", "type:yop")
