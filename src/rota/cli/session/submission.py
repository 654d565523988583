"""What `add` and `run` share: read the input, start a manager if there is none, upload the jobs.

The manager starts while the rest of the input is being read.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.cli.command import Invocation
from rota.cli.render.printing import print_err
from rota.client import submission
from rota.client.batches import Builder, UploadBatch
from rota.client.endpoint import is_remote
from rota.client.fields.fields import Wanted
from rota.client.intake import from_bytes
from rota.client.session import Added, first_batch
from rota.client.submit_environment import default_memory
from rota.core.fields.values import check_command
from rota.core.jobs.command import Call, Command
from rota.errors import BadInput, NoManager, RotaError, UserError

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.client.scripts import Script
    from rota.client.starter import Starting
    from rota.wire.client_messages import NewSpec


class Submission:
    """One submission: its input, and the connection that it is sent over."""

    def __init__(
        self,
        call: Invocation,
        *,
        file: str | None,
        command: list[str] | None,
        fields: dict[str, object],
        retries: int,
        may_start: bool,
        idle: bool = False,
        check: bool = False,
        interactive: bool = False,
        input: str | None = None,
        script: str | None = None,
        lines: bool = False,
        function: Mapping[str, object] | None = None,
    ) -> None:
        self.call = call
        self.id = submission.new_id()
        self.settings = call.settings()
        self._may_start = may_start
        self._idle_stop = self.settings.idle_stop if idle else None
        self.started = False  #: by us
        self._check = check
        self._whole = False  #: the manager may have all of them
        self._lines = lines
        self._script = _read_script(script, file=file, lines=lines) if script is not None else None
        self.function: Call | None = None
        if function:
            alone = file is None and command is None and script is None and not lines
            self.function = _read_call(dict(function), alone=alone)
        self.source = self._script.source if self._script else _source(file, command, self.function)
        self.single_command = command is not None or self._script is not None or self.function is not None
        named = not self.single_command and file not in (None, "-")
        self._input = input if input is not None else submission.input_of(file or "") if named else ""
        path = script or file
        group = submission.group_of(path) if path not in (None, "-") and path else "default"
        memory = default_memory(cores=self.settings.cores, memory=self.settings.mem)
        defaults = self._script.defaults if self._script else {}
        self.base = submission.base_wanted(defaults, retries=retries, group=group, mem=memory)
        for given in (self._script.options if self._script else {}, fields):
            self.base = self.base.changed(given, text=True)
        if interactive:
            self.base = msgspec.structs.replace(self.base, interactive=True)
        if any(of_line for _, of_line, _ in self.base.after):
            raise BadInput(
                "--after: 'line:' counts lines of the input", hint="use it in the field 'after' of a line"
            )
        warn_of_hours(self.base.request)
        batches = self._batches(file, command)
        # Most mistakes are in the first lines, so check these before a manager is started.
        first = first_batch(batches, f"no commands in {self.source}")
        #: the first commands, to show what would be added
        self.sample = _sample(first[0], 20)
        self.batches: Iterator[UploadBatch] | list[UploadBatch] = itertools.chain(first, batches)
        self.client: Client | None = None

    def _batches(self, file: str | None, command: list[str] | None) -> Iterator[UploadBatch]:
        if self._script is not None:
            return _one_job(self._script.command(command or ()), self.base)
        if self.function is not None:
            return _one_job(self.function, self.base)
        if command is not None:
            return _from_words(command, self.base)
        if file in (None, "-"):
            return from_bytes(submission.read_stdin(), self.base, source="stdin", lines=self._lines)
        assert file is not None
        return from_bytes(_read(file), self.base, source=submission.shown(file), lines=self._lines)

    def connect(self) -> Client:
        """The connection to the manager, which is started if there is none and that is allowed."""
        if self.client is None:
            try:
                self.client = self.call.connect()
            except NoManager:
                if not self._may_start or is_remote(self.call.address):
                    raise
                starting = self._start()
                self.batches = list(self.batches)
                starting.wait()
                self.client = self.call.connect()
                self.started = True
            if self._may_start:
                self.client.before_redial = self.revive
        return self.client

    def connect_again(self, *, start: bool) -> Client:
        """After the connection was lost: the manager that is there, or, with `start`, a new one."""
        if start:
            self.revive()
        self.client = self.call.connect()
        return self.client

    def _start(self) -> Starting:
        from rota.client.starter import start_manager

        return start_manager(self.call.home, idle_stop=self._idle_stop)

    def revive(self) -> None:
        """If the manager is gone, start another."""
        try:
            self.call.connect().close()
        except NoManager:
            self._start().wait()

    def upload(self, *, attach: bool = False) -> Added:
        """Upload the jobs and print warnings; with `attach`, their output is followed in full.

        Raises what the manager refuses, with the name of the input.
        """
        client = self.connect()
        options = submission.options_for(
            self.base,
            check=self._check,
            always_new=self.single_command,
            attach=attach,
            input=self._input,
        )
        try:
            added = client.submit(self.id, self._passed_on(), options)
        except UserError as error:
            raise self._named(error) from None
        for warning in added.warnings:
            print_err(f"rota: warning: {warning}")
        return added

    def _passed_on(self) -> Iterator[UploadBatch]:
        for batch in self.batches:
            self._whole = batch.last
            yield batch

    def when_interrupted(self) -> str:
        """What an interrupt now means for the jobs: before the last batch has arrived, none is added."""
        if self._whole and not self._check:
            return "the jobs may have been added already; see 'rota jobs last'"
        return "nothing was added"

    def _named(self, error: RotaError) -> RotaError:
        """Add the name of the input, which the manager does not know."""
        if not error.line:
            return error
        return error.without_line() if self.single_command else error.at(source=self.source)


class SampleJob(NamedTuple):
    """One of the jobs that would be added."""

    cmd: Command
    place: int | None  #: in its array
    spec: NewSpec


def _sample(batch: UploadBatch, most: int) -> list[SampleJob]:
    """Jobs of a first batch, which has all specifications that its jobs have."""
    index_of = {element.entry: element.index for element in batch.elements[:most]}
    spec_of = batch.spec_of or [0] * most
    return [
        SampleJob(cmd, index_of.get(batch.first + place), batch.specs[spec_of[place]])
        for place, cmd in enumerate(batch.cmds[:most])
    ]


def _source(file: str | None, command: list[str] | None, function: Call | None = None) -> str:
    if function is not None:
        return "the call"
    if command is not None:
        if file is not None:
            raise BadInput("both a file and a command are given", hint="give one of them")
        if not command:
            raise BadInput("there is no command after '--'", hint="write it like: rota run -- make")
        return "the command"
    if file is None and sys.stdin.isatty():
        raise BadInput("there is no input", hint="give a file, '-' for stdin, or a command after '--'")
    return "stdin" if file in (None, "-") else submission.shown(file or "")


def _read_call(given: dict[str, object], *, alone: bool) -> Call:
    """The call that the options describe, checked by its own interpreter if that is asked for."""
    from rota.core.fields.calls import take_call

    checked = bool(given.pop("check_call", False))
    if not alone:
        raise BadInput("both a function and commands are given", field="call", hint="give one of them")
    call = take_call(given, text=True)
    if checked:
        from rota.client.call_check import check_here

        check_here(call)
    return call


def _read_script(path: str, *, file: str | None, lines: bool) -> Script:
    from rota.client import scripts

    if file is not None or lines:
        raise BadInput(
            "both --script and a list of commands are given", hint="give one of them; arguments follow after --"
        )
    if path == "-":
        script = scripts.read(submission.read_stdin(), source="stdin")
    else:
        name = submission.group_of(path)
        script = scripts.read(
            submission.read_file(path, "a script, or '-'"), source=submission.shown(path), name=name
        )
    for other in script.others:
        print_err(
            f"rota: warning: {script.source} has {other} lines, which are ignored; write #ROTA lines instead"
        )
    return script


def warn_of_hours(request: tuple[str, ...]) -> None:
    """Warn that a walltime without a unit is in hours."""
    if not request:
        return
    from rota.plan.language.request_parser import hours_meant

    for written in request:
        if remark := hours_meant(written):
            print_err(f"rota: warning: {remark}; write 30m or 90s for less")


def _read(file: str) -> Iterator[bytes]:
    try:
        yield from submission.read_file(file)
    except BadInput as error:
        if not os.path.lexists(file):
            error.hint = "give a file, '-' for stdin, or a command after '--'"
        raise


def _from_words(words: list[str], base: Wanted) -> Iterator[UploadBatch]:
    """The one job of a command line. A single word is for the shell, unless it is the path of a program."""
    command: Command = words
    if len(words) == 1 and not _is_program(words[0]):
        command = words[0]
    return _one_job(command, base)


def _one_job(command: Command, base: Wanted) -> Iterator[UploadBatch]:
    try:
        if not isinstance(command, Call):
            check_command(command)
    except BadInput as error:
        raise BadInput(f"the command {error.text}", hint=error.hint) from None
    builder = Builder(base)
    try:
        builder.fielded({"cmd": command}, 1)
    except BadInput as error:
        raise error.without_line() from None
    yield from builder.finish()


def _is_program(word: str) -> bool:
    """Is it the path of an executable file? Blanks in it do not matter."""
    return "/" in word and os.access(word, os.X_OK) and not os.path.isdir(word)


def touched_text(added: Added, *, would: bool = False) -> str:
    """What the submission did, or would do, to existing jobs; empty if nothing."""
    from rota.cli.render.text import few_ranges

    verbs = ("would change", "would replace", "would keep") if would else ("changed", "replaced", "kept")
    parts = [
        f"{verb} {few_ranges(ids)}"
        for verb, ids in zip(verbs, (added.changed, added.replaced, added.kept), strict=True)
        if ids
    ]
    if added.kept:
        parts[-1] += ", which the input no longer has"
    return "; ".join(parts)
