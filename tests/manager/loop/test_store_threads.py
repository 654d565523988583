"""The loop never waits for the store: once it listens, every call comes from another thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from socket import gethostname

from tests.deployment import deployment, wait_until

_SCRIPT = Path(__file__).with_name("checked_manager.py")


def test_no_call_of_the_store_comes_from_the_thread_of_the_loop(tmp_path: Path) -> None:
    with deployment(tmp_path) as made:
        made.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        made.ok("manager", "start")
        made.ok("manager", "pause")
        made.ok("add", "--", "echo", "early")  # its environment is not remembered by the next manager
        made.ok("manager", "stop")
        (made.home / "manager.json").unlink(missing_ok=True)
        found = tmp_path / "calls"
        words = [sys.executable, str(_SCRIPT), str(made.home), str(found)]
        manager = subprocess.Popen(words, env=made.env, stdin=subprocess.DEVNULL)
        wait_until((made.home / "manager.json").exists, "the manager listens")
        (made.work / "jobs").write_text("echo one\nexit 3\n")
        for words in (
            ["manager", "resume"], ["wait", "1"],
            ["run", "--", "echo", "hello"],
            ["add", "jobs"], ["add", "jobs"], ["add", "--rerun", "jobs"],
            ["add", "--after", "1", "--group", "g", "--", "sleep", "600"],
            ["status"], ["jobs"], ["jobs", "state=failed"], ["show", "1"], ["why", "@g"], ["logs", "1"],
            ["hold", "@g"], ["release", "@g"], ["modify", "--priority", "3", "@g"], ["kill", "@g"],
            ["retry", "@g"], ["kill", "@g"], ["remove", "@g"], ["learn"], ["limit", "a:3"], ["accounting"],
            ["usage"], ["share", "list"], ["gantt"], ["node", "list"], ["node", "show", gethostname()],
            ["queue", "list"], ["manager", "status"],
            ["manager", "backup", str(tmp_path / "copy.db")],
        ):  # fmt: skip
            done = made.rota(*words)
            assert done.returncode != 2, (
                f"{words}: {done.stderr}"
            )  # a job may not be ready for it, which is an answer, too
        made.ok("manager", "stop")
        assert manager.wait() == 0
        assert (tmp_path / "copy.db").exists()
        assert int((tmp_path / "calls.elsewhere").read_text()) > 20
        assert not found.exists(), found.read_text()
