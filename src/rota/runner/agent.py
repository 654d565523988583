"""The runner's loop. One thread, one `epoll`. It never decides what should run."""

from __future__ import annotations

import signal
import time

from rota.runner.components import Components
from rota.runner.log import say, say_exception
from rota.runner.pending_signals import PendingSignals


class Agent(Components):
    """A runner process. `run` returns when it is time to exit."""

    @property
    def failed(self) -> bool:
        """Did the manager refuse this runner?"""
        return self.loop.failed

    def run(self) -> None:
        """Run until it is time to exit."""
        self._signals = PendingSignals(self.loop.poll)
        say(f"runner {self.identity.id} begins")
        failures = 0
        while not self.loop.done:
            try:
                self._turn()
                failures = 0
            except Exception:
                if self.launchers.fenced:
                    say("another agent has taken the place of this one")
                    return
                # An error in handling one event must not end other jobs.
                say_exception("unexpected")
                failures += 1
                if failures > 10:
                    time.sleep(0.2)
        say(f"runner {self.identity.id} ends")
        self._close()

    def _turn(self) -> None:
        loop, contact, tasks = self.loop, self._contact, self.tasks
        wait = min(loop.due_at, contact.report_at) - time.monotonic()
        signalled = told = False
        for fd, events in loop.poll.poll(wait if wait > 0 else 0, 256):
            if fd == self._signals.fd:
                signalled = True
            elif fd in self.launchers.by_fd:
                self._streams.received(self.launchers.by_fd[fd])
                told = True
            elif fd == self._connection.fd:
                loop.now = time.monotonic()
                contact.readable()
            elif fd in self._conduits.by_fd:
                self._conduits.ready(fd, events)
            else:
                self._streams.readable(fd)
        loop.now = now = time.monotonic()
        while loop.later:
            loop.later.pop(0)()
        if self._pool.resumed:
            self._streams.catch_up()
        if signalled:
            self._on_signals()
        elif told:
            self._reaper.reap()
        if self._seating.fillable:
            self._starter.fill()
        if self._ahead.wanting:
            self._ahead.fill()
        if tasks.begun or tasks.quiet or self._outbox:
            contact.consider(now)
        if now >= loop.due_at:
            loop.due_at = now + 60.0
            for tick in self.ticks:
                tick(now)
        if tasks.changed or tasks.released:
            self._keeping.flush()
        self.launchers.flush()
        self.launchers.look()

    def _on_signals(self) -> None:
        for number in self._signals.read():
            if number == signal.SIGTERM:
                self._leaving.terminate()
            elif number == signal.SIGUSR1:
                self._leaving.hand_over()
        self._reaper.reap()

    def _close(self) -> None:
        self._relay.close()
        self.containment.close()
        self._records.write_up()
        try:
            self._journal.flush()
            self._keeping.flush()
            self.launchers.flush()
            if not self._leaving.handed_over and self._contact.take_leave():
                self.launchers.end()
                self.identity.remove()
        except OSError as error:
            say(f"while leaving: {error}")
