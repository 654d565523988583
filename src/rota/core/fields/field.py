"""What a declaration says: kinds of values, and fields of jobs that have values of a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from rota.core.fields.moments import LocalTime

#: Parses a value; the flag says that it is a word of the command line rather than JSON. It gets the time
#: and the meaning of local times as well if the kind is `timed`. Raises `BadInput`.
Parser = Callable[..., Any]
#: Raises `BadInput` for a value of the right type that no parser makes, sent by another program or made by a rule.
Check = Callable[[Any], object]


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of value: its types, its parser with units and bounds, and its description."""

    type: str  #: in a specification, as an annotation
    doc: str  #: what JSON may have, as Markdown
    parse: Parser
    check: Check
    timed: bool = False  #: its parser needs the time, and to know what local times mean
    view: str = ""  #: type in views, if it is another
    shown: Callable[[Any], Any] | None = None  #: from the specification to the view
    text: Callable[[Any], str] = str  #: of a view's value, for people; empty: nothing to say
    metavar: str = "TEXT"  #: of the option; empty: a flag
    none: str = ""  #: the word that takes a value back, as null does; empty: there is none


class JobField(Struct, frozen=True, kw_only=True):
    """One field of a job. What is not said here holds of most: it is an option of `rota add`, sent, stored,
    shown, and changed by `rota modify`, under its own name."""

    name: str  #: in JSON, Python and, with dashes, on the command line
    kind: Kind
    help: str
    default: Any  #: of `rota add`
    number: int = 0  #: order of arrival, for fields that came after the first release: the next free number
    comment: str = ""  #: about the value in a specification

    # Input.
    flags: tuple[str, ...] = ()  #: if the option is not just the name
    metavar: str = ""  #: if it is not that of the kind
    many: bool = False  #: the option may be repeated
    doc: str = ""  #: if it is not that of the kind
    wr: str = ""  #: the field of wr with the same meaning
    wr_alike: bool = False  #: wr writes its values as Rota does

    # Where it travels.
    attribute: str = ""  #: in specifications, if not its name: with the unit
    in_spec: bool = True  #: it is part of the specification, which is sent and stored
    spec_default: Any = None  #: of a specification, if not that of `rota add`
    sent_type: str = ""  #: in messages, if not that of the kind
    spec_type: str = ""  #: in specifications, if not that of the kind
    run: bool = False  #: runners are told
    view: str | None = None  #: its name in views, if not that in specifications; empty: not shown from here
    label: str = ""  #: in the first column of `rota show`; empty: not shown there from here
    fixed: tuple[str, str] | None = None  #: why `modify` does not change it, and what to do instead

    @property
    def spec_name(self) -> str:
        """Its name in specifications."""
        return self.attribute or self.name

    @property
    def view_name(self) -> str:
        """Its name in views; empty: it is not shown from here."""
        return self.spec_name if self.view is None else self.view

    @property
    def option(self) -> str:
        """The long form of its option."""
        words = (word.partition("/")[0] for word in self.flags if word.startswith("--"))
        return next(words, f"--{self.name.replace('_', '-')}")

    def parse(self, value: object, *, text: bool, now: float, local: LocalTime) -> Any:
        """Check and convert what a user gave. Raises `BadInput` that describes only the value."""
        kind = self.kind
        return kind.parse(value, text, now, local) if kind.timed else kind.parse(value, text)


#: Why `modify` leaves most fixed fields alone, and what to do.
ADD_ANEW: Final = "remove the job and add it anew"
