"""Processes in the interpreters of tables, which answer one question after the other."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, convert, json

from rota.populate import inside
from rota.populate.source.base import Key, Look, TableFailed, Wanted

#: What goes on the `PYTHONPATH` of those who run batches.
INSIDE: Final = str(Path(inside.__file__).parent)
#: An import, or a query, that takes longer has failed.
PATIENCE_S: Final = 600.0
_IMPORT_S: Final = 120.0
_PARTING_S: Final = 5.0


class Desk:
    """One process. It is started when it is needed, and again after it died."""

    def __init__(
        self,
        python: str,
        *,
        directory: str,
        settings: Mapping[str, object],
        patience_s: float = PATIENCE_S,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.python = python
        self.directory = directory
        self.settings = dict(settings)
        self.patience_s = patience_s
        self.generation = 0  #: of processes
        self._env = dict(os.environ if env is None else env)
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ask(self, op: str, *, patience_s: float = 0, **what: object) -> Any:
        """Its answer. Raises `TableFailed`."""
        if self._process is None:
            self._start()
        return self._ask(op, patience_s or self.patience_s, what)

    @property
    def pid(self) -> int:
        """Of its process; 0: there is none."""
        return self._process.pid if self._process is not None else 0

    def close(self) -> None:
        """End the process, and with it its connections."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_PARTING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _start(self) -> None:
        paths = [INSIDE, self.directory, self._env.get("PYTHONPATH", "")]
        env = {**self._env, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [self.python, "-m", "rota_tables.desk"]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.directory, env=env, bufsize=0
            )
        except OSError as error:
            raise TableFailed(f"{self.python} cannot be started: {error.strerror}", kind="import") from None
        self.generation += 1
        self._rest = b""
        self._ask("configure", self.patience_s, {"settings": self.settings})

    def _ask(self, op: str, patience_s: float, what: Mapping[str, object]) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            question = memoryview(json.encode({"op": op, **what}) + b"\n")
            while question:
                question = question[process.stdin.write(question) or 0 :]
            line = self._line(process, patience_s)
            answer = json.decode(line)
        except TimeoutError:
            self._kill()
            text = f"{self.python} did not answer '{op}' within {patience_s:g} s{_about(what)}"
            raise TableFailed(text, kind="import" if op == "open" else "error") from None
        except (OSError, EOFError, DecodeError):
            # It may be about to end: its own exit status says more than that of our kill.
            status = self._kill(after_s=_PARTING_S)
            text = f"{self.python} ended while it was asked '{op}' (exit status {status}){_about(what)}"
            raise TableFailed(text, kind="import" if op == "open" else "error") from None
        if (error := answer.get("error")) is not None:
            if error["kind"] == "database":
                # Not every connection comes back by itself, and what was lost took our lock with it.
                self.close()
            raise TableFailed(error["text"], kind=error["kind"], module=error["module"], stack=error["stack"])
        return answer["ok"]

    def _line(self, process: subprocess.Popen[bytes], patience_s: float) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + patience_s
        parts = [self._rest]
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise TimeoutError
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise EOFError
                parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _kill(self, *, after_s: float = 0) -> int:
        process, self._process = self._process, None
        assert process is not None
        try:
            status = process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return status


def _about(what: Mapping[str, object]) -> str:
    """Which table it was."""
    table = what.get("table")
    name = table["name"] if isinstance(table, dict) else what.get("name")
    return f": {name}" if name else ""


class DeskSource:
    """A table whose ledger is in the process of its interpreter."""

    def __init__(self, desk: Desk, spec: Mapping[str, object]) -> None:
        self.desk = desk
        self.spec = dict(spec)
        self._opened_in = 0

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    def open(self) -> list[str]:
        if self._opened_in == self.desk.generation and self.desk.pid:
            return []
        return self._open(check=True)

    def _open(self, *, check: bool) -> list[str]:
        self._opened_in = 0
        found = self.desk.ask("open", patience_s=_IMPORT_S, table=self.spec, check=check)
        self._opened_in = self.desk.generation
        return convert(found, list[str])

    def look(self, wanted: Sequence[Wanted]) -> Look:
        self.open()
        return convert(self.desk.ask("look", name=self.name, bins=wanted), Look)

    def claim(self, batches: Mapping[str, Sequence[Key]], lease_s: float) -> dict[str, list[Key]]:
        self.open()
        found = self.desk.ask("claim", name=self.name, batches=batches, lease_s=lease_s)
        return convert(found, dict[str, list[Key]])

    def release(self, token: str, *, on_lost: str, why: str) -> tuple[int, int]:
        self.open()
        found = self.desk.ask("release", name=self.name, token=token, on_lost=on_lost, why=why)
        return convert(found, tuple[int, int])

    def migrate(self) -> list[str]:
        # Before that, the table may say that it cannot be used.
        self._open(check=False)
        done = convert(self.desk.ask("migrate", name=self.name), list[str])
        self._opened_in = 0
        return done

    def lock(self, name: str) -> bool:
        self.open()
        return bool(self.desk.ask("lock", name=self.name, lock=name))

    def close(self) -> None:
        self.desk.close()
