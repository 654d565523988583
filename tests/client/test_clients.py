"""Both clients against a scripted manager: the same calls, the same recovery from a lost connection."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rota
from rota.client import AsyncClient, Client
from rota.client.session import Added as Outcome
from rota.core.answers import Acted, Added
from rota.errors import BadInput, Denied, EnvironmentFault, NoManager, NotFound, TimedOut
from rota.wire import messages as m
from rota.wire.views import JobPage, SettledView
from tests.client.scripted import Conversation, accept_all, scripted


def blocking(home: object, use: Callable[[Client], Any]) -> Any:
    with rota.connect(str(home)) as client:
        return use(client)


def asynchronous(home: object, use: Callable[[Any], Any]) -> Any:
    async def go() -> Any:
        async with await rota.connect_async(str(home)) as client:
            return await use(client)

    return asyncio.run(go())


both = pytest.mark.parametrize("talk", [blocking, asynchronous])


@both
def test_add_returns_what_became_of_each_command(tmp_path: Path, talk: Any) -> None:
    with scripted(tmp_path, accept_all) as (home, manager):
        added: Outcome = talk(
            home, lambda client: client.add(["a", ["b", "c"], {"cmd": "d", "cpus": 2}], mem="1G")
        )
    assert added.ids == [1, 2, 3]
    (add,) = manager.conversations[0].heard
    assert add.cmds == ["a", ["b", "c"], "d"]
    assert add.specs[0].size.mem == 1 << 30


@both
def test_a_large_submission_goes_in_chunks_of_which_only_the_last_has_no_more(tmp_path: Path, talk: Any) -> None:
    with scripted(tmp_path, accept_all) as (home, manager):
        added = talk(home, lambda client: client.add(["true"] * 35_000))
    chunks = manager.conversations[0].heard
    assert [chunk.more for chunk in chunks] == [True, True, True, False]
    assert [chunk.first for chunk in chunks] == [0, 10_000, 20_000, 30_000]
    assert len({chunk.submission for chunk in chunks}) == 1
    assert len(added.ids) == 35_000


@both
def test_a_connection_lost_during_add_is_made_again_and_the_same_submission_sent(
    tmp_path: Path, talk: Any
) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        if conversation.number == 1 and isinstance(message, m.Add) and message.first == 10_000:
            conversation.close()
        else:
            accept_all(conversation, message)

    with scripted(tmp_path, script) as (home, manager):
        added = talk(home, lambda client: client.add(["true"] * 25_000))
    assert len(added.ids) == 25_000
    first, second = manager.conversations
    assert {add.submission for add in first.heard} == {add.submission for add in second.heard}
    assert [add.first for add in second.heard] == [0, 10_000, 20_000]


@both
def test_what_the_manager_has_not_done_is_sent_again_and_what_it_may_have_done_is_not(
    tmp_path: Path, talk: Any
) -> None:
    seen = []

    def script(conversation: Conversation, message: Any) -> None:
        what = getattr(message, "verb", type(message).__name__)
        seen.append(what)
        first = seen.count(what) == 1
        if first and what in ("hold", "Add"):
            conversation.send(m.Failure(0, "not_done", "it starts anew", "try again"))
        elif first:
            conversation.close()
        elif isinstance(message, m.Show):
            conversation.send(m.Failure(message.n, "not_found", "there is no job 9", ""))
        elif isinstance(message, m.Act):
            conversation.reply(message.n, Acted([7], []))
        else:
            accept_all(conversation, message)

    with scripted(tmp_path, script) as (home, _manager):
        assert talk(home, lambda client: client.hold(7)).changed == [7]
        assert talk(home, lambda client: client.add(["true"])).ids == [1]
        with pytest.raises(NotFound):
            talk(home, lambda client: client.job(9))
        with pytest.raises(NoManager, match="was lost"):
            talk(home, lambda client: client.kill(9))
    assert seen == ["hold", "hold", "Add", "Add", "Show", "Show", "kill"]


def test_what_the_manager_said_before_it_closed_counts_although_nothing_can_be_sent(
    tmp_path: Path,
) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        conversation.reply(message.n, Acted([7], []))
        if conversation.number == 1:
            conversation.send(m.Failure(0, "not_done", "it starts anew", "try again"))
            conversation.close()
            closed.set()

    closed = threading.Event()
    with scripted(tmp_path, script) as (home, manager), rota.connect(str(home)) as client:
        client.hold(7)
        assert closed.wait(60)
        assert client.kill(7).changed == [7]
        assert [each.verb for talk in manager.conversations for each in talk.heard] == ["hold", "kill"]


@both
def test_a_bad_entry_far_behind_takes_the_submission_back(tmp_path: Path, talk: Any) -> None:
    with scripted(tmp_path, accept_all) as (home, manager):
        with pytest.raises(BadInput, match="entry 15001: field 'cpus'"):
            talk(home, lambda client: client.add([*["true"] * 15_000, {"cmd": "x", "cpus": "y"}]))
        heard = manager.conversations[0].heard
    assert isinstance(heard[-1], m.Drop)
    assert all(not isinstance(message, m.Add) or message.more for message in heard)


@both
def test_a_refusal_becomes_the_error_it_was(tmp_path: Path, talk: Any) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        conversation.send(m.Failure(message.n, "not_found", "there is no job 9", "look again"))

    with scripted(tmp_path, script) as (home, _), pytest.raises(NotFound, match="there is no job 9; look again"):
        talk(home, lambda client: client.job(9))


@both
def test_a_refused_connection_is_told_as_it_was(tmp_path: Path, talk: Any) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        conversation.send(m.Failure(0, "denied", "not you", ""))

    with scripted(tmp_path, script) as (home, _), pytest.raises(Denied, match="not you"):
        talk(home, lambda client: client.status())


@both
def test_no_manager_is_one_sentence_that_says_what_to_do(tmp_path: Path, talk: Any) -> None:
    with pytest.raises(NoManager, match="no manager is running; start one with 'rota manager start'"):
        talk(tmp_path, lambda client: client.status())


@both
def test_a_stale_socket_is_no_manager(tmp_path: Path, talk: Any) -> None:
    import socket

    (tmp_path / "home").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "home" / "manager.sock"))
    with pytest.raises(NoManager, match="no manager is running"):
        talk(tmp_path / "home", lambda client: client.status())


@both
def test_wait_ends_with_the_answer_or_when_its_time_has_passed(tmp_path: Path, talk: Any) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        if isinstance(message, m.Watch) and message.selectors == ["1"]:
            conversation.send(m.Item(message.n, codec_body(m.Progress([], {"running": 1}))))
            conversation.reply(message.n, SettledView({"complete": 1}, [], 0))
        elif isinstance(message, m.Stop):
            conversation.reply(message.n, None)

    with scripted(tmp_path, script) as (home, _):
        assert talk(home, lambda client: client.wait(1, timeout=30)).counts == {"complete": 1}
        with pytest.raises(TimedOut):
            talk(home, lambda client: client.wait(2, timeout=0.05))


def codec_body(value: Any) -> Any:
    from rota.wire import codec

    return codec.body(value)


@both
def test_output_is_read_page_by_page_to_its_end(tmp_path: Path, talk: Any) -> None:
    whole = bytes(range(256)) * 10

    def script(conversation: Conversation, message: Any) -> None:
        part = whole[message.offset : message.offset + 1000]
        conversation.reply(message.n, m.OutputPart(part, len(whole), len(whole), done=True, attempt=3))

    with scripted(tmp_path, script) as (home, manager):
        assert talk(home, lambda client: client.output(5)) == whole
    assert [ask.attempt for ask in manager.conversations[0].heard] == [0, 3, 3]


@both
def test_jobs_go_on_where_the_page_before_ended(tmp_path: Path, talk: Any) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        conversation.reply(message.n, JobPage([], None if message.cursor else "17", 2))

    with scripted(tmp_path, script) as (home, manager):
        page = talk(home, lambda client: client.jobs())
        page = talk(home, lambda client: client.jobs(cursor=page.next))
        assert page.next is None
        talk(home, lambda client: client.jobs(cursor=page.next))
        talk(home, lambda client: client.jobs(cursor=5))
        for wrong in ("x", "-1", "1" * 40, "²"):
            with pytest.raises(BadInput, match="is not a cursor"):
                talk(home, lambda client, wrong=wrong: client.jobs(cursor=wrong))
    heard = [ask.cursor for conversation in manager.conversations for ask in conversation.heard]
    assert heard == [0, 17, 0, 5]


@both
def test_a_manager_that_cannot_be_asked_what_an_action_would_do_is_not_asked_to_do_it(
    tmp_path: Path, talk: Any
) -> None:
    with scripted(tmp_path, accept_all) as (home, manager):  # its welcome is that of an earlier release
        for verb in ("kill", "remove"):
            with pytest.raises(EnvironmentFault, match="of an earlier release"):
                talk(home, lambda client, verb=verb: client.would(verb, "all"))
    assert [conversation.heard for conversation in manager.conversations] == [[], []]


def test_other_calls_can_be_made_while_a_stream_is_open(tmp_path: Path) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        if isinstance(message, m.Watch):
            for n in range(3):
                conversation.send(m.Item(message.n, codec_body(m.Progress([], {"ready": n}))))
        elif isinstance(message, m.ListJobs):
            conversation.reply(message.n, JobPage([], None, 7))
            conversation.reply(1, SettledView({}, []))

    with scripted(tmp_path, script) as (home, _), rota.connect(str(home)) as client:
        watching = client.watch("all")
        assert client.jobs().total == 7
        assert [progress.counts["ready"] for progress in watching] == [0, 1, 2]
        assert watching.settled is not None
        assert watching.poll() is None


def test_an_answer_that_never_comes_is_no_manager(tmp_path: Path) -> None:
    with (
        scripted(tmp_path, lambda conversation, message: None) as (home, _),
        rota.connect(str(home), timeout=0.2) as client,
        pytest.raises(NoManager, match=r"did not answer within 0\.2 s"),
    ):
        client.status()


def test_a_strange_answer_is_an_error_not_a_crash(tmp_path: Path) -> None:
    with (
        scripted(tmp_path, lambda conversation, message: conversation.reply(message.n, [1, "x"])) as (home, _),
        rota.connect(str(home)) as client,
        pytest.raises(rota.RotaError, match="cannot be read"),
    ):
        client.jobs()


def test_every_call_of_one_client_is_a_call_of_the_other() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    # The gateway keeps idle connections and looks after them.
    only_async = {"alive", "ended"}
    assert names(Client) == names(AsyncClient) - only_async
    for name in names(Client):
        assert getattr(Client, name).__doc__
        assert parameters(getattr(Client, name)) == parameters(getattr(AsyncClient, name))


def parameters(method: Any) -> Any:
    return inspect.signature(method).parameters if callable(method) else None


def test_a_connection_serves_several_tasks_at_once(tmp_path: Path) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        """The watch is answered last, and pairs of pages in the wrong order."""
        if not isinstance(message, m.ListJobs):
            return
        if message.limit % 2:
            conversation.reply(message.n, JobPage([], None, message.limit))
            conversation.reply(message.n - 1, JobPage([], None, message.limit - 1))
        if message.limit == 19:
            conversation.reply(1, SettledView({"complete": 1}, []))

    async def go(home: str) -> None:
        async with await rota.connect_async(home) as client:
            waiting = asyncio.create_task(client.wait("all"))
            impatient = asyncio.create_task(client.wait("all", timeout=0.01))
            with pytest.raises(TimedOut):
                await impatient
            pages = await asyncio.gather(*(client.jobs(limit=limit) for limit in range(20)))
            assert [page.total for page in pages] == list(range(20))
            assert (await waiting).counts == {"complete": 1}

    with scripted(tmp_path, script) as (home, _):
        asyncio.run(go(str(home)))


def test_tasks_that_lose_their_connection_share_the_next_one(tmp_path: Path) -> None:
    def script(conversation: Conversation, message: Any) -> None:
        if conversation.number > 1:
            accept_all(conversation, message)
        elif len(conversation.heard) == 5:
            conversation.close()

    async def go(home: str) -> list[Any]:
        async with await rota.connect_async(home) as client:
            adds = [client.add(["true"]) for _ in range(4)]
            return await asyncio.gather(*adds, client.kill(1), return_exceptions=True)

    with scripted(tmp_path, script) as (home, manager):
        *added, killed = asyncio.run(go(str(home)))
    assert [each.ids for each in added] == [[1]] * 4
    assert isinstance(killed, NoManager)
    assert len(manager.conversations) == 2


def test_the_blocking_client_is_derived_from_the_asynchronous_one() -> None:
    tool = Path(__file__).parents[2] / "tools" / "blocking_client.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_answers_of_the_engine_are_what_the_client_reads() -> None:
    assert Added([1], [2], [3]).complete == []
