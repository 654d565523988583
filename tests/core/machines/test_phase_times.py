"""Waiting, provisioning, execution and hold add up to the whole time of a job, whatever happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.core.machines.phase_times import phase_times
from rota.plan.placement.given import Given, Hold, Provision
from rota.plan.size import Size
from tests.dose import dose

_STEP = st.integers(0, 10_000)


@dose(200)
@given(steps=st.lists(_STEP, min_size=6, max_size=6), reached=st.integers(0, 6), earlier=_STEP, kept=st.booleans())
def test_the_phases_of_a_job_add_up_to_its_whole_time(
    steps: list[int], reached: int, earlier: int, kept: bool
) -> None:
    """A job goes through its moments in order; `reached` of them are over, and it is now some time after that."""
    moments = [1000.0 + earlier]
    for step in steps:
        moments.append(moments[-1] + step)
    asked, began, ready, started, ended, free = (
        at if number < reached else None for number, at in enumerate(moments[1:])
    )
    now = moments[-1]
    made = () if asked is None else (Provision("h1", asked, 1, began_at=began, ended_at=ready),)
    hold = Hold(ended, ended + 1e6, free) if ended is not None and kept else None
    what = Given(Size(), provisions=made, hold=hold, provisioned_s=earlier / 2) if asked is not None else None
    over = ended is not None
    found = phase_times(submitted_at=1000.0, started_at=started, ended_at=ended, over=over, given=what, now=now)
    end = now if ended is None else ended
    held = 0.0 if hold is None or ended is None else (now if free is None else free) - ended
    whole = found.wait_s + found.provision_s + found.execute_s + found.hold_s
    assert abs(whole - (end - 1000.0 + held)) < 1e-6
    assert min(found.wait_s, found.provision_s, found.execute_s, found.hold_s) >= 0.0
    assert found.hold_s == held
    if ready is not None and asked is not None:
        assert found.provision_s == earlier / 2 + ready - asked
    if ended is not None and started is not None:
        assert found.execute_s == ended - started
