"""Pipelines in Python: stages are small classes that say only what differs, elements are added one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar

from rota.core.fields.values import shown
from rota.core.pipelines.definition import Definition
from rota.documents.tree import node_of
from rota.errors import BadPipeline
from rota.pipeline.reader import FORM, STAGE_FIELDS, read_definition


class Stage:
    """A stage. A subclass sets the fields that it needs, under the names that they have in a file:

        class Fetch(Stage):
            run = "fetch {name}"
            takes = {"download": 1}
            retries = 2

    The fields of its jobs (`cpus`, `mem`, `time`, `pool`…) are set in the same way. Without a name, it has that of
    the class in small letters. `Stage(name="fetch", run="fetch {name}")` makes one without a class.
    """

    name: ClassVar[str] = ""

    def __init__(self, **fields: object) -> None:
        """The stage with these fields changed. Raises `BadPipeline` for a field that no stage has."""
        self._changed = fields
        self.fields()

    def fields(self) -> dict[str, object]:
        """All that is said about the stage. Raises `BadPipeline` for a field that no stage has."""
        found: dict[str, object] = {}
        for cls in reversed(type(self).__mro__):
            if issubclass(cls, Stage) and cls is not Stage:
                found |= {name: value for name, value in vars(cls).items() if not name.startswith("_")}
        found |= self._changed
        if not found.get("name"):
            found["name"] = type(self).__name__.lower()
        for name in found:
            if name not in STAGE_FIELDS:
                close = get_close_matches(name, STAGE_FIELDS, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"the fields are {', '.join(STAGE_FIELDS)}"
                of = f"stage '{found['name']}'"
                raise BadPipeline("there is no such field", path=("stages", 0, name), hint=hint, of=of)
        return found


class Pipeline:
    """Stages, limits and elements. Nothing is checked before `definition` is called, except names given twice."""

    def __init__(
        self,
        *stages: Stage | type[Stage],
        limits: Mapping[str, int] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.stages = [stage() if isinstance(stage, type) else stage for stage in stages]
        self.limits = dict(limits or {})
        self.defaults = dict(defaults or {})
        self._elements: dict[str, dict[str, object]] = {}

    def add(self, name: str, /, *, depends: Sequence[str] = (), **own: object) -> None:
        """Add an element with what it depends on and its own keys. Raises `BadPipeline` if it is there already."""
        if name in self._elements:
            of = f"element '{shown(name, 80)}'"
            raise BadPipeline("is added twice", path=("elements", name), hint="add it once", of=of)
        self._elements[name] = {"depends": list(depends), **own}

    def definition(self) -> Definition:
        """The checked pipeline, equal to that of a file that says the same. Raises `BadPipeline`."""
        document = {
            "limits": self.limits,
            "stages": [stage.fields() for stage in self.stages],
            "defaults": self.defaults,
            "elements": self._elements,
        }
        return read_definition(node_of(document, (), FORM))
