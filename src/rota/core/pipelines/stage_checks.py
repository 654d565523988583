"""What holds of every stage, by itself and among the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from rota.core.fields import limits, values
from rota.core.fields.declared.attempts import MAX_RETRIES
from rota.core.fields.table import FIELDS
from rota.core.fields.values import shown
from rota.core.pipelines.definition import Definition, Stage
from rota.core.pipelines.templates import COMMANDS, Template, command_template, path_template
from rota.errors import BadInput, BadPipeline

#: Fields of a job that a stage may have. The others are the session's, or follow from the element.
JOB_FIELDS: Final = tuple(
    "cpus mem disk time gpus request where prefer walltime pool backoff no_retry_over env learn override".split()
)
_LETTERS: Final = "use letters, digits and . _ - (at most 64)"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
#: What only stages of elements can say.
_OF_ELEMENTS: Final = {
    "redefines": "redefines",
    "skip_to": "on_ok",
    "imperative": "imperative",
    "needs_dependencies": "needs",
    "always": "always",
    "also_failed": "also_failed",
}


def check_stage(definition: Definition, at: int, *, units: Mapping[str, int]) -> None:
    """`units`: of the limits of the pipeline. Raises `BadPipeline`."""
    stage = definition.stages[at]
    if not _NAME.fullmatch(stage.name):
        text = f"'{shown(stage.name)}' cannot be the name of a stage"
        raise BadPipeline(text, path=("stages", at, "name"), hint=_LETTERS, of=f"stage {at + 1}")
    if not stage.run.strip():
        _refuse(stage, at, "run", "the command is empty", hint="say what is done: run: build {name}")
    for field in COMMANDS:
        _check_text(stage, at, field)
    if not 0 <= stage.retries <= MAX_RETRIES:
        _refuse(stage, at, "retries", f"must be from 0 to {MAX_RETRIES}", hint="0 means one attempt")
    _check_takes(stage, at, units)
    if stage.per_session:
        for attribute, field in _OF_ELEMENTS.items():
            if getattr(stage, attribute):
                text = "is for stages of elements, and this one is per session"
                _refuse(stage, at, field, text, hint="leave it out, or take out 'per'")
    if stage.redefines:
        if at:
            text = f"only the first stage may redefine elements, which is '{definition.stages[0].name}'"
            _refuse(stage, at, "redefines", text, hint="move the stage to the front")
        _check_path(stage, at)
    if stage.skip_to:
        _check_skip(definition, at)
    _check_job_fields(stage, at)


def templates(stage: Stage, at: int) -> dict[str, Template]:
    """The texts of a stage by their fields, without empty ones. Raises `BadPipeline`."""
    found: dict[str, Template] = {}
    for field in (*COMMANDS, "redefines"):
        if text := getattr(stage, field):
            try:
                found[field] = path_template(text) if field == "redefines" else command_template(text)
            except BadInput as error:
                _refuse(stage, at, field, error.text, hint=error.hint)
    return found


def _check_text(stage: Stage, at: int, field: str) -> None:
    try:
        values.check_argument(getattr(stage, field))
    except BadInput as error:
        _refuse(stage, at, field, error.text, hint=error.hint)


def _check_path(stage: Stage, at: int) -> None:
    try:
        values.path(stage.redefines, False)
    except BadInput as error:
        _refuse(stage, at, "redefines", error.text, hint=error.hint or "give the name of a file: refs/{name}")


def _check_takes(stage: Stage, at: int, units: Mapping[str, int]) -> None:
    seen: set[str] = set()
    for use in stage.takes:
        path = ("stages", at, "takes", use.name)
        of = f"stage '{stage.name}'"
        if use.name in seen:
            raise BadPipeline("is named twice", path=path, hint="give each limit once", of=of)
        seen.add(use.name)
        if use.name not in units:
            text = f"there is no limit '{shown(use.name)}'"
            known = f"'limits' has {', '.join(units)}" if units else f"add 'limits: {{{shown(use.name)}: 4}}'"
            raise BadPipeline(text, path=path, hint=known, of=of)
        if not 1 <= use.units <= limits.MAX_UNITS:
            text = f"must be from 1 to {limits.MAX_UNITS}, not {use.units}"
            raise BadPipeline(text, path=path, hint="leave it out to take none", of=of)
        if use.units > units[use.name]:
            text = f"takes {use.units} units, and the limit has {units[use.name]}: the job could never run"
            raise BadPipeline(text, path=path, hint="take fewer, or raise the limit", of=of)


def _check_skip(definition: Definition, at: int) -> None:
    stage = definition.stages[at]
    later = [each.name for each in definition.stages[at + 1 :] if not each.per_session]
    if stage.skip_to in later:
        return
    text = f"'{shown(stage.skip_to)}' is not a later stage that elements go through"
    hint = f"skip to {' or '.join(later)}" if later else "leave it out: there is none"
    _refuse(stage, at, "on_ok", text, hint=hint)


def _check_job_fields(stage: Stage, at: int) -> None:
    for name, value in stage.fields.items():
        if name not in JOB_FIELDS:
            _refuse(stage, at, name, "a stage has no such field", hint=f"it may have {', '.join(JOB_FIELDS)}")
        try:
            FIELDS[name].kind.parse(value, False)
        except BadInput as error:
            _refuse(stage, at, name, error.text, hint=error.hint or FIELDS[name].kind.doc)
    if stage.fields.get("request"):
        for name in ("cpus", "gpus"):
            if name in stage.fields:
                _refuse(stage, at, name, "contradicts 'request'", hint="give one of them")


def _refuse(stage: Stage, at: int, field: str, text: str, *, hint: str) -> NoReturn:
    raise BadPipeline(text, path=("stages", at, field), hint=hint, of=f"stage '{shown(stage.name)}'")
