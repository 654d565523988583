"""The outcome of an attempt, from evidence: its exit status, what the runner did to it, what the kernel recorded.

Also stores its output in a segment. Never guesses: without evidence the reason is empty, and the exit code or
signal speaks for itself.
"""

from __future__ import annotations

import os
import signal

from rota.core.jobs.outcome import Outcome
from rota.core.output.output_blocks import checksums
from rota.core.output.output_report import OutputReport, not_kept
from rota.launcher.base import CannotRun
from rota.runner import clock
from rota.runner.end.measure import Sampler, about_size, peak
from rota.runner.end.returned import verdict
from rota.runner.output.segments import Segments
from rota.runner.task import Task

_SHELLS = (b"sh: ", b"/bin/sh: ", b"bash: ", b"/bin/bash: ")


def judge(task: Task, sampler: Sampler, segments: Segments) -> Outcome:
    """The outcome of a task of which nothing is left."""
    usage = task.usage
    assert usage is not None
    code = os.waitstatus_to_exitcode(task.status or 0)
    cpu_s = usage.ru_utime + usage.ru_stime + task.cpu_s
    number = -code if code < 0 else None
    memory, at_most = peak(task)
    reason, message, permanent = _reason(task, code, sampler)
    returned = None
    if task.calls:
        failed, why, vain, returned = verdict(task.call_file, code)
        if failed and not reason and code >= 0:
            reason, message, permanent, code = failed, why, vain, 1
    if reason == "memory" and task.fence is not None:
        # Not for other jobs: it counts cached files, which a job does not need.
        memory = max(memory, task.fence.memory_peak())
    out, out_total, out_head = task.out.kept() if task.out is not None else (b"", 0, 0)
    err, err_total, err_head = task.err.kept() if task.err is not None else (b"", 0, 0)
    segment, offset, kept = "", 0, None
    if out or err:
        try:
            segment, offset = segments.append(out + err if out and err else out or err)
        except OSError as error:
            kept = not_kept(error)
            out = err = b""
        else:
            kept = OutputReport(checksums(out, err), out_head, err_head)
    return Outcome(
        exit_code=None if code < 0 else code,
        signal=number,
        reason=reason,
        message=message,
        started_at=task.started_at,
        ended_at=clock.now(),
        cpu_s=cpu_s,
        peak_mem=memory,
        peak_disk=_disk(task),
        segment=segment,
        offset=offset,
        out_len=len(out),
        err_len=len(err),
        out_total=out_total,
        err_total=err_total,
        permanent=permanent,
        kept=kept,
        most_mem=0 if memory else at_most,
        returned=returned,
    )


def quiet_success(task: Task) -> Outcome:
    """The outcome of a task that is `plain`, exited with 0 and was seen to be gone at `ended_at`."""
    usage = task.usage
    assert usage is not None
    cpu_s = usage.ru_utime + usage.ru_stime
    recorded = usage.ru_maxrss * 1024
    if task.launcher.is_own(recorded):
        return Outcome(0, None, "", "", task.started_at, task.ended_at, cpu_s, most_mem=recorded)
    return Outcome(0, None, "", "", task.started_at, task.ended_at, cpu_s, recorded)


def failed_to_start(why: CannotRun, started_at: float) -> Outcome:
    """The outcome of a command that could not be executed at all."""
    return Outcome(
        exit_code=why.exit_code,
        reason=why.reason,
        message=why.message,
        started_at=started_at,
        ended_at=clock.now(),
        permanent=why.permanent,
    )


def _disk(task: Task) -> int:
    if task.scratch is None:
        return 0
    return max(task.peak_disk, task.scratch.usage())


def _reason(task: Task, code: int, sampler: Sampler) -> tuple[str, str, bool]:
    """(reason, message, permanent)."""
    if task.reason:
        return task.reason, task.message, False
    fence = task.fence
    if code and fence is not None and fence.limited and fence.oom_kills():
        peak_mem, asked = about_size(fence.memory_peak()), about_size(task.env.size.mem)
        return "memory", f"killed at its memory limit: it used {peak_mem} and asked for {asked}", False
    # A shell turns the death of its child by KILL into exit 137.
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL) and sampler.out_of_memory(task):
        return "memory", "the kernel killed it for lack of memory", False
    if task.shell and code in (126, 127):
        return "not_found", _said_by_shell(task) or f"exit {code} from the shell", True
    return "", "", False


def _said_by_shell(task: Task) -> str:
    """The shell's own message, such as `nosuch: not found`, if there is one."""
    if task.err is None:
        return ""
    _, tail = task.err.read(max(0, task.err.total - 4096), 4096)
    for line in reversed(tail.splitlines()):
        if line.startswith(_SHELLS):
            return b": ".join(line.split(b": ")[-2:]).decode("utf-8", "replace")[:500]
    return ""
