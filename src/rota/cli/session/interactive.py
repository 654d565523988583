"""`rota run -I`: a job that runs in this terminal, from waiting for its start to its exit code."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rota.cli.command import Invocation
from rota.cli.render.printing import print_err

if TYPE_CHECKING:
    from rota.cli.session.submission import Submission
    from rota.client.blocking import Client
    from rota.wire import client_messages as m

_BEGUN: Final = ("running", "finishing", "suspended", "lost")
_ENDED: Final = ("complete", "failed", "cancelled")
_FIRST_LOOK_S: Final = 0.05
_LOOK_S: Final = 0.5
#: How often the reason for waiting is asked for.
_TELL_S: Final = 1.0


def run_interactive(
    call: Invocation, *, file: str | None, command: list[str] | None, fields: dict[str, Any], may_start: bool
) -> int:
    """Submit the job, wait for its start and attach the terminal; returns its exit code."""
    from rota.cli.session.submission import Submission
    from rota.errors import BadInput

    if file is not None:
        raise BadInput("-I runs one command", hint="give it after --, or nothing for a shell")
    if call.json:
        raise BadInput("a terminal is not one JSON value", hint="leave --json out")
    for name in ("retries", "array", "array_file", "stdout", "stderr"):
        if fields.get(name):
            flag = name.replace("_", "-")
            raise BadInput(f"--{flag} has no meaning for an interactive job", hint=f"leave --{flag} out")
    if not command and not os.isatty(0):
        raise BadInput("this is not a terminal", hint="for a command without one use 'rota run -- CMD'")
    jobs = Submission(
        call,
        file=None,
        command=command or [own_shell()],
        fields=fields,
        retries=0,
        may_start=may_start,
        idle=True,
        interactive=True,
    )
    return Interactive(call, jobs).status()


def own_shell() -> str:
    """The user's shell."""
    shell = os.environ.get("SHELL", "")
    if not shell.startswith("/"):
        try:
            shell = pwd.getpwuid(os.getuid()).pw_shell
        except KeyError:
            shell = ""
    return shell or "/bin/sh"


class _Left(Exception):
    """A signal asked us to leave."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interactive:
    """One `rota run -I`."""

    def __init__(self, call: Invocation, jobs: Submission) -> None:
        self._call = call
        self._jobs = jobs
        self._job = 0
        self._seen = 0  #: bytes of its output that we have shown
        self._attached = False
        self._grace_s = call.settings().interactive_grace
        self._lost_at: float | None = None
        self._told = ""
        self._told_at = 0.0

    def status(self) -> int:
        added = self._jobs.upload()
        (self._job,) = added.ids
        before = {
            number: signal.signal(number, _leave) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
        }
        try:
            if self._begins():
                self._attend()
            return self._settled()
        except _Left as left:
            # The user gave up waiting, or the terminal is gone.
            self._client().kill(str(self._job))
            if left.number != signal.SIGHUP:
                print_err("", f"rota: job {self._job} was cancelled")
            return 128 + left.number
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -------------------------------------------------------------- before it runs

    def _begins(self) -> bool:
        """Wait for its start and print why it waits; False if it has ended meanwhile."""
        wait = _FIRST_LOOK_S
        while True:
            client = self._client()
            state = client.job(self._job).state
            if state in _ENDED:
                return False
            if state in _BEGUN:
                return True
            if not self._call.quiet:
                self._tell_why(client)
            time.sleep(wait)
            wait = min(_LOOK_S, wait * 1.5)

    def _tell_why(self, client: Client) -> None:
        from rota.cli.render.text import harmless

        now = time.monotonic()
        if now - self._told_at < _TELL_S:
            return
        if not self._told_at:
            self._told_at = now  # most start at once
            return
        self._told_at = now
        reasons = client.why(self._job).reasons
        text = harmless(reasons[0].message) if reasons else "it waits for its turn"
        if text != self._told:
            self._told = text
            print_err(f"rota: job {self._job} waits: {text}")

    # -------------------------------------------------------------- while it runs

    def _attend(self) -> None:
        """Stay attached until the job ends, over new connections if need be."""
        from rota.cli.session.channel_bridge import HungUp
        from rota.client.session import Disconnected
        from rota.errors import EnvironmentFault

        while True:
            try:
                end = self._attached_once()
                if end is None or not end.lost:
                    return
                why = end.message
            except HungUp:
                print_err(f"rota: hung up; job {self._job} ends")
                return
            except Disconnected as lost:
                why = lost.message
                self._jobs.client = None
            except EnvironmentFault as fault:
                why = fault.message
                self._jobs.client = None
            self._again(why)

    def _attached_once(self) -> m.ChannelEnd | None:
        """Attach until the channel ends; None if the job is not running any more."""
        from rota.cli.session.channel_bridge import ChannelBridge, window
        from rota.client.channels import Opening
        from rota.client.live_channel import LiveChannel
        from rota.errors import BadInput
        from rota.wire import client_messages as m

        client = self._client()
        if client.job(self._job).state in (*_ENDED, "finishing"):
            return None
        rows, cols = window()
        channel = LiveChannel(client, Opening(job=self._job, attach=True, rows=rows, cols=cols, seen=self._seen))
        before = self._seen
        try:
            end = ChannelBridge(channel, tty=True, opened=self._opened).run()
        except BadInput as error:
            if error.code != "not_running":
                raise
            state = client.job(self._job).state
            if state in _ENDED or state == "finishing":
                return None
            return m.ChannelEnd(0, message=error.message, lost=True)  # it may be back in a moment
        finally:
            self._seen = before + channel.received
        if end.exit_code is None and end.signal is None and end.message and not end.lost:
            print_err(f"rota: {end.message}")
        return end

    def _opened(self) -> None:
        self._attached = True
        if self._lost_at is not None:
            print_err("rota: attached again", end="\r\n")
        self._lost_at = None

    def _again(self, why: str) -> None:
        """Wait a little before the next try; give up once the grace period of the terminal is over."""
        from rota.errors import NoManager

        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
            print_err(f"rota: {why}; trying again for {self._grace_s:g} s")
        elif now - self._lost_at > self._grace_s:
            raise NoManager(
                f"{why}; the terminal of job {self._job} is given up", hint="see 'rota manager status'"
            )
        time.sleep(_LOOK_S)

    # -------------------------------------------------------------- afterwards

    def _settled(self) -> int:
        """Its exit code, once its end is known."""
        from rota.cli.render.text import harmless
        from rota.cli.session.waiting import exit_status

        client = self._client()
        settled = client.wait(str(self._job))
        job = client.job(self._job)
        if not self._attached or self._lost_at is not None:
            # It ended before we were attached: its terminal output was kept as its output.
            for part in client.output_parts(self._job):
                sys.stdout.buffer.write(part.replace(b"\r\n", b"\n"))
            sys.stdout.buffer.flush()
        if job.state != "complete" and job.reason is not None and job.reason.code not in ("exit", ""):
            print_err(f"rota: job {self._job} {job.state}: {harmless(job.reason.message)}")
        if any(line.event == "walltime-over" for line in job.story or ()):
            print_err(f"rota: job {self._job}: its walltime is over")
        return exit_status(settled)

    def _client(self) -> Client:
        """The connection; if it was lost, a new one, for which a manager that died is started again."""
        if self._jobs.client is None:
            died = self._jobs.started and self._call.home.manager_file.exists()
            return self._jobs.connect_again(start=died)
        return self._jobs.client


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise _Left(number)
