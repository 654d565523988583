"""Refuses sessions with a stage whose jobs would be refused if they were added one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from rota.core.pipelines.session_records import SessionStarted
from rota.core.site.planning_terms import impossible
from rota.core.world import World
from rota.errors import NeverFits, RotaError


def takes(selected: Collection[int] | None, stage: int) -> bool:
    """Does a session run this stage? `selected`: the stages that were; None: all."""
    return selected is None or stage in selected


@contextmanager
def of_stage(name: str) -> Iterator[None]:
    """Errors in here name this stage."""
    try:
        yield
    except RotaError as error:
        raise error.of(f"stage '{name}'") from None


def refuse_impossible_stages(world: World, event: SessionStarted) -> None:
    """Raise if the jobs of a stage ask for what no host has, or for what the site does not know."""
    for number, (stage, work) in enumerate(zip(event.definition.stages, event.works, strict=True)):
        if not takes(event.stages, number):
            continue
        with of_stage(stage.name):
            why = impossible(world, event.specs[work.spec])
            if why is not None:
                raise NeverFits(why, hint="ask for less")
