"""Where a deployment lives and how it is set up: `Home` (its paths) and `Settings` (its choices).

Settings come from flags, `ROTA_*` variables, `$ROTA_HOME/rota.toml`, `~/.config/rota/rota.toml` and
`/etc/rota/rota.toml`; the nearest wins, and `Loaded.origin` remembers which that was. Each setting is
declared once, in `Settings`, with its kind and its documentation.
"""

from __future__ import annotations

import os
import stat
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from rota.errors import BadInput, EnvironmentFault
from rota.units import format_duration, format_size, parse_duration, parse_size

#: The longest path a Unix socket can have.
MAX_SOCKET_PATH: Final = 107


def _setting(doc: str, kind: str, **extra: Any) -> Meta:
    return Meta(description=doc, extra={"kind": kind, **extra})


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of a deployment, with their defaults. Durations are seconds, sizes bytes."""

    host: Annotated[str, _setting("Address the manager listens on for TLS connections.", "text")] = "127.0.0.1"
    port: Annotated[
        int,
        _setting("Port of that listener; 0 takes a free one, and keeps it if it can.", "int", low=0, high=65535),
    ] = 0
    http: Annotated[
        str,
        _setting(
            "Whether the dashboard and the HTTP API are served: `on` (from the start of the manager, or, when "
            "`rota run` started it, from the first `rota manager ui`) or `off`.",
            "choice",
            choices=("on", "off"),
        ),
    ] = "on"
    http_host: Annotated[str, _setting("Address they are served on; beyond loopback by TLS only.", "text")] = (
        "127.0.0.1"
    )
    http_port: Annotated[int, _setting("Port of that; 0 takes a free one.", "int", low=0, high=65535)] = 0
    http_names: Annotated[
        str | None,
        _setting("More host names by which browsers may call it, with commas; others are refused.", "text"),
    ] = None
    session: Annotated[float, _setting("How long a browser stays logged in.", "duration", low=60.0)] = 12 * 3600.0
    touch_s: Annotated[
        float,
        _setting("How often a runner tells the manager that it is alive.", "duration", low=0.05, bare=True),
    ] = 15.0
    lost_after: Annotated[
        float, _setting("Silence of a runner after which its jobs are `lost`.", "duration", low=0.1)
    ] = 60.0
    dead_after: Annotated[
        float,
        _setting(
            "Silence after which a node is called `dead` and not only `suspected`; nothing else changes.",
            "duration",
            low=1.0,
        ),
    ] = 3600.0
    orphan_after: Annotated[
        float,
        _setting(
            "How long a runner without a manager goes on before it ends its own jobs. "
            "Lost jobs are given up ten minutes after that.",
            "duration",
            low=1.0,
        ),
    ] = 7 * 86400.0
    grace: Annotated[float, _setting("Time between TERM and KILL when a job is ended.", "duration", low=0.0)] = 5.0
    idle_stop: Annotated[
        float,
        _setting(
            "A manager that `rota run` started stops this long after its last job. "
            "A bare number is taken as seconds.",
            "duration",
            low=0.0,
            bare=True,
        ),
    ] = 60.0
    keep_output: Annotated[
        int,
        _setting(
            "How much of each output stream of an attempt is kept whole; beyond it, its head and its tail.",
            "size",
            low=4096,
        ),
    ] = 16 << 20
    output_days: Annotated[float, _setting("How long the output of ended jobs is kept.", "duration", low=1.0)] = (
        30 * 86400.0
    )
    output_space: Annotated[
        int, _setting("How much disk the kept output may take; the oldest goes first.", "size", low=1 << 20)
    ] = 20 << 30
    containment: Annotated[
        str,
        _setting(
            "What holds the processes of a job together: `cgroup`, `session`, or `auto` for the best.",
            "choice",
            choices=("auto", "cgroup", "session"),
        ),
    ] = "auto"
    containment_script: Annotated[
        str | None,
        _setting(
            "Path of a script on every node that holds the processes of a job together instead of control groups: "
            "`SCRIPT make|add|freeze|thaw|kill|clean JOB ATTEMPT CPU_LIST [PID]`.",
            "text",
        ),
    ] = None
    enforce_memory: Annotated[
        str,
        _setting(
            "What happens to a job that takes more memory than it asked for. `auto`: it is ended only when the "
            "host is nearly full. `cgroup`: the kernel ends it at its request and a little more, where control "
            "groups can be made; starting a short job then takes about twice as long.",
            "choice",
            choices=("auto", "cgroup"),
        ),
    ] = "auto"
    behaviour_timeout: Annotated[
        float,
        _setting(
            "How long each command of `on_success`, `on_failure` and `on_exit` may run. When the job was killed, "
            "all of them together have the rest of its `grace`, or up to 5 s of it.",
            "duration",
            low=0.1,
        ),
    ] = 300.0
    interactive_grace: Annotated[
        float,
        _setting(
            "How long the terminal of an interactive job is kept when the connection to it is lost, or nobody has "
            "attached to it yet; then it is hung up.",
            "duration",
            low=0.0,
        ),
    ] = 60.0
    prologue: Annotated[
        str | None,
        _setting(
            "Path of a script on every node that runs there before the command of a job. If it fails, the node is "
            "`suspected` and the job runs elsewhere.",
            "text",
        ),
    ] = None
    epilogue: Annotated[
        str | None,
        _setting(
            "The same for when nothing of a job is left on the node. If it fails, the node is `suspected`; what "
            "became of the job stays as it is.",
            "text",
        ),
    ] = None
    server_prologue: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host that runs before a job is sent to its node. A job for which "
            "it fails three times is `failed`.",
            "text",
        ),
    ] = None
    server_epilogue: Annotated[
        str | None, _setting("The same for when an attempt of a job is over. Its failure is recorded.", "text")
    ] = None
    suspend_hook: Annotated[
        str | None,
        _setting(
            "Path of a script on every node that runs there just after all processes of a job were stopped. "
            "Its failure is recorded in the story of the job.",
            "text",
        ),
    ] = None
    resume_hook: Annotated[str | None, _setting("The same just before they go on.", "text")] = None
    walltime_warning: Annotated[
        float,
        _setting(
            "How long before its walltime is over a job is sent `warn_signal`; 0s: it is not.", "duration", low=0.0
        ),
    ] = 0.0
    warn_signal: Annotated[
        str,
        _setting(
            "The signal of that warning. CONT is harmless to those that do not know of it.",
            "choice",
            choices=("CONT", "USR1", "USR2", "TERM", "INT", "HUP", "URG", "XCPU"),
        ),
    ] = "CONT"
    checkpoint_grace: Annotated[
        float,
        _setting(
            "How long a besteffort job that asked for checkpoints may write one before it is ended for another.",
            "duration",
            low=0.0,
        ),
    ] = 30.0
    hook_timeout: Annotated[
        float, _setting("How long each run of a script of the site may take.", "duration", low=0.1)
    ] = 60.0
    fence_cmd: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host, called with the name of a silent node that has lost jobs. "
            "That it succeeds proves that the machine is off: the jobs end, and their retries decide.",
            "text",
        ),
    ] = None
    heal_cmd: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host, called every `heal_every` with the name of a suspected node "
            "whose agent answers. If it succeeds, the node is `alive` again.",
            "text",
        ),
    ] = None
    heal_every: Annotated[
        float, _setting("How often `heal_cmd` and `fence_cmd` are tried for one node.", "duration", low=0.1)
    ] = 60.0
    deploy_host: Annotated[
        str | None,
        _setting("Node that the commands of `deploy` jobs run on; unset: this host, if it runs jobs.", "text"),
    ] = None
    cosystem_host: Annotated[str | None, _setting("The same for the commands of `cosystem` jobs.", "text")] = None
    reservation_patience: Annotated[
        float,
        _setting(
            "How long a reservation waits at its start for resources that are missing; then it begins with fewer.",
            "duration",
            low=0.0,
        ),
    ] = 300.0
    local: Annotated[
        str,
        _setting(
            "Whether jobs run on the manager's own host: `on`, or `off` where there are nodes for that.",
            "choice",
            choices=("on", "off"),
        ),
    ] = "on"
    sleep_cmd: Annotated[
        str | None,
        _setting(
            "Command on the manager's host that puts a node to sleep; the node's name is its last argument. "
            "Needs `wake_cmd` as well. Unset: nodes do not sleep.",
            "text",
        ),
    ] = None
    wake_cmd: Annotated[str | None, _setting("Command that wakes a node, called like `sleep_cmd`.", "text")] = None
    sleep_after: Annotated[
        float, _setting("A node that has been idle for this long may be put to sleep.", "duration", low=0.1)
    ] = 1800.0
    sleep_gap: Annotated[
        float,
        _setting("… unless a job is planned there within this time. At least `wake_time`.", "duration", low=0.1),
    ] = 3600.0
    wake_time: Annotated[
        float,
        _setting(
            "How long a node takes to wake: so long before a planned start it is woken, and a job that needs it "
            "now is planned so much later.",
            "duration",
            low=0.1,
        ),
    ] = 300.0
    wake_timeout: Annotated[
        float,
        _setting(
            "A node that has not come this long after it was woken is `suspected`, and its jobs are planned "
            "elsewhere. Also how long `sleep_cmd` and `wake_cmd` may run. Longer than `wake_time`.",
            "duration",
            low=0.1,
        ),
    ] = 900.0
    keep_alive: Annotated[
        str | None,
        _setting(
            "How many idle nodes are kept awake: `2 where gpu='YES', 1` are two idle nodes that match, and one "
            "idle node of any kind.",
            "text",
        ),
    ] = None
    cores: Annotated[
        int | None,
        _setting("Cores of this host that jobs may use; unset: all of them.", "int", low=1, high=65536),
    ] = None
    mem: Annotated[
        int | None,
        _setting("Memory of this host that jobs may use; unset: what it has.", "size", low=1 << 20),
    ] = None
    disk: Annotated[
        int | None, _setting("Disk of this host that jobs may use; unset: what is free.", "size", low=0)
    ] = None
    max_runners: Annotated[
        int,
        _setting("How many runners a delegated pool is asked for at most.", "int", low=0, high=1_000_000),
    ] = 1000
    log_level: Annotated[
        str,
        _setting(
            "How much the manager writes to its log.", "choice", choices=("debug", "info", "warning", "error")
        ),
    ] = "info"

    @property
    def names(self) -> list[str]:
        """`http_names`, one by one."""
        return [name.strip() for name in (self.http_names or "").split(",") if name.strip()]


class Setting(Struct, frozen=True):
    """One setting as documented: what `config show` and the reference page print."""

    name: str
    kind: str  #: text, int, duration, size, choice
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
        """A value as it would be written in `rota.toml`, without quotes."""
        if value is None:
            return "unset"
        if self.kind == "duration":
            return format_duration(value)
        return format_size(value) if self.kind == "size" else str(value)

    def read(self, value: object, *, text: bool = False) -> Any:
        """The value of this setting from TOML (typed) or from a variable or flag (`text`)."""
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
            raise BadInput("must be a text")
        if self.choices and value not in self.choices:
            raise BadInput(f"'{value}' is not one of its values", hint=f"use {', '.join(self.choices)}")
        return value


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
    """Every setting by name, in the order of their declaration."""
    hints = typing.get_type_hints(Settings, include_extras=True)
    found = {}
    for declared in msgspec.structs.fields(Settings):
        meta: Meta = hints[declared.name].__metadata__[0]
        extra = meta.extra or {}
        doc = meta.description or ""
        found[declared.name] = Setting(name=declared.name, doc=doc, default=declared.default, **extra)
    return found


class Loaded(Struct, frozen=True):
    """Settings, and for each where its value comes from: `default`, a file, a variable, a flag."""

    settings: Settings
    origin: dict[str, str]
    files: list[str] = field(default_factory=list)  #: that were read, nearest first


def load(
    home: Home, *, environ: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Loaded:
    """Read all sources. Raises `BadInput` that names the source and the setting."""
    environ = os.environ if environ is None else environ
    known = all_settings()
    values: dict[str, Any] = {}
    origin = dict.fromkeys(known, "default")
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
    """Raise `BadInput` if what is said about sleeping nodes contradicts itself."""
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
    """Where `rota.toml` is looked for, nearest first."""
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
    if name not in known:
        import difflib

        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "list the settings with 'rota config show'"
        raise BadInput(f"{source}: unknown setting '{name}'", hint=hint)
    try:
        return known[name].read(value, text=text)
    except BadInput as error:
        raise BadInput(f"{source}: setting '{name}': {error.message}", hint=error.hint) from None


# ------------------------------------------------------------------ paths


class ManagerFile(Struct):
    """`manager.json`: how to find the manager of this deployment. Written by the manager."""

    pid: int = 0
    socket: str = ""
    address: str | None = None  #: HOST:PORT of the TLS listener
    version: str = ""
    generation: int = 0
    started_at: str = ""


def node_home(name: str) -> Path:
    """Where the agent of a node keeps its own files, unless it is told."""
    import socket

    leaf = (name or socket.gethostname() or "localhost").replace("/", "_")
    if os.geteuid() == 0:
        return Path("/var/lib/rota/nodes") / leaf
    return Home.find(environ={k: v for k, v in os.environ.items() if k != "ROTA_HOME"}).path / "nodes" / leaf


class Home:
    """The directory of one deployment and the paths in it. Creates nothing unless asked to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Home) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    @classmethod
    def find(cls, given: str | None = None, environ: Mapping[str, str] | None = None) -> Home:
        """The deployment that is meant: what is given, `$ROTA_HOME`, or the place for a user's state."""
        environ = os.environ if environ is None else environ
        if explicit := given or environ.get("ROTA_HOME"):
            if "\0" in explicit:
                raise BadInput("the deployment's directory contains a NUL byte", hint="correct --home")
            return cls(os.path.expanduser(explicit))
        state = environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(state):
            user = environ.get("HOME") or os.path.expanduser("~")
            if not os.path.isabs(user):
                raise EnvironmentFault("there is no home directory", hint="set ROTA_HOME")
            state = os.path.join(user, ".local", "state")
        return cls(os.path.join(state, "rota"))

    @property
    def database(self) -> Path:
        return self.path / "rota.db"

    @property
    def config(self) -> Path:
        return self.path / "rota.toml"

    @property
    def manager_file(self) -> Path:
        return self.path / "manager.json"

    @property
    def lock(self) -> Path:
        return self.path / "manager.lock"

    @property
    def tls(self) -> Path:
        return self.path / "tls"

    @property
    def ca(self) -> Path:
        return self.tls / "ca.pem"

    @property
    def tokens(self) -> Path:
        return self.path / "tokens"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def runners(self) -> Path:
        return self.path / "runners"

    @property
    def socket(self) -> Path:
        """Where the manager listens: in the home, or, if that path is too long for a socket, in a
        private directory with a short name made from it. `manager.json` records it."""
        near = self.path / "manager.sock"
        if len(os.fsencode(near)) <= MAX_SOCKET_PATH:
            return near
        import hashlib

        name = f"rota-{os.getuid()}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]}"
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        for base in (runtime, "/tmp"):
            far = os.path.join(base, name, "manager.sock")
            if os.path.isabs(base) and os.path.isdir(base) and len(os.fsencode(far)) <= MAX_SOCKET_PATH:
                return Path(far)
        raise EnvironmentFault(
            f"no place for the manager's socket: {near} is too long", hint="set a shorter ROTA_HOME"
        )

    def create(self) -> None:
        """Make the home and its directories, private to this user. Raises `EnvironmentFault`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(self.path)
            for path in (self.tls, self.tokens, self.logs, self.output, self.runners):
                path.mkdir(mode=0o700, exist_ok=True)
            if self.socket.parent != self.path:
                self.socket.parent.mkdir(mode=0o700, exist_ok=True)
                check_private(self.socket.parent)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot use {self.path} as the deployment's directory: {error.strerror}",
                hint="choose another with --home or ROTA_HOME",
            ) from None

    def read_manager_file(self) -> ManagerFile | None:
        """What the manager wrote about itself; None if there is nothing usable. It may be stale."""
        try:
            return msgspec.json.decode(self.manager_file.read_bytes(), type=ManagerFile)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None


def check_private(path: Path) -> None:
    """Raise `EnvironmentFault` unless the directory is ours and nobody else may write to it."""
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise EnvironmentFault(f"{path} is not a directory", hint="choose another with --home or ROTA_HOME")
    if found.st_uid != os.getuid():
        raise EnvironmentFault(
            f"{path} belongs to another user (uid {found.st_uid})",
            hint="choose another with --home or ROTA_HOME",
        )
    if found.st_mode & 0o022:
        raise EnvironmentFault(f"others may write to {path}", hint=f"run: chmod go-rwx '{path}'")
