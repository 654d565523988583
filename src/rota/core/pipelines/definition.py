"""What a pipeline is, as it travels and is stored: limits, stages and elements, checked.

Texts of stages are as written, with their placeholders: `templates` expands them. Nothing here is about a session.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.plan.need import LimitUse

#: Placeholders that every element has.
NAME: Final = "name"
KEY: Final = "key"


class Stage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that every element takes or, if it is `per_session`, one that is taken for the session as a whole."""

    name: str
    run: str
    skip_if: str = ""  #: a command; empty: never skipped by a condition
    run_if: str = ""  #: the opposite
    redefines: str = ""  #: the file that it changes, which is part of what the element is; only the first stage
    takes: tuple[LimitUse, ...] = ()
    retries: int = 0  #: further attempts after a temporary error
    imperative: bool = False  #: what "quit" refers to, and what other stages are needed for
    needs_dependencies: bool = False  #: an element waits until its dependencies have passed this stage
    skip_to: str = ""  #: the later stage at which an element goes on when this one was ok; empty: the next
    always: bool = False  #: never jumped over, and never left out because no later stage needs it
    also_failed: bool = False  #: failed elements come here too
    per_session: bool = False
    #: Further fields of its jobs (`FIELDS`), with values as in JSON; checked.
    fields: dict[str, object] = {}

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """All that may have placeholders, in the order in which `{key}` counts them."""
        return self.run, self.skip_if, self.run_if, self.redefines


class Element(Struct, frozen=True, array_like=True, gc=False):
    """Something that flows through the stages."""

    name: str
    #: Positions of what it depends on in the tuple of elements, as written, each smaller than its own.
    depends: tuple[int, ...] = ()
    #: Its own placeholders with their values, without the defaults of the pipeline.
    own: tuple[tuple[str, str], ...] = ()


class Definition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pipeline, checked: `checks.check_definition` says what holds of it."""

    stages: tuple[Stage, ...]
    #: Depth-first in the order of the file: every element comes after all that it depends on.
    elements: tuple[Element, ...]
    limits: tuple[tuple[str, int], ...] = ()  #: name and units
    defaults: tuple[tuple[str, str], ...] = ()  #: placeholders of elements that do not have their own

    def values(self, position: int) -> dict[str, str]:
        """The placeholders of an element, without `{key}`."""
        element = self.elements[position]
        return {**dict(self.defaults), **dict(element.own), NAME: element.name}
