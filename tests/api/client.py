"""A small HTTP client for tests: it sends exactly what it is told, and nothing by itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

TIMEOUT_S = 60.0


class Answer:
    """What came back."""

    def __init__(self, found: http.client.HTTPResponse) -> None:
        self.status = found.status
        self.headers = {name.lower(): value for name, value in found.getheaders()}
        self.pairs = [(name.lower(), value) for name, value in found.getheaders()]
        self.body = found.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of an error."""
        return str(self.json["error"]["code"])

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:300]!r}"


class Http:
    """Asks the gateway at an address."""

    def __init__(self, host: str, port: int, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.host, self.port, self.token, self._tls = host, port, token, tls

    def as_(self, token: str) -> Http:
        return Http(self.host, self.port, token, self._tls)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = self._connect()
        sent = {"Host": f"localhost:{self.port}", "Accept": "*/*"}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if data is not None and "Content-Length" not in sent:
                sent["Content-Length"] = str(len(data))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            if data:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have heard enough
                    connection.send(data)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, body, **more)

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_S, context=self._tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)

    def socket(self) -> socket.socket:
        """A plain connection, for what is not quite HTTP."""
        return socket.create_connection((self.host, self.port), timeout=TIMEOUT_S)

    def events(
        self, *, last: str = "", path: str = "/api/v1/events", headers: dict[str, str] | None = None
    ) -> Events:
        return Events(self, path, {**({"Last-Event-ID": last} if last else {}), **(headers or {})})


class Events:
    """An event stream, read in a thread."""

    def __init__(self, client: Http, path: str, headers: dict[str, str]) -> None:
        self._socket = client.socket()
        lines = [f"GET {path} HTTP/1.1", f"Host: localhost:{client.port}"]
        if client.token:
            lines.append(f"Authorization: Bearer {client.token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._found = http.client.HTTPResponse(self._socket)
        self._found.begin()
        self.status = self._found.status
        self.events: list[tuple[str, str, Any]] = []  #: name, id, data
        self.ended = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        if self.status == 200:
            self._thread.start()

    def _read(self) -> None:
        name = id = ""
        data: Any = None
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            for line in self._found:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "id":
                    id = value
                elif key == "data":
                    data = json.loads(value)
                elif not key and name:
                    with self._changed:
                        self.events.append((name, id, data))
                        self._changed.notify_all()
                    name = ""
        self.ended.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[list[tuple[str, str, Any]]], Any], what: str) -> Any:
        """Wait until what came so far is as it must become."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self.events), TIMEOUT_S), f"waited in vain for {what}"
            return condition(self.events)

    @property
    def last(self) -> str:
        return self.events[-1][1]

    @property
    def changes(self) -> list[Any]:
        return [data for name, _id, data in self.events if name == "change"]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._thread.ident is not None:
            self._thread.join(TIMEOUT_S)

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def several(*streams: Events) -> Iterator[tuple[Events, ...]]:
    try:
        yield streams
    finally:
        for each in streams:
            each.close()
