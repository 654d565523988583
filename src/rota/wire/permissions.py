"""Roles and permissions: the one table that says which role may send which message."""

from __future__ import annotations

from typing import Final

from rota.wire import messages as m
from rota.wire.job_keys import KEY

USER: Final = "user"
ADMIN: Final = "admin"
RUNNER: Final = "runner"
GATEWAY: Final = "gateway"  #: serves browsers: it subscribes to changes and redeems login codes
MACHINE: Final = "machine"  #: has the ticket of a machine that is provisioned; it may say that this is ready
ROLES: Final = (USER, ADMIN, RUNNER, GATEWAY)

_CHANNELS: Final = (
    *(m.OpenChannel, m.ChannelData, m.ChannelCredit),
    *(m.ChannelResize, m.ChannelSignal, m.ChannelEnd),
)
_JOBS: Final = (
    *(m.Add, m.Drop, m.ListJobs, m.Status, m.Show, m.Why, m.Act, m.Modify, m.Watch, m.Taken, m.ReadOutput, m.Stop),
    *(m.ListLimits, m.GetSite, m.Learned, m.PlanFor, m.Gantt, m.ListPage, m.GetGraph, m.Feed, m.ChangeWalltime),
    *(m.GetAccounts, m.GetUsage, m.GetHistory, m.ListNodes, m.GetNode, m.ListQuotas, m.GetShares),
    *(m.GetPools, m.GetMachineUsage, m.ReadProvision, m.GetGang),
    *(m.SetMachine, m.ReserveMachine, m.ReturnMachine),
    *(m.RunPipeline, m.WatchPipeline, m.ShowPipeline, m.ListPipelines, m.ActPipeline),
    *(m.GetPipelinePicture, m.ListElements, m.GetElementGraph, m.GetLayers),
    m.GetResults,
    *_CHANNELS,
)

#: Which messages each role may send once it has been welcomed. What is not here is refused.
MAY_SEND: Final[dict[str, frozenset[type[m.Message]]]] = {
    USER: frozenset({*_JOBS, m.Control}),
    ADMIN: frozenset({*_JOBS, m.SetLimit, m.SetSite, m.NodeReady, m.Control}),
    RUNNER: frozenset({m.Join, m.Report, m.Settle, m.Idle, m.Live, m.LiveEnd, m.Full, m.Piece, m.Relayed}),
    GATEWAY: frozenset({m.Feed, m.Stop, m.Control}),
    KEY: frozenset(_CHANNELS),
    MACHINE: frozenset({m.NodeReady}),
}
#: The verbs of `Control` that a role may use; None: all, and the manager refuses unknown ones.
MAY_CONTROL: Final[dict[str, frozenset[str] | None]] = {
    USER: frozenset({"status", "doctor", "ping", "metrics", "ui-link", "ui-leave"}),
    ADMIN: None,
    RUNNER: frozenset(),
    GATEWAY: frozenset({"ping", "ui-redeem", "token-check"}),
    KEY: frozenset(),
    MACHINE: frozenset(),
}
#: What the holder of a token may ask to be in `Hello`.
MAY_BE: Final[dict[str, frozenset[str]]] = {
    USER: frozenset({USER}),
    ADMIN: frozenset({ADMIN, USER}),
    RUNNER: frozenset({RUNNER}),
    GATEWAY: frozenset({GATEWAY}),
}


def allowed(role: str, message: m.Message) -> bool:
    """May a peer that was welcomed as `role` send this message?"""
    if type(message) not in MAY_SEND.get(role, ()):
        return False
    if isinstance(message, m.Control):
        verbs = MAY_CONTROL[role]
        return verbs is None or message.verb in verbs
    return not (isinstance(message, m.Learned) and message.forget and role != ADMIN)


def may_be(held: str, wanted: str) -> bool:
    """May the holder of a token of role `held` be welcomed as `wanted`?"""
    return wanted in MAY_BE.get(held, ())
