"""How a job is run, when it is tried again, and what follows."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import ADD_ANEW, JobField
from rota.core.fields.kind_builders import choice, count, optional

#: More attempts than anybody waits for.
MAX_RETRIES: Final = 10_000

FIELDS: Final = (
    JobField(
        name="retries", kind=count(0, MAX_RETRIES), default=3, spec_default=0, wr="retries", wr_alike=True,
        help="Further attempts after a failure (default: 3 with add, 0 with run).",
    ),
    JobField(
        name="backoff", kind=kinds.DURATION, default=30.0, attribute="backoff_s",
        help="Wait before a retry (default: 30s; doubles each time, at most 30 min, plus up to 30 s).",
    ),
    JobField(
        name="no_retry_over", kind=optional(kinds.DURATION, word="none"), default=None,
        attribute="no_retry_over_s", wr="no_retry_over_walltime",
        help="Do not retry an attempt that ran longer than this.",
    ),
    JobField(
        name="retry_on", kind=kinds.RETRY_ON, default=None, many=True,
        comment="reason codes; None: all where a retry can help, except walltime",
        help="Retry only attempts that ended for one of these reasons: exit, signal, memory, time, walltime, "
        "disk, lost, not_found, output_file, provision, exception, import, result (default: all but walltime, if "
        "another attempt can help).",
    ),
    JobField(
        name="pipefail", kind=kinds.FLAG, default=False, flags=("--pipefail/--no-pipefail",), run=True,
        label="pipefail",
        help="Fail if any part of a pipeline fails (default: no).",
    ),
    JobField(
        name="on_success", kind=kinds.BEHAVIOURS, default=(), many=True, run=True, label="on success",
        comment='behaviours: "run: CMD", "cleanup", "remove"',
        help="When the job is complete: 'run: CMD', 'cleanup' of its scratch directory, or 'remove'.",
    ),
    JobField(
        name="on_failure", kind=kinds.BEHAVIOURS, default=(), many=True, run=True, label="on failure",
        help="The same, when an attempt has failed.",
    ),
    JobField(
        name="on_exit", kind=kinds.BEHAVIOURS, default=(), many=True, run=True, label="on exit",
        help="The same, after every attempt and after the others.",
    ),
    JobField(
        name="stdout", kind=kinds.PATTERN, default="", flags=("-o", "--stdout"), run=True,
        comment="file name pattern; empty: Rota keeps the output",
        help="Write stdout to this file; %j id, %A array, %a index, %x name, %u user, %N host (default: kept by "
        "Rota).",
    ),
    JobField(
        name="stderr", kind=kinds.PATTERN, default="", flags=("-e", "--stderr"), run=True,
        help="The same for stderr.",
    ),
    JobField(
        name="job_key", kind=kinds.JOB_KEY, default=None, spec_default="", spec_type="str", view="",
        comment="SHA-256 of a secret; the secret lets its holder enter the job",
        help="File with a key that lets its holder enter the job with 'rota exec --job-key'; created if missing.",
        fixed=("who may enter a job is fixed when it is added", ADD_ANEW),
    ),
    JobField(
        name="checkpoint", kind=optional(kinds.POSITIVE_DURATION, word="none"), default=None,
        attribute="checkpoint_s", run=True,
        comment="it gets `signal` this long before its walltime ends",
        help="Send --signal this long before the walltime is over, and before a preemption.",
    ),
    JobField(
        name="signal", kind=kinds.SIGNAL, default="", run=True, view="checkpoint_signal",
        comment="asks for a checkpoint; empty: USR2",
        help="The signal that asks the job for a checkpoint (default: USR2).",
    ),
    JobField(
        name="provision", kind=kinds.PROVISION, default="", number=8, label="provision",
        comment="what its machines must be made into before it begins; empty: nothing",
        help="Prepare its machines first: what the provision command of each node is given or, on nodes without "
        "one, a command that runs there. Takes whole hosts.",
    ),
    JobField(
        name="reserve", kind=choice("always", "onfail", "onabort"), default="", number=9, label="reserve",
        comment="when it keeps its machines after the run; empty: never",
        help="Keep its machines for --reserve-for after the run: always, onfail (it failed) or onabort (it was "
        "ended: walltime, memory, lost, gang). Never after a kill.",
    ),
    JobField(
        name="reserve_for", kind=optional(kinds.POSITIVE_DURATION, word="none"), default=None, number=10,
        attribute="reserve_for_s", label="reserve for",
        help="How long --reserve keeps its machines.",
    ),
)  # fmt: skip
