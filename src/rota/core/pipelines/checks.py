"""What holds of every definition. Clients check what they read, the manager what it gets."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from rota.core.fields import limits, values
from rota.core.fields.values import shown
from rota.core.pipelines import stage_checks
from rota.core.pipelines.definition import KEY, NAME, Definition, Element
from rota.core.pipelines.quoting import PLACEHOLDER
from rota.core.pipelines.templates import Template
from rota.errors import BadInput, BadPipeline

MAX_ELEMENTS: Final = 1_000_000
MAX_STAGES: Final = 100
MAX_LIMITS: Final = 100
MAX_NAME: Final = 255
#: Bytes of a value; it must fit into a command.
MAX_VALUE: Final = 65_536

_PLACEHOLDERS: Final = "placeholders have letters, digits, _ and -, and begin with a letter or _"
#: Names that would be options, or lead out of a directory.
_UNSAFE: Final = re.compile(r"-|.*(?:^|/)\.{1,2}(?:/|$)", re.DOTALL)


def check_definition(definition: Definition) -> None:
    """Refuse what is not a pipeline. Raises `BadPipeline`."""
    check_limits(definition.limits)
    if not definition.stages:
        raise BadPipeline("there are no stages", path=("stages",), hint="give at least one, with a name and run")
    if len(definition.stages) > MAX_STAGES:
        raise BadPipeline(f"has more than {MAX_STAGES} stages", path=("stages",), hint="give fewer")
    units = dict(definition.limits)
    names: set[str] = set()
    for at, stage in enumerate(definition.stages):
        if stage.name in names:
            text = f"there are two stages '{shown(stage.name)}'"
            raise BadPipeline(
                text, path=("stages", at, "name"), hint="give each its own name", of=f"stage {at + 1}"
            )
        names.add(stage.name)
        stage_checks.check_stage(definition, at, units=units)
    _check_elements(definition)
    _check_placeholders(definition)


def check_limits(declared: tuple[tuple[str, int], ...]) -> None:
    """Raises `BadPipeline`."""
    if len(declared) > MAX_LIMITS:
        raise BadPipeline(f"has more than {MAX_LIMITS} limits", path=("limits",), hint="give fewer")
    if len(dict(declared)) < len(declared):
        raise BadPipeline("has a limit twice", path=("limits",), hint="give each once")
    for name, units in declared:
        path = ("limits", name)
        if not limits.NAME.fullmatch(name) or name == "none":
            text = f"'{shown(name)}' cannot be the name of a limit"
            raise BadPipeline(text, path=path, hint="use letters, digits and . _ - (at most 64)")
        if not 1 <= units <= limits.MAX_UNITS:
            text = f"must be from 1 to {limits.MAX_UNITS}, not {units}"
            raise BadPipeline(text, path=path, hint="say how many units there are")


def _check_elements(definition: Definition) -> None:
    elements = definition.elements
    if not elements:
        raise BadPipeline("there are no elements", path=("elements",), hint="give at least one: NAME: {}")
    if len(elements) > MAX_ELEMENTS:
        raise BadPipeline(f"has more than {MAX_ELEMENTS} elements", path=("elements",), hint="make several files")
    _check_values(definition.defaults, ("defaults",))
    names: set[str] = set()
    for position, element in enumerate(elements):
        if element.name in names:
            raise wrong_element(element, f"there are two elements '{shown(element.name)}'", hint="name it once")
        names.add(element.name)
        check_element_name(element.name)
        depends = element.depends
        if depends and not (min(depends) >= 0 and max(depends) < position and len({*depends}) == len(depends)):
            raise wrong_element(element, "is not in order of its dependencies", hint="sort the elements first")
        if element.own:
            _check_values(element.own, ("elements", element.name), of=f"element '{shown(element.name, 80)}'")


def check_element_name(name: str) -> None:
    """Raises `BadPipeline`."""
    why = ""
    try:
        if not name or len(name.encode()) > MAX_NAME:
            why = f"it is empty or longer than {MAX_NAME} bytes"
    except UnicodeEncodeError:
        why = "it is not valid UTF-8"
    if not name.isprintable() or name != name.strip():
        why = why or "it has an unprintable character or blanks around it"
    if _UNSAFE.match(name):
        why = why or "it begins with '-' or has a part '.' or '..'"
    if why:
        text = f"'{shown(name, 80)}' cannot be the name of an element: {why}"
        raise BadPipeline(text, path=("elements", name), hint="use letters, digits and . _ - /")


def _check_values(pairs: tuple[tuple[str, str], ...], path: tuple[str, ...], *, of: str = "") -> None:
    if len(dict(pairs)) < len(pairs):
        raise BadPipeline("has a key twice", path=path, hint="give it once", of=of)
    for key, value in pairs:
        where = (*path, key)
        if key in (NAME, KEY):
            text = f"'{key}' is given by Rota"
            raise BadPipeline(text, path=where, hint="choose another word", of=of)
        if not PLACEHOLDER.fullmatch(key):
            raise BadPipeline(f"'{shown(key)}' cannot be a placeholder", path=where, hint=_PLACEHOLDERS, of=of)
        try:
            values.plain_text(value, MAX_VALUE)
        except BadInput as error:
            hint = error.hint or "put it into a file, and give its name"
            raise BadPipeline(error.text, path=where, hint=hint, of=of) from None


# ------------------------------------------------------------------ placeholders


def _check_placeholders(definition: Definition) -> None:
    """Each element has all placeholders of the stages, and what comes of them is short enough for a command."""
    defaults = dict(definition.defaults)
    longest = _longest_values(definition)
    for at, stage in enumerate(definition.stages):
        of = f"stage '{stage.name}'"
        for field, template in stage_checks.templates(stage, at).items():
            path = ("stages", at, field)
            wanted = template.placeholders
            if stage.per_session:
                missing = [name for name in wanted if name not in defaults]
                if missing:
                    text = f"{{{missing[0]}}} is of an element, and a stage per session has none"
                    raise BadPipeline(text, path=path, hint="only 'defaults' can be used here", of=of)
                continue
            if stage.redefines and KEY in wanted:
                text = "{key} is known only after the stage that redefines the element"
                raise BadPipeline(text, path=path, hint="use {name}", of=of)
            _check_known(definition, [name for name in wanted if name not in defaults], path, of=of)
            if template.of_command:
                _check_lengths(definition, template, path, longest=longest, of=of)


def _check_known(definition: Definition, wanted: list[str], path: tuple[str | int, ...], *, of: str) -> None:
    wanted = [name for name in wanted if name not in (NAME, KEY)]
    if not wanted:
        return
    known: set[str] = set()
    lacking: tuple[Element, str] | None = None
    for element in definition.elements:
        own = {key for key, _ in element.own}
        known |= own
        if lacking is None:
            lacking = next(((element, name) for name in wanted if name not in own), None)
    if lacking is None:
        return
    for name in wanted:
        if name not in known:
            every = [NAME, KEY, *dict(definition.defaults), *sorted(known)]
            close = get_close_matches(name, every, n=1)
            hint = f"did you mean {{{close[0]}}}? Otherwise " if close else ""
            hint += f"write {{{{{name}}}}} for the braces themselves"
            raise BadPipeline(f"no element has a placeholder {{{name}}}", path=path, hint=hint, of=of)
    element, name = lacking
    text = f"{of} uses {{{name}}} in '{path[-1]}', and this element has no '{name}'"
    raise wrong_element(element, text, hint=f"give it {name}, or add {name} to 'defaults'")


def _longest_values(definition: Definition) -> dict[str, int]:
    """The length of the longest value of each placeholder."""
    longest: dict[str, int] = {KEY: 64, NAME: MAX_NAME}
    for pairs in (definition.defaults, *(element.own for element in definition.elements)):
        for name, value in pairs:
            longest[name] = max(longest.get(name, 0), len(value))
    return longest


def _check_lengths(
    definition: Definition, template: Template, path: tuple[str | int, ...], *, longest: dict[str, int], of: str
) -> None:
    """Expands only if an upper bound says that a command could be too long."""
    # A character has at most four bytes, and so has a quoted quote.
    bound = sum(4 * len(part) if isinstance(part, str) else 4 * (longest[part[0]] + 2) for part in template.parts)
    if bound <= values.MAX_COMMAND:
        return
    for position, element in enumerate(definition.elements):
        command = template.expand({**definition.values(position), KEY: "0" * 64})
        if len(command.encode()) > values.MAX_COMMAND:
            text = f"{of}: its '{path[-1]}' would have more than {values.MAX_COMMAND} bytes"
            raise wrong_element(element, text, hint="put the command in a script file")


def wrong_element(element: Element, text: str, *, hint: str) -> BadPipeline:
    of = f"element '{shown(element.name, 80)}'"
    return BadPipeline(text, path=("elements", element.name), hint=hint, of=of)
