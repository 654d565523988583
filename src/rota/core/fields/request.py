"""Fields that ask the planner for resources: requests, property expressions and types.

Only the syntax is checked here. The manager knows which levels, properties and queues the site has.
"""

from __future__ import annotations

import re
from typing import Final

from rota.core.fields.moments import LocalTime, parse_moment
from rota.core.fields.values import kind, plain_text, shown
from rota.errors import BadInput
from rota.pool_names import is_pool_name

MAX_ALTERNATIVES: Final = 32
MAX_TYPES: Final = MAX_ALTERNATIVES
MAX_TEXT: Final = 4096

_QUEUE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ROLE: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_PROPERTY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")
_NONE: Final = "none"


def queue(value: object, text: bool) -> str:
    """The name of a queue. Raises `BadInput`."""
    name = plain_text(value)
    if not _QUEUE.fullmatch(name):
        raise BadInput(
            f"'{shown(name)}' cannot be a queue; names have letters, digits and . _ - (at most 64)",
            hint="give the name of a queue",
        )
    return name


def pool(value: object, text: bool) -> str:
    """The name of a pool; `none` or null means the first with room. Raises `BadInput`."""
    if value is None or value == _NONE:
        return ""
    name = plain_text(value)
    if not is_pool_name(name):
        raise BadInput(
            f"'{shown(name)}' cannot be a pool; names have small letters, digits and dashes (at most 32)",
            hint="give the name of a pool; see 'rota pool list'",
        )
    return name


def gang(value: object, text: bool) -> str:
    """The name of a gang; null means none. Raises `BadInput`."""
    if value is None:
        return ""
    name = plain_text(value)
    if not _ROLE.fullmatch(name):
        raise BadInput(
            f"'{shown(name)}' cannot be a gang; names have letters, digits and . _ - (at most 128)",
            hint="give a name such as web-and-db",
        )
    return name


def is_role(name: str) -> bool:
    """Can a member of a gang have this name?"""
    return _ROLE.fullmatch(name) is not None


def property_name(value: object, text: bool) -> str:
    """The name of a property; null means none. Raises `BadInput`."""
    if value is None:
        return ""
    name = plain_text(value)
    if not _PROPERTY.fullmatch(name):
        raise BadInput(f"'{shown(name)}' cannot be a property", hint="give one of 'rota property list'")
    return name


def host(value: object, text: bool) -> str:
    """The name of a host; `none` or null means any. Raises `BadInput`."""
    if value is None or value == _NONE:
        return ""
    name = plain_text(value)
    if not _HOST.fullmatch(name):
        raise BadInput(f"'{shown(name)}' cannot be a host", hint="give one of 'rota node list'")
    return name


def request(value: object, text: bool) -> tuple[str, ...]:
    """Alternatives, as given; `none` or null means no request. Raises `BadInput`."""
    words = _listed(value, text, '["nodes=2,walltime=1h"]')
    if not words:
        return ()
    if len(words) > MAX_ALTERNATIVES:
        raise BadInput(f"has more than {MAX_ALTERNATIVES} alternatives", hint="give fewer")
    from rota.plan.language.request_parser import parse_request

    found = []
    for number, word in enumerate(words, 1):
        alternative = plain_text(word, MAX_TEXT).strip()
        try:
            parse_request(alternative)
        except BadInput as error:
            which = f"alternative {number}: " if len(words) > 1 else ""
            raise BadInput(f"{which}{error.message}", hint=error.hint) from None
        found.append(alternative)
    return tuple(found)


def where(value: object, text: bool) -> str:
    """A property expression, as given; `none`, null or an empty text means any. Raises `BadInput`."""
    if value is None:
        return ""
    expression = plain_text(value, MAX_TEXT).strip()
    if expression in ("", _NONE):
        return ""
    from rota.plan.language.expression import parse

    parse(expression)
    return expression


def types(value: object, text: bool, now: float, local: LocalTime) -> tuple[str, ...]:
    """The types of a job in canonical order, with times in Unix seconds. Raises `BadInput`."""
    given = _listed(value, text, '["besteffort"]')
    words = [part for word in given for part in _parts(plain_text(word, MAX_TEXT))]
    if not words:
        return ()
    if len(words) > MAX_TYPES:
        raise BadInput(f"has more than {MAX_TYPES} types", hint="give each once")
    from rota.plan.language.type_parser import parse_types, type_words

    read = parse_types(words, moment=lambda moment: parse_moment(moment, now=now, local=local))
    for name, limit in (("deadline", read.deadline), ("expire", read.expire)):
        if limit is not None and limit < now:
            raise BadInput(f"type '{name}': the time is in the past", hint="give a time to come, such as now+2h")
    return type_words(read)


def check_texts(texts: tuple[str, ...]) -> None:
    """Refuse alternatives or types of a form that no parser makes; the planner reads them. Raises `BadInput`."""
    if len(texts) > MAX_ALTERNATIVES:
        raise BadInput(f"has more than {MAX_ALTERNATIVES} members", hint="give fewer")
    if not all(texts) or any("\0" in text or len(text.encode()) > MAX_TEXT for text in texts):
        raise BadInput("a text is empty, too long or has a NUL byte")


def check_terms(words: tuple[str, ...], at: float) -> None:
    """Refuse types that a reservation cannot have. Raises `BadInput`."""
    from rota.plan.language.type_parser import check_reservation, parse_types

    check_reservation(parse_types(words), at)


def _listed(value: object, text: bool, example: str) -> list[object]:
    if value is None:
        return []
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise BadInput(f"must be a text or a list of texts, not {kind(value)}", hint=f"write it like {example}")
    return [] if list(words) == [_NONE] else list(words)


def _parts(word: str) -> list[str]:
    """Split types at commas, but not at the comma within `timesharing=user,*`."""
    parts: list[str] = []
    for part in word.split(","):
        if parts and parts[-1].lstrip().startswith("timesharing=") and parts[-1].count(",") == 0:
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return [part.strip() for part in parts]
