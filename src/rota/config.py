"""Reads the `Settings` of a deployment from their sources.

They come from flags, `ROTA_*` variables, `$ROTA_HOME/rota.toml`, `~/.config/rota/rota.toml` and
`/etc/rota/rota.toml`. The first of these wins, and `Loaded.origin` records which one it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Meta, Struct, field

from rota.errors import BadInput, EnvironmentFault
from rota.home import Home
from rota.pool_settings import read_pools
from rota.settings import Settings
from rota.units import format_duration, format_size, parse_duration, parse_size

#: The tables of pools. They are no setting with one value: only files have them.
POOLS: Final = "pools"


class Setting(Struct, frozen=True):
    """The documentation of one setting, as `config show` and the reference page print it."""

    name: str
    kind: str  #: text, path, command, int, duration, size, choice
    doc: str
    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    bare: bool = False  #: a number without a unit means seconds

    @property
    def variable(self) -> str:
        return f"ROTA_{self.name.upper()}"

    def show(self, value: Any) -> str:
        """A value in the notation of `rota.toml`, without quotes."""
        if value is None:
            return "unset"
        if self.kind == "duration":
            return format_duration(value)
        return format_size(value) if self.kind == "size" else str(value)

    def read(self, value: object, *, text: bool = False) -> Any:
        """Parse a value of this setting from TOML (typed), or from a variable or flag (`text`)."""
        match self.kind:
            case "duration":
                result: Any = self._seconds(value)
            case "size":
                result = parse_size(_as_text(value))
            case "int":
                result = _whole(value, text=text)
            case _:
                result = self._word(value)
        if self.low is not None and result < self.low:
            raise BadInput(f"must be at least {self.show(type(result)(self.low))}")
        if self.high is not None and result > self.high:
            raise BadInput(f"must be at most {int(self.high)}")
        return result

    def _seconds(self, value: object) -> float:
        if self.bare:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return parse_duration(f"{value:f}s")
            if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
                return parse_duration(value.strip() + "s")
        return parse_duration(_as_text(value))

    def _word(self, value: object) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise BadInput("must be a text", hint=f"use {', '.join(self.choices)}" if self.choices else "")
        if self.choices and value not in self.choices:
            raise BadInput(f"'{value}' is not one of its values", hint=f"use {', '.join(self.choices)}")
        if self.kind == "path" and not os.path.isabs(value):
            raise BadInput(f"'{value}' is not an absolute path", hint="begin it with /")
        if self.kind == "command":
            _check_command(value)
        return value


def _check_command(text: str) -> None:
    import shlex

    try:
        shlex.split(text)
    except ValueError as error:
        raise BadInput(f"it cannot be read as a command: {error}", hint="quote it as for a shell") from None


def _as_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadInput("must be a text with a unit", hint='write it like "90s" or "4G", in quotes')
    return str(value)


def _whole(value: object, *, text: bool) -> int:
    if text and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput("must be a whole number")
    return value


@cache
def all_settings() -> dict[str, Setting]:
    """All settings by name, in the order of declaration."""
    defaults = Settings()
    found = {}
    for name, declared in Settings.__annotations__.items():
        if name == POOLS:
            continue
        meta: Meta = declared.__metadata__[0]
        found[name] = Setting(
            name=name, doc=meta.description or "", default=getattr(defaults, name), **(meta.extra or {})
        )
    return found


class Loaded(Struct, frozen=True):
    """The settings, and the origin of each value: `default`, a file, a variable or a flag."""

    settings: Settings
    origin: dict[str, str]
    files: list[str] = field(default_factory=list)  #: files that were read, nearest first


def load(
    home: Home, *, environ: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Loaded:
    """Read all sources. Raises `BadInput` that names the source and the setting."""
    environ = os.environ if environ is None else environ
    known = all_settings()
    values: dict[str, Any] = {}
    origin = dict.fromkeys((*known, POOLS), "default")
    files = [path for path in config_files(home, environ) if path.exists()]
    for path in reversed(files):
        for name, value in _read_toml(path).items():
            values[name] = _value(name, value, source=str(path))
            origin[name] = str(path)
    for name, setting in known.items():
        if setting.variable in environ:
            values[name] = _value(name, environ[setting.variable], source=setting.variable, text=True)
            origin[name] = setting.variable
    for name, value in (flags or {}).items():
        if value is not None:
            source = f"--{name.replace('_', '-')}"
            values[name] = _value(name, value, source=source, text=True)
            origin[name] = source
    settings = Settings(**values)
    if settings.lost_after <= settings.touch_s:
        raise BadInput(
            f"lost_after ({format_duration(settings.lost_after)}, from {origin['lost_after']}) must be "
            f"longer than touch_s ({format_duration(settings.touch_s)}, from {origin['touch_s']})",
            hint="make lost_after a few times touch_s",
        )
    _check_energy(settings)
    return Loaded(settings, origin, [str(path) for path in files])


def _check_energy(settings: Settings) -> None:
    """Raise `BadInput` if the settings for sleeping nodes contradict each other."""
    if settings.sleep_cmd is not None and settings.wake_cmd is None:
        raise BadInput("sleep_cmd is set and wake_cmd is not", hint="set both: what sleeps must be woken")
    if settings.sleep_cmd is None:
        return
    for shorter, longer in (("wake_time", "sleep_gap"), ("wake_time", "wake_timeout")):
        low, high = getattr(settings, shorter), getattr(settings, longer)
        if high < low:
            raise BadInput(
                f"{longer} ({format_duration(high)}) is less than {shorter} ({format_duration(low)})",
                hint=f"make {longer} at least {shorter}",
            )


def config_files(home: Home, environ: Mapping[str, str] | None = None) -> list[Path]:
    """The locations of `rota.toml`, nearest first."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME", "")
    user = Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or os.path.expanduser("~")) / ".config"
    return [home.config, user / "rota" / "rota.toml", Path("/etc/rota/rota.toml")]


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}", hint="check its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}", hint="correct that line") from None


def _value(name: str, value: object, *, source: str, text: bool = False) -> Any:
    known = all_settings()
    if name == POOLS and not text:
        try:
            return read_pools(value)
        except BadInput as error:
            raise BadInput(f"{source}: {error.message}", hint=error.hint) from None
    if name not in known:
        import difflib

        close = difflib.get_close_matches(name, (*known, POOLS), n=1)
        hint = f"did you mean '{close[0]}'?" if close else "list the settings with 'rota config show'"
        raise BadInput(f"{source}: unknown setting '{name}'", hint=hint)
    try:
        return known[name].read(value, text=text)
    except BadInput as error:
        raise BadInput(f"{source}: setting '{name}': {error.message}", hint=error.hint) from None
