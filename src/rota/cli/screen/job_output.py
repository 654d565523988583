"""The live output of one job for its screen, fetched by a thread with its own connection."""

from __future__ import annotations

import codecs
import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.message import Message

from rota.cli.render.text import harmless
from rota.cli.session.job_output import LivePrinter
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import JobView

#: Of what was printed already, the end is shown.
_TAIL: Final = 256 << 10
_POLL_S: Final = 0.25
_ENDED: Final = ("complete", "failed", "cancelled")


class OutputText(Message):
    """Escaped text to append."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class OutputOver(Message):
    """The output is complete, or why it is not."""

    def __init__(self, trouble: str = "") -> None:
        super().__init__()
        self.trouble = trouble


class OutputTail(threading.Thread):
    """Posts the output of one job until it has ended."""

    def __init__(self, connect: Callable[[], Client], job: int, post: Callable[[Message], object]) -> None:
        super().__init__(name="tail", daemon=True)
        self._connect = connect
        self._job = job
        self._post = post
        self._over = threading.Event()

    def stop(self) -> None:
        self._over.set()

    def run(self) -> None:
        try:
            with self._connect() as client:
                job = client.job(self._job)
                if job.state in _ENDED:
                    self._kept(client, job)
                else:
                    self._follow(client)
        except RotaError as error:
            self._say(OutputOver(error.message))
        else:
            self._say(OutputOver())

    def _kept(self, client: Client, job: JobView) -> None:
        for err in (False, True):
            data = b""
            for part in client.output_parts(job.id, err=err):
                data = (data + part)[-_TAIL:]
                if self._over.is_set():
                    return
            if data:
                self._say(OutputText(Readable().text(data)))

    def _follow(self, client: Client) -> None:
        printer = _Collector(client)
        with client.watch(self._job, outputs=True, follow=True, paced=True) as watching:
            printer.took = watching.took
            while watching.settled is None and not self._over.is_set():
                if (progress := watching.poll(_POLL_S)) is not None:
                    printer.take(progress)
                    if text := printer.text():
                        self._say(OutputText(text))

    def _say(self, message: Message) -> None:
        if not self._over.is_set():
            self._post(message)


class Readable:
    """Decodes bytes, piece by piece, to escaped lines."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, data: bytes) -> str:
        lines = self._decoder.decode(data).replace("\r\n", "\n").split("\n")
        # Of a progress bar that redraws itself, only the last state is shown.
        return "\n".join(harmless(line.rpartition("\r")[2].expandtabs()) for line in lines)


class _Collector(LivePrinter):
    """Gathers what would be printed."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, lines=False, stdout=io.BytesIO(), stderr=io.BytesIO())
        self._streams = {1: Readable(), 2: Readable()}
        self._gathered: list[str] = []

    def _write(self, stream: int, data: bytes) -> None:
        self._gathered.append(self._streams[stream].text(data[-_TAIL:]))

    def text(self) -> str:
        gathered, self._gathered = "".join(self._gathered), []
        return gathered
