"""The syntax of admission rules: JSON objects, or words such as `walltime=12h`, parsed strictly.

    {"name": "short", "match": {"queue": "besteffort", "user": ["bob", "eve"]}, "cap": {"walltime": "12h"}}

Mistakes raise `BadInput`, which names the rule and the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from rota.core.admission.admission_rules import AdmissionRule, Value
from rota.errors import BadInput
from rota.plan.language import expression
from rota.plan.language.retry_codes import retry_codes
from rota.plan.language.type_parser import parse_types
from rota.pool_names import is_pool_name
from rota.units import format_duration, format_size, parse_duration, parse_size

ACTIONS: Final = ("default", "cap", "set", "reject")
#: The keys of a rule.
KEYS: Final = ("name", "match", *ACTIONS)

LONGEST: Final = 255
_LONGEST_WHERE: Final = 1024
_MOST_WORDS: Final = 1000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CORES: Final = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,2})?")
_WHOLE: Final = re.compile(r"[0-9]{1,15}")

#: Types that a rule cannot set, because they name another job or a time.
_OWN_TYPES: Final = ("inner", "deadline", "postpone", "expire")


# ------------------------------------------------------------------ kinds of values


def _duration(value: object) -> float:
    seconds = parse_duration(_with_unit(value, "12h"))
    if seconds <= 0:
        raise BadInput("must be more than nothing", hint="write a time such as 30m or 12h")
    return seconds


def _size(value: object) -> int:
    return parse_size(_with_unit(value, "4G"))


def _with_unit(value: object, example: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput("must be a text with a unit", hint=f"write it like {example}")
    return str(value)  # a bare number is refused by the parser, whose hint names the likely unit


def _whole(most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise BadInput(f"must be a whole number from 0 to {most}")
        return value

    return parse


def _cpus(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not _CORES.fullmatch(f"{value}"):
        raise BadInput("must be a number of cores", hint="write it like 1, 4 or 0.5")
    return round(float(value) * 100)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value.encode()) > LONGEST:
        raise BadInput(f"must be a printable text of at most {LONGEST} bytes")
    return value


def _filled(value: object) -> str:
    if not (text := _text(value)):
        raise BadInput("is empty")
    return text


def _types(value: object) -> tuple[str, ...]:
    words = tuple(
        word for word in (value if isinstance(value, list | tuple) else [value]) if isinstance(word, str)
    )
    for word in words:
        if word.partition("=")[0].strip() in _OWN_TYPES:
            raise BadInput(f"a rule cannot give type '{word[:40]}'", hint="only the job can say it")
    if not words:
        raise BadInput("must be a type or a list of types", hint="write it like besteffort")
    parse_types(words, moment=float)
    return words


def _where(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_WHERE:
        raise BadInput(
            f"must be a property expression of at most {_LONGEST_WHERE} characters", hint="write it like gpu = yes"
        )
    return expression.text(expression.parse(value))


def _pool(value: object) -> str:
    if not (name := _filled(value)) or not is_pool_name(name):
        raise BadInput("must be the name of a pool", hint="write it like local; see 'rota pool list'")
    return name


def _words(value: object) -> tuple[str, ...]:
    """Patterns: a list, or one text."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words or len(words) > _MOST_WORDS:
        raise BadInput("must be a text or a list of texts")
    return tuple(_text(word) for word in words)


def _codes(value: object) -> tuple[str, ...]:
    """Codes after which a job is retried: a list, or one text with commas."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise BadInput("must be a text or a list of texts", hint="write it like exit,lost")
    codes = retry_codes([word.strip() if isinstance(word, str) else word for word in words])
    if codes is None:
        raise BadInput("needs codes of reasons", hint="write it like exit,lost")
    return codes


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("yes", "true", "no", "false"):
        return value in ("yes", "true")
    raise BadInput("must be yes or no")


Reader = Callable[[Any], Value]

#: Field → its parser, and the actions that may change it.
FIELDS: Final[dict[str, tuple[Reader, tuple[str, ...]]]] = {
    "queue": (_filled, ("default", "set")),
    "project": (_text, ("default", "set")),
    "name": (_text, ("default", "set")),
    "type": (_types, ("default", "set")),
    "walltime": (_duration, ("default", "cap", "set")),
    "priority": (_whole(255), ("default", "cap", "set")),
    "mem": (_size, ("default", "cap", "set")),
    "disk": (_size, ("default", "cap", "set")),
    "time": (_duration, ("default", "cap", "set")),
    "cpus": (_cpus, ("cap", "set")),
    "gpus": (_whole(1024), ("cap", "set")),
    "retries": (_whole(10_000), ("cap", "set")),
    "retry_on": (_codes, ("default", "set")),
    "where": (_where, ("default", "set")),
    "pool": (_pool, ("default", "set")),
}

#: Condition → the parser of its value.
CONDITIONS: Final[dict[str, Reader]] = {
    **dict.fromkeys(("user", "unix_group", "queue", "project", "group", "name", "type", "uses", "pool"), _words),
    "where": _words,
    **dict.fromkeys(("interactive", "reservation", "system", "admin"), _flag),
    **{f"{field}_over": FIELDS[field][0] for field in ("walltime", "cpus", "mem", "disk", "time", "gpus")},
    **{f"{field}_over": FIELDS[field][0] for field in ("priority", "retries")},
    "reservations_over": _whole(1_000_000),
}


# ------------------------------------------------------------------ reading


def check_name(name: str) -> None:
    """Raise `BadInput` unless this can be the name of a rule."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"'{name[:40]}' cannot be the name of a rule", hint="use letters, digits and . _ - (at most 64)"
        )


def read_rule(data: object, *, name: str = "") -> AdmissionRule:
    """The rule in a JSON value. `name`: its name if the value has none. Raises `BadInput`."""
    if not isinstance(data, Mapping):
        raise BadInput("a rule is a JSON object", hint=f"with the keys {', '.join(KEYS)}")
    name = data.get("name", name)
    if not isinstance(name, str):
        raise BadInput("a rule needs a name, a text")
    check_name(name)
    try:
        return _read(data, name)
    except BadInput as error:
        raise BadInput(f"rule '{name}': {error.message}", hint=error.hint) from None


def _read(data: Mapping[str, object], name: str) -> AdmissionRule:
    for key in data:
        if key not in KEYS:
            raise _unknown("key", key, KEYS)
    does = [key for key in ACTIONS if key in data]
    if len(does) != 1:
        found = f"both '{does[0]}' and '{does[1]}'" if does else "nothing"
        raise BadInput(f"it does {found}", hint=f"give exactly one of {', '.join(ACTIONS)}")
    conditions = data.get("match", {})
    if not isinstance(conditions, Mapping):
        raise BadInput("'match' must be an object of conditions", hint='write it like {"queue": "default"}')
    match = {key: _value("match", key, value, CONDITIONS.get(key)) for key, value in conditions.items()}
    (action,) = does
    if action == "reject":
        message = data["reject"]
        if not isinstance(message, str) or not message.strip() or not message.isprintable():
            raise BadInput("'reject' needs a message, one line of text")
        if len(message.encode()) > LONGEST * 4:
            raise BadInput(f"the message is longer than {LONGEST * 4} bytes")
        return AdmissionRule(name=name, match=match, does=action, message=message.strip())
    fields = data[action]
    if not isinstance(fields, Mapping) or not fields:
        raise BadInput(f"'{action}' must be an object of fields", hint=f'write it like {{"{action}": {{…}}}}')
    values = {}
    for key, value in fields.items():
        if key in FIELDS and action not in FIELDS[key][1]:
            hint = f"it takes {' or '.join(FIELDS[key][1])}"
            if action == "default":
                hint = "every job has a value of it; " + hint
            raise BadInput(f"{action}: field '{key}' cannot have one", hint=hint)
        values[key] = _value(action, key, value, FIELDS[key][0] if key in FIELDS else None)
    return AdmissionRule(name=name, match=match, does=action, values=values)


def _value(where: str, key: str, value: object, read: Reader | None) -> Value:
    if read is None:
        raise _unknown(f"{where}: field", key, CONDITIONS if where == "match" else FIELDS)
    try:
        return read(value)
    except BadInput as error:
        raise BadInput(f"{where}: field '{key}': {error.message}", hint=error.hint) from None


def _unknown(what: str, key: object, known: Iterable[str]) -> BadInput:
    names = list(known)
    close = get_close_matches(str(key)[:60], names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}"
    shown = str(key).encode("unicode_escape", "backslashreplace").decode("ascii")[:60]
    return BadInput(f"{what} '{shown}': there is no such {what.rpartition(' ')[2]}", hint=hint)


def from_words(words: Iterable[str], *, option: str) -> dict[str, Any]:
    """`FIELD=VALUE` words of the command line as an object. Patterns may be repeated or separated by commas."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise BadInput(f"{option}: '{word[:40]}' is not FIELD=VALUE", hint=f"write it like {option} queue=x")
        many = key == "type" or (option == "--match" and CONDITIONS.get(key) is _words)
        if many:
            # A comma belongs to a type, timesharing=user,*, or to an expression: switch in ('sw1', 'sw2')
            found[key] = [*found.get(key, ()), *([value] if key in ("type", "where") else value.split(","))]
        elif key in found:
            raise BadInput(f"{option}: '{key}' is given twice", hint="give it once")
        else:
            found[key] = value
    return found


# ------------------------------------------------------------------ writing


def shown_value(field: str, value: Value | None) -> str | int | float | bool | list[str] | None:
    """A value as JSON, which `read_rule` reads back."""
    field = field.removesuffix("_over")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else list(value)
    if field in ("walltime", "time"):
        return format_duration(value)
    if field in ("mem", "disk"):
        return format_size(int(value))
    if field == "cpus":
        return value // 100 if value % 100 == 0 else value / 100
    return value


def write_rule(rule: AdmissionRule) -> dict[str, Any]:
    """The rule as a JSON value that `read_rule` reads."""
    body: dict[str, Any] = {"name": rule.name}
    if rule.match:
        body["match"] = {name: shown_value(name, value) for name, value in rule.match.items()}
    if rule.does == "reject":
        body["reject"] = rule.message
    else:
        body[rule.does] = {name: shown_value(name, value) for name, value in rule.values.items()}
    return body


def words_of(values: Mapping[str, Value]) -> str:
    """Conditions or fields in one line, for a table."""
    return " ".join(f"{name}={_word(shown_value(name, value))}" for name, value in values.items())


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, list) else str(value)


# ------------------------------------------------------------------ built-in rules

#: In order. A rule of the site with one of these names replaces the built-in one.
BUILT_IN: Final = tuple(
    read_rule(data)
    for data in (
        {"name": "default-queue", "default": {"queue": "default"}},
        {"name": "nodes-walltime", "match": {"uses": "nodes"}, "default": {"walltime": "2h"}},
        {"name": "interactive-walltime", "match": {"interactive": True}, "cap": {"walltime": "12h"}},
        {
            "name": "reservations",
            "match": {"reservation": True, "reservations_over": 2},
            "reject": "at most 2 reservations of a user may wait",
        },
        {"name": "no-root", "match": {"system": True, "user": "root"}, "reject": "root may not run jobs"},
    )
)
