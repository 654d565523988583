"""The protocol with a manager, without I/O: flows that say what to write and when to read.

A flow is a generator. It yields bytes to write, `READ` when it needs more bytes (which are sent into it), or
`Redial` when it needs a new connection; it returns its result. `rota.client.aio.connection` drives flows, and the
driver of the blocking client is derived from it. `Conversation` decides what is done about a lost connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Raw, Struct

from rota import __version__
from rota.client import calls
from rota.client.batches import UploadBatch
from rota.client.calls import Call, StreamCall
from rota.client.endpoint import NoTrace
from rota.errors import BadInput, EnvironmentFault, NoManager, NotDone, RotaError, WireError
from rota.home import Mark
from rota.wire import client_messages as m
from rota.wire import codec
from rota.wire.failures import error_of
from rota.wire.greeting import other_home

if TYPE_CHECKING:
    from rota.client.channels import FromChannel, Opening

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741

READ: Final = b""
#: Unacknowledged chunks of a submission.
WINDOW: Final = 4
#: Waits before each attempt to reconnect during an `add`, in seconds.
REDIALS: Final = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
#: The same for a question whose connection was cut.
_ASK_AGAIN: Final = (0.05, 0.2, 0.5, 1.0)
#: The same for a manager that said that it starts anew: with many jobs that takes its time.
STARTS_ANEW_S: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0, 16.0)
#: How often a request is sent because of such an answer.
_MOST_SENT: Final = 5
#: Requests that only ask: these may be repeated whatever became of the first one.
_QUESTIONS: Final = (
    *(m.ListJobs, m.Status, m.Show, m.Why, m.ReadOutput, m.ListLimits, m.GetSite, m.PlanFor, m.Gantt, m.ListPage),
    *(m.GetGraph, m.GetAccounts, m.GetUsage, m.GetHistory, m.ListNodes, m.GetNode, m.ListQuotas, m.GetShares),
    *(m.GetPools, m.GetMachineUsage, m.GetGang, m.ShowPipeline, m.ListPipelines),
    *(m.GetPipelinePicture, m.ListElements, m.GetElementGraph, m.GetLayers),
)
_ASKING_VERBS: Final = ("status", "doctor", "ping", "metrics", "settings", "token-check", "token-list")


class Redial(Struct, frozen=True):
    """Connect again after this many seconds."""

    after_s: float


class Disconnected(NoManager):
    """The connection was lost while an answer was expected."""

    code = "no_manager"

    def __init__(self, message: str = "the connection to the manager was lost") -> None:
        super().__init__(message, hint="see 'rota manager status'")


Flow = Generator[bytes | Redial, bytes, T]
Answer = m.Failure | m.Reply | m.Item | m.ChannelData | m.ChannelCredit | m.ChannelEnd


class Added(Struct, frozen=True):
    """What became of a submission: ids in order of the input, each in exactly one of three lists."""

    submission: str
    added: list[int]
    existing: list[int]
    retried: list[int]
    complete: list[int]  #: those of `existing` that were complete already
    warnings: list[str]
    replaced: list[int] = []  #: jobs whose place others took, or that their input has no more
    changed: list[int] = []  #: those of `existing` and `retried` that wait for something else now, or ask for it
    kept: list[int] = []  #: jobs that the input had when it was added last, has no more, and that stay

    @property
    def ids(self) -> list[int]:
        """All jobs of the submission, new or not."""
        return sorted([*self.added, *self.existing, *self.retried])


class AddOptions(Struct, frozen=True, kw_only=True):
    """Options of a whole submission."""

    fresh: bool = False
    rerun: bool = False
    input: str = ""  #: what is added: a path or a name; empty: nothing that could be edited
    check: bool = False
    allow_unsatisfiable: bool = False
    attach: bool = False  #: the submitter reads every byte that the jobs print


class Session:
    """The state of one connection. A new connection needs a new session."""

    def __init__(self) -> None:
        self._reader: codec.Reader[m.ToClient] = codec.Reader(m.ToClient)
        self._n = 0
        self._inbox: dict[int, deque[Answer]] = {}
        self._broken: RotaError | None = None
        self.welcome: m.Welcome | None = None

    @property
    def refused(self) -> bool:
        """Has the manager refused the connection with an error?"""
        return self._broken is not None

    def abandon(self) -> None:
        """Have everything that waits for an answer raise `Disconnected`, or what the manager said at the end."""
        self._broken = self._broken or Disconnected()

    def open(self, role: str, token: str, home: Mark | None = None) -> Flow[m.Welcome]:
        """Authenticate, and name the home whose manager is wanted. Raises the manager's refusal."""
        yield codec.frame(m.Hello(m.PROTOCOL, role, token, f"rota {__version__}", home=home))
        while self.welcome is None:
            self.take((yield READ))
            if self._broken:
                raise self._broken
        if home is not None and self.welcome.home not in (None, home):
            raise other_home()
        return self.welcome

    def call(self, call: Call[T]) -> Flow[T]:
        """Send a request and wait for its answer."""
        n = self._begin()
        yield codec.frame(call.build(n))
        return call.read((yield from self._answer(n)))

    def begin(self, stream: StreamCall[I, T]) -> Flow[int]:
        """Open a stream; returns its number for `next_item` and `end`."""
        n = self._begin()
        yield codec.frame(stream.build(n))
        return n

    def next_item(self, n: int, stream: StreamCall[I, T]) -> Flow[tuple[I, None] | tuple[None, T]]:
        """The next item, or the answer that ends the stream. May be abandoned and restarted."""
        message = yield from self._next(n)
        if isinstance(message, m.Item):
            return stream.read_item(message.body), None
        del self._inbox[n]
        if isinstance(message, m.Failure):
            raise error_of(message)
        if not isinstance(message, m.Reply):
            raise WireError("the manager opens a channel that nobody asked for")
        return None, stream.read(message.body)

    def end(self, n: int) -> Flow[None]:
        """Close a stream early; items in flight are discarded."""
        if self._inbox.pop(n, None) is not None:
            yield codec.frame(calls.stop_stream(n).build(self._begin(keep=False)))

    def open_channel(self, what: Opening) -> Flow[int]:
        """Ask for a channel; its number."""
        n = self._begin()
        yield codec.frame(what.message(n))
        return n

    def next_in_channel(self, n: int) -> Flow[FromChannel]:
        """The next message of a channel. May be abandoned and restarted."""
        message = yield from self._next(n)
        if isinstance(message, m.Reply | m.Item):
            raise WireError("the manager answers in a channel")
        return message

    def has_in_channel(self, n: int) -> bool:
        """Is a message of the channel waiting to be read?"""
        return bool(self._inbox.get(n))

    def close_channel(self, n: int) -> None:
        """Forget a channel that has ended; late messages are discarded."""
        self._inbox.pop(n, None)

    def say(self, frame: bytes) -> Flow[None]:
        """Send a message that has no answer."""
        yield frame

    def upload(
        self, submission: str, batches: Iterator[UploadBatch], sent: list[UploadBatch], options: AddOptions
    ) -> Flow[Added]:
        """Send a submission. `sent` collects the batches, for another connection to begin with.

        When `batches` raises (a bad line), the upload is dropped at the manager.
        """
        waiting: deque[int] = deque()
        done = False
        position = 0
        while not done:
            if position == len(sent):
                try:
                    sent.append(next(batches))
                except (RotaError, KeyboardInterrupt):
                    if position:
                        yield from self.call(calls.drop(submission))
                    raise
            batch = sent[position]
            position += 1
            done = batch.last
            n = self._begin()
            yield codec.frame(_message(n, submission, batch, options))
            waiting.append(n)
            while len(waiting) > (0 if done else WINDOW):
                body = yield from self._answer(waiting.popleft())
        answer = calls.uploaded().read(body)
        return Added(
            submission, answer.added, answer.existing, answer.retried, answer.complete, answer.warnings,
            answer.replaced, answer.changed, answer.kept,
        )  # fmt: skip

    # -- numbers and boxes

    def _begin(self, *, keep: bool = True) -> int:
        if self._broken:
            raise self._broken
        self._n += 1
        if keep:
            self._inbox[self._n] = deque()
        return self._n

    def _answer(self, n: int) -> Flow[Raw]:
        message = yield from self._next(n)
        del self._inbox[n]
        match message:
            case m.Failure():
                raise error_of(message)
            case m.Reply(_, body):
                return body
        raise WireError("the manager streams an answer that has no parts")

    def _next(self, n: int) -> Flow[Answer]:
        box = self._inbox[n]
        while not box:
            if self._broken:
                raise self._broken
            self.take((yield READ))
        return box.popleft()

    def take(self, data: bytes) -> None:
        """Decode received bytes and put each message into the inbox of its request."""
        for message in self._reader.feed(data):
            if isinstance(message, m.Welcome):
                self.welcome = message
            elif isinstance(message, m.Failure) and message.n == 0:
                self._broken = error_of(message)
            elif (box := self._inbox.get(message.n)) is not None:
                box.append(message)


def _message(n: int, submission: str, batch: UploadBatch, options: AddOptions) -> m.Add:
    return m.Add(
        n=n,
        submission=submission,
        first=batch.first,
        cmds=batch.cmds,
        specs=batch.specs,
        envs=batch.envs,
        spec_of=batch.spec_of,
        lines=batch.lines,
        after=batch.after,
        more=not batch.last,
        fresh=options.fresh,
        check=options.check,
        allow_unsatisfiable=options.allow_unsatisfiable,
        rerun=options.rerun,
        rerun_entries=batch.rerun,
        input=options.input if batch.last else "",
        allowed_entries=batch.allowed,
        elements=batch.elements,
        inputs=batch.inputs,
        attach=options.attach,
    )


class Conversation:
    """The current session, and what a new connection needs to replace it: role, token and home."""

    def __init__(self, role: str, token: str) -> None:
        self.role = role
        self.token = token
        self.home: Mark | None = None
        self.session = Session()

    def greet(self) -> Flow[m.Welcome]:
        """A new session on a new connection. What still waits on the one before is told that it was lost."""
        self.session.abandon()
        self.session = Session()
        return self.session.open(self.role, self.token, self.home)

    def refuse_older(self) -> None:
        """Raise unless the manager supports dry runs: one of an earlier release would perform the action."""
        welcome = self.session.welcome
        if welcome is None or not welcome.paced:
            raise EnvironmentFault(
                "the manager is of an earlier release, which cannot say that",
                hint="restart it with 'rota manager stop' and 'rota manager start'; jobs go on meanwhile",
            )

    def begin(self, stream: StreamCall[I, T]) -> Flow[int]:
        """Open a stream, on a new connection if the manager starts anew."""
        while True:
            try:
                return (yield from self.session.begin(stream))
            except NotDone as error:
                yield from self.redial(error)

    def add(self, submission: str, batches: Iterable[UploadBatch], options: AddOptions) -> Flow[Added]:
        """Upload, on new connections if necessary. A repeat is harmless: the id of the submission is the same, and
        the manager repeats its first answer."""
        sent: list[UploadBatch] = []
        source = iter(batches)
        waits = iter(REDIALS)
        tries = 0
        while True:
            tries += 1
            try:
                return (yield from self.session.upload(submission, source, sent, options))
            except NotDone as error:
                if tries == _MOST_SENT:
                    raise
                yield from self.redial(error)
            except Disconnected:
                lost = Disconnected("the connection to the manager was lost while jobs were being added")
                yield from self._redial(waits, lost)

    def call(self, call: Call[T]) -> Flow[T]:
        """Send a request and wait for its answer, on new connections if necessary.

        A request is sent again if the manager said that nothing of it was done. One whose connection was cut
        without that answer may have been done, so only questions are asked again.
        """
        waits = iter(_ASK_AGAIN)
        sent = 0
        while True:
            sent += 1
            try:
                return (yield from self.session.call(call))
            except NotDone as error:
                if sent == _MOST_SENT:
                    raise
                yield from self.redial(error)
            except Disconnected as error:
                if not _only_asks(call.build(0)):
                    raise
                yield from self._redial(waits, error)

    def redial(self, error: NotDone) -> Flow[None]:
        """Connect again to a manager that starts anew. Raises the error if it does not come back."""
        yield from self._redial(iter(STARTS_ANEW_S), error)

    def _redial(self, waits: Iterator[float], lost: RotaError) -> Flow[None]:
        for wait in waits:
            try:
                yield Redial(wait)
            except NoTrace:
                if isinstance(lost, NotDone):
                    break  # it could not start anew
            except NoManager:
                pass
            else:
                return
        raise lost


def _only_asks(message: m.Message) -> bool:
    if isinstance(message, m.Control):
        return message.verb in _ASKING_VERBS
    return isinstance(message, _QUESTIONS) or (isinstance(message, m.Learned) and not message.forget)


def first_batch(batches: Iterator[UploadBatch], empty: str) -> list[UploadBatch]:
    """The first batch of an input that must not be empty. Raises `BadInput` with the message `empty`."""
    first = next(batches)
    if first.last and not first.cmds:
        raise BadInput(empty, hint="put one command on each line")
    return [first]
