"""The message that has the agent of the deploy host run the provision command of another node."""

from __future__ import annotations

from rota.core.machines.provision_records import SendErrand
from rota.plan.size import Size
from rota.wire import messages as m


def errand_work(effect: SendErrand, ticket: bytes) -> m.Work:
    """It takes nothing of the host, and has nothing of the job but its name: its user sets none of its variables.
    The ticket is in no argument and no variable."""
    order, spec = effect.order, effect.job.spec
    number = -effect.job.spec_id
    size = Size(cpus=0, time_s=effect.limit_s)
    command = m.RunSpec(
        id=number, env=number, cwd="/", user=spec.user, name=spec.name, group=order.about.get("ROTA_GROUP", ""),
        size=size, walltime_s=effect.limit_s, scratch=False, pipefail=False,
    )  # fmt: skip
    grant = m.Grant(order.job, order.attempt, order.token, number, order.command, 0, errand=m.Errand(ticket))
    return m.Work([grant], [m.Seat(order.token, size)], [command], [(number, _variables(effect))])


def _variables(effect: SendErrand) -> bytes:
    order = effect.order
    told = {**order.about, "ROTA_HOOK": "provision_cmd", "ROTA_HOST": order.host, "ROTA_PROVISION": order.what}
    entries = (f"{name}={value}" for name, value in told.items())
    return b"\0".join(entry.replace("\0", "").encode("utf-8", "surrogateescape") for entry in entries)
