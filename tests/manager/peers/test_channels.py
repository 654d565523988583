"""Who may open a channel, where it leads, and that nobody can make the manager keep more than a window."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rota.core.jobs.job import Job, Lease, Spec
from rota.core.states import State
from rota.core.world import NO_JOB
from rota.manager.peers.channels import ChannelRouter
from rota.plan.placement.given import Given
from rota.plan.size import Size
from rota.wire import messages as m
from rota.wire.job_keys import hash_of, new_secret


class FakePeer:
    """A connection that remembers what it was sent."""

    def __init__(self, id: int, role: str, *, user: str = "", runner: str = "") -> None:
        self.id, self.role, self.user, self.runner = id, role, user, runner
        self.unsent = 0
        self.sent: list[Any] = []
        self.refused: list[str] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def fail(self, _n: int, error: Any) -> None:
        self.refused.append(error.code)


class Scene:
    """Job 7 of ann runs on hosts n1 and n2, each with a runner; n3 has one too."""

    def __init__(self, *, key: str = "", state: State = State.RUNNING) -> None:
        self.nodes = {
            name: FakePeer(n, "runner", runner=f"r-{name}") for n, name in enumerate(("n1", "n2", "n3"), 1)
        }
        given = Given(Size(), nodes=(("n1", 2), ("n2", 2)))
        spec = Spec(user="ann", cwd="/", env=1, job_key=key)
        lease = Lease(token=99, runner="r-n1", leased_at=0.0, started_at=1.0, given=given)
        job = SimpleNamespace(id=7, attempt=2, spec=spec, lease=lease, state=state)
        runners = {
            f"r-{name}": SimpleNamespace(id=f"r-{name}", host=name, leases={7} if name == "n1" else set())
            for name in self.nodes
        }
        known = {7: 1, 6: 1}
        world = SimpleNamespace(
            jobs={7: cast(Job, job)}, runners=runners, outcome=lambda id: known.get(id, NO_JOB)
        )
        peers = {f"r-{name}": peer for name, peer in self.nodes.items()}
        self.channels = ChannelRouter(cast(Any, world), peer_of=cast(Any, peers.get))
        self.ann = FakePeer(10, "user", user="ann")

    def says(self, peer: FakePeer, message: Any) -> None:
        self.channels.received(cast(Any, peer), message)

    def opened(self, peer: FakePeer | None = None, *, n: int = 1, node: str = "") -> m.StartChannel:
        peer = peer or self.ann
        self.says(peer, m.OpenChannel(n, 7, node, ["id"]))
        started = [each for node in self.nodes.values() for each in node.sent if isinstance(each, m.StartChannel)]
        assert started, peer.refused
        return started[-1]

    def refusal(self, peer: FakePeer, ask: m.OpenChannel) -> str:
        self.says(peer, ask)
        assert not any(node.sent for node in self.nodes.values())
        (code,) = peer.refused
        return code


# ------------------------------------------------------------------ who and where


def test_the_owner_reaches_the_first_host_of_a_job_under_its_lease() -> None:
    scene = Scene()
    start = scene.opened()
    assert (start.job, start.attempt, start.token, start.cmd) == (7, 2, 99, ["id"])
    assert scene.nodes["n1"].sent == [start]


@pytest.mark.parametrize("node", ["n2", "1", "n2.example.org"])
def test_another_host_is_named_or_counted(node: str) -> None:
    scene = Scene()
    assert scene.nodes["n2"].sent == [] != [scene.opened(node=node)] == scene.nodes["n2"].sent


@pytest.mark.parametrize("node", ["n3", "2", "-1", "n", "²"])
def test_a_host_that_is_not_the_jobs_is_refused(node: str) -> None:
    scene = Scene()
    assert scene.refusal(scene.ann, m.OpenChannel(1, 7, node, ["id"])) == "not_found"


def test_an_administrator_may_enter_and_another_user_may_not() -> None:
    Scene().opened(FakePeer(11, "admin", user="root"))
    assert Scene().refusal(FakePeer(11, "user", user="bob"), m.OpenChannel(1, 7)) == "denied"


def test_a_runner_speaks_for_the_jobs_on_its_own_host_only() -> None:
    scene = Scene()
    scene.says(scene.nodes["n2"], m.OpenChannel(-1, 7, "n1", ["id"]))
    assert isinstance(scene.nodes["n1"].sent[0], m.StartChannel)
    scene = Scene()
    scene.says(scene.nodes["n3"], m.OpenChannel(-1, 7, "n1", ["id"]))
    assert scene.nodes["n1"].sent == []
    (end,) = scene.nodes["n3"].sent
    assert end.n == -1
    assert "no job 7 that you may enter" in end.message


@pytest.mark.parametrize(("job", "code"), [(6, "not_running"), (5, "not_found")])
def test_a_job_that_has_ended_or_never_was_is_refused(job: int, code: str) -> None:
    scene = Scene()
    assert scene.refusal(scene.ann, m.OpenChannel(1, job)) == code


@pytest.mark.parametrize("state", [State.SCHEDULED, State.SUSPENDED, State.FINISHING, State.LOST])
def test_a_job_that_does_not_run_now_is_refused(state: State) -> None:
    scene = Scene(state=state)
    assert scene.refusal(scene.ann, m.OpenChannel(1, 7)) == "not_running"


def test_a_key_opens_the_jobs_that_it_fits_to_anybody() -> None:
    secret = new_secret()
    scene = Scene(key=hash_of(secret))
    assert scene.channels.opens(secret)
    stranger = FakePeer(12, "key")
    scene.says(stranger, m.OpenChannel(1, 7, cmd=["id"], key=secret))
    assert isinstance(scene.nodes["n1"].sent[0], m.StartChannel)


@pytest.mark.parametrize("stored", ["", hash_of("another")])
@pytest.mark.parametrize("shown", ["", "wrong", hash_of("another")])
def test_a_key_that_does_not_fit_opens_nothing(stored: str, shown: str) -> None:
    scene = Scene(key=stored)
    assert not scene.channels.opens(shown)
    assert scene.refusal(FakePeer(12, "key"), m.OpenChannel(1, 7, key=shown)) == "not_found"


def test_a_wrong_key_is_not_made_good_by_being_the_owner() -> None:
    scene = Scene(key=hash_of("right"))
    assert scene.refusal(scene.ann, m.OpenChannel(1, 7, key="wrong")) == "not_found"


# ------------------------------------------------------------------ what is passed on


def test_messages_are_passed_on_under_the_number_of_the_other_side() -> None:
    scene = Scene()
    far = scene.opened(n=5).n
    node = scene.nodes["n1"]
    scene.says(node, m.ChannelCredit(far, 100))
    scene.says(scene.ann, m.ChannelData(5, 0, b"x" * 100))
    scene.says(node, m.ChannelData(far, 2, b"y"))
    scene.says(scene.ann, m.ChannelResize(5, 3, 4))
    scene.says(node, m.ChannelEnd(far, 0))
    assert scene.ann.sent == [m.ChannelCredit(5, 100), m.ChannelData(5, 2, b"y"), m.ChannelEnd(5, 0)]
    assert node.sent[1:] == [m.ChannelData(far, 0, b"x" * 100), m.ChannelResize(far, 3, 4)]
    scene.says(scene.ann, m.ChannelData(5, 0, b"late"))
    assert len(node.sent) == 3


def test_who_sends_more_than_there_is_room_for_loses_the_channel() -> None:
    scene = Scene()
    far = scene.opened().n
    node = scene.nodes["n1"]
    scene.says(node, m.ChannelCredit(far, 10))
    scene.says(scene.ann, m.ChannelData(1, 0, b"x" * 11))
    assert isinstance(node.sent[-1], m.ChannelEnd)
    assert isinstance(scene.ann.sent[-1], m.ChannelEnd)


@pytest.mark.parametrize("size", [1, -1, 1 << 40])
def test_no_more_than_a_window_can_be_asked_for(size: int) -> None:
    scene = Scene()
    scene.opened()
    scene.says(scene.ann, m.ChannelCredit(1, size))
    assert isinstance(scene.nodes["n1"].sent[-1], m.ChannelEnd)


def test_a_node_that_goes_away_ends_its_channels_as_lost() -> None:
    scene = Scene()
    scene.opened()
    scene.channels.gone(cast(Any, scene.nodes["n1"]))
    assert scene.ann.sent == [m.ChannelEnd(1, message="the connection to node n1 was lost", lost=True)]


def test_a_client_that_goes_away_is_hung_up_for() -> None:
    scene = Scene()
    far = scene.opened().n
    scene.channels.gone(cast(Any, scene.ann))
    (_, end) = scene.nodes["n1"].sent
    assert (end.n, end.lost) == (far, True)


def test_one_client_has_so_many_channels_at_once_and_no_more() -> None:
    scene = Scene()
    for n in range(1, 65):
        scene.opened(n=n)
    scene.says(scene.ann, m.OpenChannel(65, 7))
    assert scene.ann.refused == ["bad_input"]


def test_numbers_of_clients_and_runners_do_not_meet() -> None:
    scene = Scene()
    scene.says(scene.ann, m.OpenChannel(-1, 7))
    assert scene.ann.refused == ["bad_input"]
    scene.says(scene.nodes["n2"], m.OpenChannel(1, 7))
    assert isinstance(scene.nodes["n2"].sent[-1], m.ChannelEnd)
