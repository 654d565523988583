"""Dead runners of this machine: settled, reported to the manager, and removed when it has acknowledged them."""

from __future__ import annotations

import msgspec

from rota.runner.contain import fences
from rota.runner.end import settling
from rota.runner.identity import RunnerIdentity, name_of
from rota.runner.launch import launched
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say, say_exception
from rota.runner.report.outbox import plainer, within
from rota.wire.reports import Settle

#: Bytes that calls of functions left, in the one message that settles a runner.
_MOST_BULK = 24 << 20


class DeadRunners:
    """Settled runners that the manager has not acknowledged yet, in the order of their reports."""

    def __init__(self, identity: RunnerIdentity, launchers: Launchers, *, scratch_root: str) -> None:
        self._launchers = launchers
        self._identity = identity
        self._scratch_root = scratch_root
        self._unacked: list[tuple[settling.DeadRunner, Settle]] | None = None  #: None: not looked for yet

    @property
    def unacked(self) -> bool:
        """Is there one that the manager may not know of?"""
        return bool(self._unacked)

    def first(self) -> list[Settle]:
        """What to report before this runner joins. The first call blocks."""
        if self._unacked is None:
            self._unacked = self._settle(hasty=False)
        return [message for _, message in self._unacked]

    def again(self) -> list[Settle]:
        """Try again what failed: a journal may be readable now, or a process may have ended at last."""
        if self._unacked:
            return []  # the manager has not answered to the last ones yet
        self._unacked = self._settle(hasty=True)
        return [message for _, message in self._unacked]

    def acknowledged(self) -> None:
        """The manager has the first report on disk."""
        if self._unacked:
            self._unacked.pop(0)[0].remove()

    def refused(self) -> None:
        """The manager could not decode the first report: simplify it."""
        if self._unacked:
            dead, message = self._unacked[0]
            ended = [plainer(each) for each in message.ended]
            self._unacked[0] = dead, msgspec.structs.replace(message, ended=ended)

    def _settle(self, *, hasty: bool) -> list[tuple[settling.DeadRunner, Settle]]:
        own = self._identity
        if not hasty:
            fences.sweep(name_of(own.host), own=own.id)
        settled: list[tuple[settling.DeadRunner, Settle]] = []
        try:
            found = settling.dead_runners(own.root, own.id, own.machine)
        except OSError:
            say_exception("cannot look for dead runners")
            return settled
        for dead in found:
            if launched.left_alone(dead.directory):
                dead.release()
                continue
            try:
                finished, whole = settling.settle(
                    dead, self._launchers.new, boot_id=own.boot_id, scratch_root=self._scratch_root, hasty=hasty
                )
            except Exception:
                say_exception(f"runner {dead.runner} cannot be settled")
                dead.release()
                continue
            say(f"runner {dead.runner} is dead; {len(finished)} of its attempts ended")
            began = dead.story.began
            rebooted = began is not None and began.boot_id != own.boot_id
            settled.append((dead, Settle(dead.runner, within(finished, _MOST_BULK), whole, rebooted)))
        return settled
