"""The registrations of the manager: each belongs to a feature of the engine, every effect is performed once."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rota.core import effects, features
from rota.core.effects import Effect
from rota.core.machines.node_energy import NodeEnergy
from rota.core.world import World
from rota.errors import Bug
from rota.home import Home
from rota.manager.feature import FeatureService, ManagerFeature
from rota.manager.features import BUILT_IN, ManagerFeatures, engine_features
from rota.manager.loop.perform import Performer
from rota.plan.dispatch.planning import Planning
from rota.settings import Settings
from rota.wire import messages as m
from rota.wire.operations import Operation, Operations
from rota.wire.permissions import ADMIN, MAY_SEND, USER
from tests.features import bells


def services(settings: Settings) -> Any:
    """As much of a manager as features need to be made."""
    world = World(Planning())
    features.BUILT_IN.install(world)
    turns = SimpleNamespace(happened=lambda _event: None)
    home = Home(Path("/nonexistent"))
    return SimpleNamespace(world=world, settings=settings, turns=turns, home=home, peer_of=lambda _runner: None)


async def made(settings: Settings) -> tuple[ManagerFeatures, World]:
    given = services(settings)
    return ManagerFeatures(BUILT_IN, given), given.world


ALL = Settings(
    sleep_cmd="true",
    wake_cmd="true",
    server_prologue="/bin/true",
    server_epilogue="/bin/true",
    expiry_hook="/bin/true",
)


def run(settings: Settings) -> tuple[ManagerFeatures, World]:
    return asyncio.run(made(settings))


def test_every_registration_of_the_manager_belongs_to_a_feature_of_the_engine() -> None:
    assert {each.name for each in BUILT_IN} <= {each.name for each in features.BUILT_IN.all}
    assert engine_features(BUILT_IN) is features.BUILT_IN
    assert engine_features((*BUILT_IN, bells.FEATURE)).all[-1] is bells.ENGINE


def test_every_effect_is_performed_by_one_of_the_performer_and_the_features() -> None:
    kinds = {kind for kind in vars(effects).values() if isinstance(kind, type) and issubclass(kind, Effect)}
    found, _world = run(ALL)
    its = set(re.findall(r"case e\.(\w+)", inspect.getsource(Performer._perform)))
    theirs = {kind.__name__ for kind in found.performers}
    own = {kind.__name__ for kind in found.performers if kind.__module__ != effects.__name__}
    assert (its | theirs) - own == {kind.__name__ for kind in kinds} - {"Effect"}
    assert not its & theirs


def test_what_a_deployment_does_not_use_is_not_even_made() -> None:
    found, world = run(Settings())
    # Any job may be suspended, get another walltime, or want its machine provisioned; anybody may run a pipeline.
    always = {"SuspendAttempts", "ChangeWalltime"}
    provisioning = {"RunProvision", "BeginProvision", "StopProvision", "KeepProvisionOutput", "SendErrand"}
    pipelines = {"TellSession", "FollowSession", "ReadConditions", "TakeNextSlice"}
    assert {kind.__name__ for kind in found.performers} == always | provisioning | pipelines
    assert not [
        each.name for each in features.BUILT_IN.in_use(world) if each.state is not None and not each.always
    ]
    found, world = run(ALL)
    assert world.use(NodeEnergy).rules.sleeps


def test_two_features_perform_no_effect_together() -> None:
    with pytest.raises(Bug, match="two features perform"):
        ManagerFeatures([_bell_ringer("one"), _bell_ringer("two")], services(Settings()))


def _bell_ringer(name: str) -> ManagerFeature:
    class Ringer(FeatureService):
        def performers(self) -> Any:
            return {bells.RingBell: lambda _effect: None}

    return ManagerFeature(name=name, make=lambda _services: Ringer())


def test_an_added_operation_is_for_its_roles_and_no_other() -> None:
    operations = Operations(bells.FEATURE.operations)
    for role in MAY_SEND:
        assert operations.allowed(role, bells.SetBell(1, "a", 0.0)) == (role == ADMIN)
        assert operations.allowed(role, bells.ListBells(1)) == (role in (ADMIN, USER))
    assert not Operations().allowed(ADMIN, bells.ListBells(1))
    for wrong in (Operation(m.Status, frozenset({USER})), Operation(bells.SetBell, frozenset({"king"}))):
        with pytest.raises(Bug):
            Operations([wrong])
