"""One session with every command that answers in JSON. It is played with the program of a release when golden
files are made, and with today's in the test; the answers are compared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

#: `rota ARGS` with an input: its status, output and errors.
Rota = Callable[..., tuple[int, str, str]]

_HERE = ("--cpus", "0", "--mem", "1M", "--cwd", "/")
_TRACE = "".join(f"{n} {n * 5} 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 -1 -1 -1\n" for n in range(1, 6))
_WR = '{"cmd": "echo wr", "cwd": "/", "req_grp": "g", "memory": "10M", "time": "1m", "rep_grp": "r"}\n'
#: Words that stand for a command with spaces in it.
_COMMANDS = {"LONG": "trap : USR2; while :; do sleep 0.1; done", "FAIL": "exit 4"}

#: Each: words of the command, its input, and, where it must be waited for, the job and state to wait for first.
STEPS: tuple[tuple[str, str, tuple[int, str] | None], ...] = (
    ("version", "", None),
    ("config show", "", None),
    ("config check", "", None),
    ("manager start", "", None),
    ("add ... -", "echo one\necho two # second\nexit 3\n", None),  # 1-3
    ("add --dry-run ... -", "echo one\necho new\n", None),
    ("add ... -", "echo one\necho two # second\n", None),
    ("add ... --name long --walltime 1h --checkpoint 10s -- LONG", "", None),  # 4
    ("add ... --array 1-3 --limit licence:1 --learn golden -- true", "", None),  # 5-7
    ("add ... --after 4 --dep-group g --on-exit cleanup --scratch -- true", "", (4, "running")),  # 8
    ("add ... --retries 0 --input-bytes 10 -- FAIL", "", None),  # 9
    ("run ... -- echo hello", "", None),  # 10
    ("run ... -", "echo three\nexit 5\n", None),  # 11-12
    ("wait 1 2 5-7 9", "", None),
    ("jobs", "", None),
    ("jobs --limit 2 state=complete", "", None),
    ("status", "", None),
    ("show 1", "", None),
    ("show 4", "", None),
    ("show 5", "", None),
    ("show 8", "", None),
    ("show 9", "", (9, "failed")),
    ("show 99", "", None),
    ("why 8", "", None),
    ("why 4", "", None),
    ("plan -l core=1,walltime=10m", "", None),
    ("gantt", "", None),
    ("logs 1", "", None),
    ("logs 99", "", None),
    ("hold 8", "", None),
    ("release 8", "", None),
    ("modify --priority 7 --name other 8", "", None),
    ("suspend 4", "", None),
    ("resume 4", "", (4, "suspended")),
    ("signal 4 CONT", "", (4, "running")),
    ("checkpoint 4", "", None),
    ("walltime 4 +10m", "", None),
    ("confirm-dead 4", "", None),
    ("exec 4 -- echo inside", "", None),
    ("retry 9", "", None),
    ("limit licence:2@08:00-17:00", "", None),
    ("limit", "", None),
    ("learn", "", (9, "failed")),
    ("learn golden", "", None),
    ("learn --forget golden", "", None),
    ("accounting", "", None),
    ("accounting --by user --window hour", "", None),
    ("usage", "", None),
    ("simulate --procs 4 -", _TRACE, None),
    ("simulate --procs 4 --policy fcfs --policy easy -", _TRACE, None),
    ("node list", "", None),
    ("node show HOST", "", None),
    ("node usage", "", None),
    ("node set --reason why HOST", "", None),
    ("property add gpu --type yesno", "", None),
    ("property list", "", None),
    ("resource add --hosts far[1-2] --cores 2 --set gpu=yes", "", None),
    ("resource list", "", None),
    ("resource set --hosts far1 gpu=no", "", None),
    ("resource remove --hosts far[1-2]", "", None),
    ("queue add night --priority 3 --order fairshare --share ann=0.5", "", None),
    ("queue set night --walltime 8h", "", None),
    ("queue list", "", None),
    ("quota set *,*,*,/ 16 50", "", None),
    ("quota list", "", None),
    ("quota remove *,*,*,/", "", None),
    ("calendar add sat,sun weekend", "", None),
    ("calendar list", "", None),
    ("calendar show", "", None),
    ("calendar remove sat,sun", "", None),
    ("rule add short --match queue=night --cap walltime=12h", "", None),
    ("rule list", "", None),
    ("rule show short", "", None),
    ("rule test -q night --walltime 20h", "", None),
    ("rule move short 1", "", None),
    ("rule set short --cap walltime=10h", "", None),
    ("rule remove short", "", None),
    ("queue remove night", "", None),
    ("property remove gpu", "", None),
    ("rule reset default-queue", "", None),
    ("node remove nowhere", "", None),
    ("import wr --dry-run -", _WR, None),
    ("import wr -", _WR, None),
    ("manager status", "", None),
    ("manager token add laptop", "", None),
    ("manager token list", "", None),
    ("manager token remove laptop", "", None),
    ("manager ui --no-open", "", None),
    ("manager pause", "", None),
    ("manager resume", "", None),
    ("kill 4", "", None),
    ("wait 8", "", (4, "cancelled")),
    ("remove 1", "", None),
    ("doctor", "", None),
    ("nonsense", "", None),
    ("add --mem 500 -- true", "", None),
    ("manager logs", "", None),
    ("manager backup PLACE/kept.backup", "", None),
    ("manager stop", "", None),
    ("status", "", None),
    ("manager start", "", None),
    ("manager drain", "", None),
    ("manager restore PLACE/kept.backup", "", None),
)
#: Commands that answer with a screen, a terminal or a script, or stay.
NOT_JSON = {"top", "connect", "rsh", "completion", "node add", "node run"}
#: Commands that no release had yet: they come to the end of the steps when the next one is recorded.
NEWER = {
    *("calendar load", "manager adopt", "pool list", "pool status"),
    *("queue close", "queue open", "share list", "share set"),
    *("gang show", "gang wait", "machine-group list", "machine-group remove", "machine-group set"),
    *("node ready", "node reserve", "node return"),
    *("result",),
    *("pipeline list", "pipeline pause", "pipeline resume", "pipeline retry", "pipeline run", "pipeline show"),
    *("populate check", "populate migrate", "populate run", "populate status"),
}


def play(rota: Rota, place: str) -> list[dict[str, Any]]:
    """All steps in a new deployment, with a directory for files: what was typed, the status, and the JSON that
    was printed (or None)."""
    told: list[dict[str, Any]] = []
    for words, input, first in STEPS:
        if first is not None:
            _wait(rota, *first)
        args = [part for word in words.split() for part in (_HERE if word == "..." else (word,))]
        args = [_COMMANDS.get(word, word).replace("PLACE", place) for word in args]
        if "HOST" in args:
            args[args.index("HOST")] = json.loads(rota("node", "--json", "list")[1])["nodes"][0]["host"]
        code, out, err = rota(args[0], "--json", *args[1:], input=input)
        told.append({"typed": words, "status": code, "value": _parsed(out) or _parsed(err)})
    return told


def _wait(rota: Rota, job: int, state: str) -> None:
    deadline = time.monotonic() + 60
    while (now := json.loads(rota("show", "--json", str(job))[1])["state"]) != state:
        assert time.monotonic() < deadline, f"job {job} is {now}, not {state}"
        time.sleep(0.05)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
