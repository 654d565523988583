"""From a document to a definition. Names and types are checked here, what they mean in `core.pipelines`."""

from __future__ import annotations

from typing import Any, Final

from rota.core.fields.values import shown
from rota.core.pipelines.checks import check_definition
from rota.core.pipelines.definition import Definition, Stage
from rota.core.pipelines.graph import NamedElement, in_order
from rota.core.pipelines.stage_checks import JOB_FIELDS
from rota.documents.tree import At, Form, Node, Object, Scalar, plain
from rota.errors import BadPipeline
from rota.plan.need import LimitUse

FORM: Final = Form(BadPipeline, "a pipeline", "several pipelines", "stages and elements")
_TOP: Final = ("limits", "stages", "defaults", "elements")
#: Fields of a stage that are one text, under their own names.
_TEXTS: Final = ("run", "skip_if", "run_if", "redefines")
_FLAGS: Final = ("imperative", "always", "also_failed")
STAGE_FIELDS: Final = ("name", *_TEXTS, "takes", "retries", *_FLAGS, "needs", "on_ok", "per", *JOB_FIELDS)

_NOTHING: Final = "true"
_EXCLUSIVE: Final = "exclusive"
_SKIP_TO: Final = "skip-to"
_DEPENDS: Final = "depends"


def read_definition(root: Node) -> Definition:
    """The definition that a document says. Raises `BadPipeline`, whose path leads to the place."""
    top = At(root, (), FORM).fields(_TOP)
    for name in ("stages", "elements"):
        if name not in top:
            At(root, (name,), FORM).refuse("is missing", hint="a pipeline has stages and elements")
    limits = top["limits"].members("an object of limits with their units") if "limits" in top else {}
    stages = tuple(map(_stage, top["stages"].items("write it like: - name: build")))
    elements = top["elements"].members("an object of elements")
    definition = Definition(
        limits=tuple((name, units.number()) for name, units in limits.items()),
        stages=stages,
        defaults=_words(top["defaults"].members("an object of texts")) if "defaults" in top else (),
        elements=in_order([_element(name, element) for name, element in elements.items()]),
    )
    check_definition(definition)
    return definition


def _words(values: dict[str, At]) -> tuple[tuple[str, str], ...]:
    """Sorted: in which order they are written says nothing."""
    return tuple(sorted((name, value.word()) for name, value in values.items()))


def _element(name: str, given: At) -> NamedElement:
    if isinstance(given.node, Scalar) and given.node.value is None:
        return NamedElement(name)
    of = f"element '{shown(name, 80)}'"
    values = given.called(of).members("an object: {} or {depends: [NAME]}")
    depends: tuple[str, ...] = ()
    if (given_depends := values.pop(_DEPENDS, None)) is not None:
        hint = "write it like depends: [base.bst]"
        depends = tuple(each.word(hint) for each in given_depends.items(hint))
    return NamedElement(name, depends, _words(values))


# ------------------------------------------------------------------ stages


def _stage(given: At) -> Stage:
    of = f"stage {given.path[-1]}" if not isinstance(given.path[-1], int) else f"stage {given.path[-1] + 1}"
    if isinstance(given.node, Object) and isinstance(name := given.node.items.get("name"), Scalar) and name.text:
        of = f"stage '{shown(name.text)}'"
    given = given.called(of)
    fields = given.fields(STAGE_FIELDS)
    # A stage per session may do nothing but have its limits for a moment.
    for wanted in ("name",) if "per" in fields else ("name", "run"):
        if wanted not in fields:
            given.at(wanted).refuse("is missing", hint="a stage has a name and run")
    said: dict[str, Any] = {"name": fields["name"].word()}
    said |= {"run": _NOTHING} | {name: fields[name].string() for name in _TEXTS if name in fields}
    said |= {name: fields[name].flag() for name in _FLAGS if name in fields}
    if "takes" in fields:
        uses = fields["takes"].members("an object of limits with units")
        said["takes"] = tuple(_use(name, units) for name, units in uses.items())
    if "retries" in fields:
        said["retries"] = fields["retries"].number()
    if "needs" in fields:
        said["needs_dependencies"] = _only(fields["needs"], "dependencies")
    if "per" in fields:
        said["per_session"] = _only(fields["per"], "session")
    if "on_ok" in fields:
        said["skip_to"] = _skip_to(fields["on_ok"])
    said["fields"] = {name: plain(fields[name].node) for name in JOB_FIELDS if name in fields}
    return Stage(**said)


def _only(given: At, word: str) -> bool:
    """A field that has one value so far."""
    if given.string(f"write {word}") != word:
        given.refuse(f"must be '{word}'", hint=f"write {word}, or leave the field out")
    return True


def _use(name: str, given: At) -> LimitUse:
    if isinstance(given.node, Scalar) and given.node.value == _EXCLUSIVE:
        return LimitUse(name, exclusive=True)
    if isinstance(given.node, Scalar) and isinstance(given.node.value, str):
        given.refuse(f"must be units or '{_EXCLUSIVE}'", hint=f"write it like {{{shown(name)}: 1}}")
    return LimitUse(name, given.number())


def _skip_to(given: At) -> str:
    words = given.string(f"write {_SKIP_TO} and a later stage").split()
    if len(words) != 2 or words[0] != _SKIP_TO:
        given.refuse(f"must be '{_SKIP_TO} STAGE'", hint=f"write {_SKIP_TO} and a later stage")
    return words[1]
