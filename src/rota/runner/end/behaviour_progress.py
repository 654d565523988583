"""How far one attempt has come with its behaviours, and the word that they get for its outcome. Data only."""

from __future__ import annotations

from rota.core.jobs.job import Behaved, Outcome
from rota.runner.output.capture import Capture
from rota.wire.orders import RunSpec

STDERR_BYTES = 200  #: of what a behaviour wrote to stderr that are recorded


class BehaviourProgress:
    """How far one attempt has come with its behaviours."""

    __slots__ = ("by", "done", "outcome", "said", "spent", "todo", "word")

    def __init__(self, spec: RunSpec, outcome: Outcome, *, by: float | None) -> None:
        self.outcome = outcome  #: of the command
        self.word = outcome_word(outcome, spec)
        ok = self.word == "complete"
        self.todo = list((spec.on_success if ok else spec.on_failure) + spec.on_exit)
        self.done: list[Behaved] = []
        self.said = Capture(2 * STDERR_BYTES)  #: by the one that runs now, on stderr
        self.by = by  #: when all of them must be over, if the job was ended
        self.spent = ""  #: why no more of them may run


def outcome_word(outcome: Outcome, spec: RunSpec) -> str:
    """`ROTA_OUTCOME`: complete, failed or cancelled."""
    if outcome.reason == "kill_requested":
        return "cancelled"
    if outcome.reason == "walltime" and spec.done_at_walltime:
        return "complete"
    return "complete" if outcome.exit_code == 0 and not outcome.reason else "failed"
