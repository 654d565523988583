"""Operations on jobs: add, list, show, act, change, explain."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rota.client import calls, submission
from rota.client.aio.connection import AsyncConnection
from rota.client.batches import UploadBatch
from rota.client.calls import Cursor, Selector, words
from rota.client.fields.modification import spec_change
from rota.client.session import Added, AddOptions
from rota.client.submission import Entry
from rota.core.answers import Acted, WalltimeSet
from rota.core.attempts.signal_names import signal_name
from rota.wire import client_messages as m
from rota.wire import views
from rota.wire.results import ResultView


class JobOperations(AsyncConnection):
    """What can be asked about jobs and done to them."""

    async def add(
        self,
        commands: Iterable[Entry] | str,
        *,
        rerun: bool = False,
        check: bool = False,
        input: str = "",
        **fields: Any,
    ) -> Added:
        """Add jobs: a text for the shell, or a list of texts, argument lists and mappings of fields.
        Keyword arguments are the defaults of fields: `cpus=2, mem="4G", after=[12], name="x"`…

        Returns when they are safely stored. `check` only says what would happen. `input` is a name by which
        they are recognised when they are added again with changes: see `rota add --input`.

            await manager.add(["make a", ["cp", "a", "b c"], {"cmd": "big", "mem": "20G"}], group="build")
        """
        prepared = submission.prepare(commands, {"rerun": rerun, **fields}, check=check, input=input)
        return await self.submit(submission.new_id(), *prepared)

    async def add_file(
        self,
        path: str | os.PathLike[str],
        *,
        check: bool = False,
        input: str = "",
        script: bool = False,
        lines: bool = False,
        **fields: Any,
    ) -> Added:
        """Add the jobs of a file, in any of the formats that `rota add` reads. Added again with changes, it
        is recognised only by the name that is given as `input`. `script`: the file is one job, with options in its
        `#ROTA` lines. `lines`: each line is a job although the file looks like a script."""
        prepared = submission.prepare_file(path, fields, check=check, input=input, script=script, lines=lines)
        return await self.submit(submission.new_id(), *prepared)

    async def submit(self, submission_id: str, batches: Iterable[UploadBatch], options: AddOptions) -> Added:
        """Upload prepared batches; on a lost connection, again, with the same effect as once."""
        return await self._perform(self._conversation.add(submission_id, batches, options), self._timeout * 10)

    async def jobs(self, *selectors: Selector, limit: int = 1000, cursor: Cursor = None) -> views.JobPage:
        """One page of jobs. The next one is `jobs(…, cursor=page.next)`; there is none when that is None.

        (await manager.jobs("state=failed", limit=10)).jobs[0].reason
        """
        return await self.ask(calls.jobs(words(selectors), limit=limit, cursor=cursor))

    async def job(self, job: int) -> views.JobView:
        """Everything about one job, with its attempts and its story."""
        return await self.ask(calls.show(job))

    async def results(self, *jobs: int) -> list[ResultView]:
        """What these calls of functions returned, or why they failed. Calls that have not ended have neither.

        value_of((await manager.results(17))[0])
        """
        from rota.client.results import results

        found: list[ResultView] = []
        while len(found) < len(jobs):
            page = await self.ask(results([*jobs[len(found) :]]))
            found += page
        return found

    async def status(self, *selectors: Selector) -> views.StatusView:
        """Counts by state and by group."""
        return await self.ask(calls.status(words(selectors)))

    async def why(self, job: int) -> views.WhyView:
        """What keeps a job from running, who, and what would change it."""
        return await self.ask(calls.why(job))

    async def act(self, verb: str, *selectors: Selector) -> Acted:
        """Do what `rota VERB SELECTOR…` does, for a verb without options."""
        return await self.ask(calls.act(verb, words(selectors)))

    async def kill(self, *selectors: Selector) -> Acted:
        """Cancel jobs; running ones are ended."""
        return await self.act("kill", *selectors)

    async def retry(self, *selectors: Selector) -> Acted:
        """Run failed or cancelled jobs again."""
        return await self.act("retry", *selectors)

    async def remove(self, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Forget jobs that have ended. `waiting`: also jobs that wait. `cascade`: also everything that depends on
        them. Other jobs of a selection are kept. Raises if a job that is named by its id cannot be removed."""
        return await self.ask(calls.act("remove", words(selectors), cascade=cascade, waiting=waiting))

    async def would(self, verb: str, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Which jobs `kill` or `remove` would concern now. Nothing is done."""
        self._conversation.refuse_older()
        return await self.ask(calls.act(verb, words(selectors), cascade=cascade, waiting=waiting, check=True))

    async def hold(self, *selectors: Selector) -> Acted:
        """Keep waiting jobs from starting."""
        return await self.act("hold", *selectors)

    async def release(self, *selectors: Selector) -> Acted:
        """Undo `hold`."""
        return await self.act("release", *selectors)

    async def suspend(self, *selectors: Selector, keep: bool = False) -> Acted:
        """Stop all processes of running jobs, and let others have their cores unless they `keep` them."""
        return await self.ask(calls.act("suspend", words(selectors), keep=keep))

    async def resume(self, *selectors: Selector) -> Acted:
        """Let suspended jobs go on when their cores are free."""
        return await self.act("resume", *selectors)

    async def signal(self, *selectors: Selector, signal: str) -> Acted:
        """Send a signal, by name, to all processes of running jobs."""
        return await self.ask(calls.act("signal", words(selectors), signal=signal_name(signal)))

    async def checkpoint(self, *selectors: Selector) -> Acted:
        """Ask running jobs for a checkpoint, by the signal that each gave."""
        return await self.act("checkpoint", *selectors)

    async def confirm_dead(self, *selectors: Selector) -> Acted:
        """Declare lost jobs dead: you know that nothing of them runs any more."""
        return await self.act("confirm-dead", *selectors)

    async def walltime(self, job: int, change: str, *, force: bool = False) -> WalltimeSet:
        """Give a running job so much more ("+1h") or less ("-30m"), or so much in all ("2h")."""
        return await self.ask(calls.walltime(job, change, force=force))

    async def modify(self, *selectors: Selector, **fields: Any) -> Acted:
        """Change fields of jobs that are not running: `await manager.modify("@build", mem="8G", priority=9)`."""
        return await self.change(spec_change(fields), *selectors)

    async def change(self, change: m.SpecChange, *selectors: Selector) -> Acted:
        """The same with a prepared change."""
        return await self.ask(calls.modify(words(selectors), change))
