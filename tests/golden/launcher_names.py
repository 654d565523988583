"""What the structs between an agent and its launchers are called in golden files."""

from __future__ import annotations

import msgspec

from rota.launcher import journal
from rota.launcher import messages as m
from rota.runner.launch.notes import BehavioursNote, HookNote, TaskNote

FROM_AGENT: dict[str, type[msgspec.Struct]] = {
    "Attach": m.Attach,
    "ClosePipes": m.ClosePipes,
    "CountChildren": m.CountChildren,
    "Hold": m.Hold,
    "Leave": m.Leave,
    "Limit": m.Limit,
    "MakePipes": m.MakePipes,
    "Note": m.Note,
    "Obey": m.Obey,
    "Release": m.Release,
    "Send": m.Send,
    "Start": m.Start,
    "Took": m.Took,
    "Withdraw": m.Withdraw,
}
FROM_LAUNCHER: dict[str, type[msgspec.Struct]] = {
    "Begun": m.Begun,
    "Children": m.Children,
    "Done": m.Done,
    "Dropped": m.Dropped,
    "Exited": m.Exited,
    "HeldPipes": m.HeldPipes,
    "HeldTask": m.HeldTask,
    "NotStarted": m.NotStarted,
    "PipesMade": m.PipesMade,
    "Replaced": m.Replaced,
    "Started": m.Started,
    "Unwelcome": m.Unwelcome,
    "Welcome": m.Welcome,
    "Withdrawn": m.Withdrawn,
    "Wrote": m.Wrote,
}
LAUNCHER_RECORDS: dict[str, type[msgspec.Struct]] = {
    "Began": journal.Began,
    "Exited": journal.Exited,
    "Intent": journal.Intent,
    "Released": journal.Released,
    "Spawned": journal.Spawned,
    "Void": journal.Void,
}
LAUNCHER_PARTS: dict[str, type[msgspec.Struct]] = {
    "BehavioursNote": BehavioursNote,
    "HeldProcess": m.HeldProcess,
    "HookNote": HookNote,
    "Spent": m.Spent,
    "TaskNote": TaskNote,
    "ToAgent": m.ToAgent,
    "ToFile": m.ToFile,
    "ToNothing": m.ToNothing,
    "ToPipes": m.ToPipes,
    "ToTerminal": m.ToTerminal,
}
LAUNCHER_TABLES = {
    "from agents to launchers": FROM_AGENT,
    "from launchers to agents": FROM_LAUNCHER,
    "records of launchers": LAUNCHER_RECORDS,
    "parts for launchers": LAUNCHER_PARTS,
}
