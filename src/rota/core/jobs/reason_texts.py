"""Sentences for reason codes: programs read the codes, people the sentences."""

from __future__ import annotations

from typing import Final

_SENTENCES: Final = {
    "exit": "its command failed",
    "signal": "its command was ended by a signal",
    "memory": "it took more memory than it was given",
    "disk": "it took more disk than it was given",
    "time": "it ran for longer than expected",
    "walltime": "its walltime was over",
    "lost": "its runner is silent",
    "not_found": "its command or directory was not found",
    "exception": "the function raised an exception",
    "import": "its module or function could not be imported",
    "result": "what the function returned cannot be kept",
    "output_file": "a file for its output could not be written",
    "kill_requested": "it was killed on request",
    "preempted": "a job of higher rank needed its resources",
    "container": "its container does not let it run",
    "placeholder": "a placeholder keeps the resources it needs",
    "reservation": "a reservation decides when it may run",
    "expired": "it did not begin in time",
    "denied": "its user may not do that",
    "dependency": "it waits for another job",
    "dependency_never": "one of its dependencies can no longer be satisfied",
    "delayed": "it waits for its next attempt",
    "held": "it is held",
    "suspended": "it is suspended",
    "resuming": "it waits for its cores to go on",
    "resources": "it waits for resources",
    "no_resources": "no host that it could use is available now",
    "condition": "no machine that it could use is automated",
    "unsatisfiable": "no machine could ever run it",
    "pool": "it waits for a runner of its pool",
    "beyond_plan": "it is beyond the planned part of the queue",
    "limit": "a limit is in use",
    "window": "it is outside the hours in which it may run",
    "available_until": "its machines may not be used for long enough",
    "quota": "a quota is used up",
    "calendar": "a quota of the calendar is used up",
    "paused": "the manager is paused",
    "draining": "the manager takes no new work",
    "bug": "the manager met a bug and starts nothing",
    "waking": "its machines are being woken",
    "asleep": "machines that it could use are asleep",
    "gang": "it can only run together with the other members of its gang",
    "parts": "other hosts of the job are not ready",
    "closing": "other hosts of the job have not finished",
    "provision": "its machines could not be made ready",
    "prologue": "a script of the site could not prepare it",
    "epilogue": "a script of the site failed after it",
    "ready": "it starts as soon as there is room",
    "priority_cap": "its priority is lower on machines of a group",
    "share": "others go first by fair share",
    "replaced": "another job has taken its place",
}


def sentence(code: str, message: str = "") -> str:
    """Return the message, or the sentence for its code if the message says no more than the code."""
    if message and message != code and message != code.replace("_", " "):
        return message
    return _SENTENCES.get(code) or (message or code).replace("_", " ")
