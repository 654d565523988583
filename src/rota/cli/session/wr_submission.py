"""The submission of `rota import wr`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, TypeVar

from rota.cli.command import Invocation
from rota.cli.session.submission import Submission
from rota.client import submission
from rota.client.batches import Builder, UploadBatch
from rota.client.wr.fields import WR_NAME, WrPlace
from rota.client.wr.reader import Conversion, convert
from rota.errors import BadInput, RotaError

E = TypeVar("E", bound=RotaError)

#: Every field, to `--drop`.
_ALL: Final = "all"
_CMD_DEPS: Final = "cmd_deps"


class WrSubmission(Submission):
    """A submission whose input is a file of wr, which is checked completely before anything is added."""

    conversion: Conversion

    def __init__(
        self,
        call: Invocation,
        *,
        file: str,
        fields: dict[str, object],
        cwd_matters: bool,
        strict: bool,
        drop: Collection[str],
        may_start: bool,
    ) -> None:
        self._cwd_matters = cwd_matters
        self._strict = strict
        self._drop = frozenset(drop)
        self._types = fields.get("type", ())
        super().__init__(call, file=file, command=None, fields=fields, retries=3, may_start=may_start)
        self.batches = list(self.batches)

    def _batches(self, file: str | None, command: list[str] | None) -> Iterator[UploadBatch]:
        assert file is not None
        blocks = submission.read_stdin() if file == "-" else submission.read_file(file)
        place = WrPlace(cwd=self.base.cwd, cwd_matters=self._cwd_matters)
        waits = self._drop.isdisjoint((_ALL, _CMD_DEPS))
        self.conversion = convert(blocks, source=self.source, place=place, waits=waits)
        builder = Builder(self.base, source=self.source)
        for job in self.conversion.jobs:
            if self._strict and job.warnings:
                raise builder.bad(job.line, BadInput(job.warnings[0], hint="mend it, or leave out --strict"))
            for field, message in job.lost:
                if field not in self._drop and _ALL not in self._drop:
                    hint = f"if that does not matter, leave it out with --drop {field}"
                    raise builder.bad(
                        job.line, BadInput(message.replace(" and is left out", ""), hint=hint).about(field)
                    )
            fields = job.fields_with()
            if "type" in fields and self._types:
                fields["type"] = with_types(self._types, fields["type"])
            try:
                builder.fielded(fields, job.line, job.cmd)
            except BadInput as error:
                raise _in_words_of_wr(error) from None
            yield from builder.full()
        yield from builder.finish()

    def declare_limits(self) -> None:
        """Set the limits that lines declare; jobs with unknown limits would be refused."""
        client = self.connect()
        for limit in self.conversion.limits:
            client.set_limit(limit)

    def _named(self, error: RotaError) -> RotaError:
        named = _in_words_of_wr(super()._named(error))
        if named.field == _CMD_DEPS:
            named.hint = f"add that first, or do not wait for it: --drop {_CMD_DEPS}"
        return named


def _in_words_of_wr(error: E) -> E:
    """Use wr's name of the field, which is that in the file."""
    if not error.label:
        return error
    if error.field == "after" and error.text.startswith("no job has the command"):
        return error.called(_CMD_DEPS)
    return error.called(WR_NAME.get(error.field, error.field))


def with_types(defaults: object, own: object) -> list[str]:
    """The types of a line, added to the default ones."""
    words = [*(defaults if isinstance(defaults, list | tuple) else [defaults])]
    return [str(word) for word in (*words, *(own if isinstance(own, list | tuple) else [own]))]
