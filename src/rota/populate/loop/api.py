"""The API of the manager of tables: `/status` and `/uptime`, read-only, in a thread of its own."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import json

from rota.errors import EnvironmentFault
from rota.populate.loop.cycles import Manager


class _Handler(BaseHTTPRequestHandler):
    manager: Manager

    def do_GET(self) -> None:
        answers = {"/status": self.manager.current_status, "/uptime": self.manager.uptime}
        answer = answers.get(self.path.partition("?")[0])
        body = json.encode(answer() if answer is not None else {"error": "there are /status and /uptime"})
        self.send_response(HTTPStatus.OK if answer is not None else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the log is about tables."""


class Api:
    """Serves until it is closed."""

    def __init__(self, manager: Manager, *, host: str, port: int) -> None:
        """Raises `EnvironmentFault` if the address is taken."""
        handler = type("Handler", (_Handler,), {"manager": manager})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except OSError as error:
            hint = "set manager: {api.port: …}, or api.run: false"
            raise EnvironmentFault(f"{host}:{port} cannot be listened on: {error.strerror}", hint=hint) from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
