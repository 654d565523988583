"""How far an attempt has come with its behaviours, and its outcome in one word (`ROTA_OUTCOME`). Data only."""

from __future__ import annotations

from rota.core.jobs.outcome import Behaved, Outcome
from rota.runner.output.capture import Capture
from rota.wire.job_structs import RunSpec

STDERR_BYTES = 200  #: recorded of what a behaviour writes to stderr


class BehaviourProgress:
    """How far one attempt has come with its behaviours."""

    __slots__ = ("by", "done", "outcome", "spent", "stderr", "todo", "word")

    def __init__(self, spec: RunSpec, outcome: Outcome, *, by: float | None) -> None:
        self.outcome = outcome  #: of the command
        self.word = outcome_word(outcome, spec)
        ok = self.word == "complete"
        self.todo = list((spec.on_success if ok else spec.on_failure) + spec.on_exit)
        self.done: list[Behaved] = []
        self.stderr = Capture(2 * STDERR_BYTES)  #: of the one that runs now
        self.by = by  #: when all of them must be over, if the job was ended
        self.spent = ""  #: why none of the rest may run


def outcome_word(outcome: Outcome, spec: RunSpec) -> str:
    """`ROTA_OUTCOME`: complete, failed or cancelled."""
    if outcome.reason == "kill_requested":
        return "cancelled"
    if outcome.reason == "walltime" and spec.done_at_walltime:
        return "complete"
    return "complete" if outcome.exit_code == 0 and not outcome.reason else "failed"
