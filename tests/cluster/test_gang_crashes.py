"""Manager or agents killed while a gang is placed, provisioned or released: it is whole or holds nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

import pytest

from tests.cluster.lab import Lab, lab_of

_names = count(1)
#: Seconds after the step begins at which somebody is killed.
_FEW = (0.0, 0.03)
_MANY = tuple(each / 100 for each in range(0, 60, 2))
_STEPS = ("placing", "provisioning", "releasing")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(tmp_path_factory.mktemp("crashes")) as made:
        yield made


@pytest.fixture
def lab(machines: Lab) -> Iterator[Lab]:
    """Three idle machines: n1, n2 and n3."""
    yield machines
    machines.clear()


@pytest.mark.parametrize("step", _STEPS)
def test_a_gang_is_whole_or_holds_nothing_after_the_manager_is_killed(lab: Lab, step: str) -> None:
    for delay_s in _FEW:
        during(lab, step, delay_s, victim="manager")


@pytest.mark.parametrize("step", _STEPS)
def test_a_gang_is_whole_or_holds_nothing_after_an_agent_is_killed(lab: Lab, step: str) -> None:
    during(lab, step, 0.02, victim="agent")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", ["manager", "agent"])
@pytest.mark.parametrize("step", _STEPS)
def test_a_gang_is_whole_or_holds_nothing_after_many_kills(lab: Lab, step: str, victim: str) -> None:
    for delay_s in _MANY:
        during(lab, step, delay_s, victim=victim)


def during(lab: Lab, step: str, delay_s: float, *, victim: str) -> None:
    """Kill somebody so long after a step of a gang has begun; then all of it ends well, or nothing does."""
    name, first, rest = f"gang-{next(_names)}", lab.gate(), lab.gate()
    if step == "placing":
        lab.until(lab.job("n1", gate=first, retries=3), "running")
        lab.gang(name, "n1", "n2", gate=rest, on_member_failure="retry", retries=3)
        first.touch()
    elif step == "provisioning":
        lab.gang(name, "n1", "n2", gate=rest, on_member_failure="retry", retries=3, provision="sleep 0.3")
    else:
        lab.gang(name, "n1", "n2", gate=rest, retries=0)
        lab.wait(lambda: lab.is_whole(name) and lab.gang_now(name).state == "running", "the gang runs")
        lab.kill(lab.gang_now(name).members[0].id)
    time.sleep(delay_s)  # somewhere in the middle of it
    if victim == "manager":
        lab.restart_killed()
    else:
        host = lab.named("n2")
        lab.kill_agent_and_launchers(host)
        lab.start_agent(host)
    if step != "releasing":
        rest.touch()
    states = lab.until_ended(name)
    assert states == (["cancelled", "failed"] if step == "releasing" else ["complete"] * 2)
    lab.until_free()
