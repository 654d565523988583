"""What can be set about a deployment: each setting is declared here once, with its kind and its documentation.

`rota.config` reads them from flags, variables and files.
"""

# No postponed annotations here: `rota.config` reads all of these, and every command would compile them from text.

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.pool_settings import PoolSettings


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
    output_spool: Annotated[
        int,
        _setting(
            "How much disk of each host may hold output that a `rota run` has not read yet. "
            "When it is full, the jobs of that run wait until it reads, or leaves.",
            "size",
            low=0,
        ),
    ] = 1 << 30
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
            "path",
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
            "path",
        ),
    ] = None
    epilogue: Annotated[
        str | None,
        _setting(
            "The same for when nothing of a job is left on the node. If it fails, the node is `suspected`; what "
            "became of the job stays as it is.",
            "path",
        ),
    ] = None
    server_prologue: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host that runs before a job is sent to its node. A job for which "
            "it fails three times is `failed`.",
            "command",
        ),
    ] = None
    server_epilogue: Annotated[
        str | None, _setting("The same for when an attempt of a job is over. Its failure is recorded.", "command")
    ] = None
    suspend_hook: Annotated[
        str | None,
        _setting(
            "Path of a script on every node that runs there just after all processes of a job were stopped. "
            "Its failure is recorded in the story of the job.",
            "path",
        ),
    ] = None
    resume_hook: Annotated[str | None, _setting("The same just before they go on.", "path")] = None
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
    expiry_hook: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host that runs before a job reaches its walltime. The job gets as "
            "much more time as the last line that it prints says.",
            "command",
        ),
    ] = None
    expiry_notice: Annotated[
        float,
        _setting(
            "How long before the walltime is over `expiry_hook` runs; at the earliest after half of it.",
            "duration",
            low=1.0,
        ),
    ] = 60.0
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
            "command",
        ),
    ] = None
    heal_cmd: Annotated[
        str | None,
        _setting(
            "Path of a script on the manager's host, called every `heal_every` with the name of a suspected node "
            "whose agent answers. If it succeeds, the node is `alive` again.",
            "command",
        ),
    ] = None
    heal_every: Annotated[
        float, _setting("How often `heal_cmd` and `fence_cmd` are tried for one node.", "duration", low=0.1)
    ] = 60.0
    provision_timeout: Annotated[
        float,
        _setting(
            "How long a machine may take to be ready for a job that has it provisioned, from the beginning of its "
            "provision command.",
            "duration",
            low=0.1,
        ),
    ] = 1800.0
    provision_wait_timeout: Annotated[
        float,
        _setting("How long a machine may wait until its provision command begins.", "duration", low=0.1),
    ] = 600.0
    deploy_host: Annotated[
        str | None,
        _setting(
            "Node that the commands of `deploy` jobs and the provision commands of nodes run on; unset: this "
            "host, for the former if it runs jobs.",
            "text",
        ),
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
    gang_patience: Annotated[
        float,
        _setting(
            "How long a gang waits before it gets a reservation, in queues without conservative backfilling.",
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
            "command",
        ),
    ] = None
    wake_cmd: Annotated[str | None, _setting("Command that wakes a node, called like `sleep_cmd`.", "command")] = (
        None
    )
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
        _setting(
            "How many runners each [delegated pool](pools.md) is asked for at most, unless its table says "
            "something else.",
            "int",
            low=0,
            high=1_000_000,
        ),
    ] = 1000
    log_level: Annotated[
        str,
        _setting(
            "How much the manager writes to its log.", "choice", choices=("debug", "info", "warning", "error")
        ),
    ] = "info"
    #: The tables `[pools.NAME]` by name, in their order. They have no variable and no flag.
    pools: dict[str, PoolSettings] = {}

    @property
    def names(self) -> list[str]:
        """`http_names`, one by one."""
        return [name.strip() for name in (self.http_names or "").split(",") if name.strip()]
