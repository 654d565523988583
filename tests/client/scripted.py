"""A manager that follows a script: it speaks the real protocol over a real socket in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rota.core.answers import Added
from rota.home import Home
from rota.wire import codec
from rota.wire import messages as m

#: What to answer to a message; None: close the connection.
Script = Callable[["Conversation", Any], None]


class Conversation:
    """One accepted connection."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        self._connection = connection
        self.number = number  #: 1 for the first connection
        self.heard: list[Any] = []

    def send(self, message: m.Message) -> None:
        self._connection.sendall(codec.frame(message))

    def reply(self, n: int, value: Any) -> None:
        self.send(m.Reply(n, codec.body(value)))

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)


class ScriptedManager:
    """Accepts connections one after the other and lets the script answer."""

    def __init__(self, home: Home, script: Script) -> None:
        home.create()
        self._script = script
        self.conversations: list[Conversation] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home.socket))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                talk = Conversation(connection, len(self.conversations) + 1)
                self.conversations.append(talk)
                self._talk(connection, talk)

    def _talk(self, connection: socket.socket, talk: Conversation) -> None:
        reader: codec.Reader[Any] = codec.Reader(m.FromClient)
        while True:
            try:
                data = connection.recv(1 << 16)
                if not data:
                    return
                for message in reader.feed(data):
                    if isinstance(message, m.Hello):
                        talk.send(m.Welcome(m.PROTOCOL, message.role, "me", 1, "test"))
                    else:
                        talk.heard.append(message)
                        self._script(talk, message)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@contextmanager
def scripted(top: Path, script: Script) -> Iterator[tuple[Home, ScriptedManager]]:
    home = Home(top / "home")
    manager = ScriptedManager(home, script)
    try:
        yield home, manager
    finally:
        manager.close()


def accept_all(talk: Conversation, message: Any) -> None:
    """Answer every chunk of a submission as a manager with nothing in it would."""
    if isinstance(message, m.Add):
        done = message.first + len(message.cmds)
        talk.reply(message.n, None if message.more else Added(list(range(1, done + 1)), [], []))
    else:
        talk.reply(message.n, None)
