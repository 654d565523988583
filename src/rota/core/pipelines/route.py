"""What follows from the stages alone: where an element goes, and what a stage is needed for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rota.core.pipelines.definition import KEY, Stage
from rota.core.pipelines.templates import stage_templates


class Route:
    """The stages of a session by their numbers, as the flow asks for them."""

    def __init__(self, stages: Sequence[Stage], selected: Collection[int] | None = None) -> None:
        """`selected`: the stages that this session takes; None: all."""
        self.stages = tuple(stages)
        numbers = range(len(stages))
        place = {stage.name: number for number, stage in enumerate(stages)}
        chosen = [selected is None or number in selected for number in numbers]
        #: stages that every element takes, and whose sums count all elements
        self.counted = [chosen[n] and not stages[n].per_session for n in numbers]
        #: the stage that elements leave last; None: only stages for the session were selected
        self.last = max((n for n in numbers if self.counted[n]), default=None)
        self.per_session = [n for n in numbers if chosen[n] and stages[n].per_session]
        self.needs = [stage.needs_dependencies for stage in stages]
        self.conditional = [bool(stage.skip_if or stage.run_if) for stage in stages]
        #: (stage, the stage at which an element goes on when that was ok)
        self.jumps = [(n, place[stages[n].skip_to]) for n in numbers if self.counted[n] and stages[n].skip_to]
        imperative = [n for n in numbers if self.counted[n] and stages[n].imperative]
        #: stage → imperative stages for which it may be needed; none: it is needed in any case
        self.needed_for = [self._needed_for(n, imperative) for n in numbers]
        #: the last stage of which nothing is begun any more after `quit`
        self.quit_until = imperative[-1] if imperative else len(stages) - 1
        redefining = next((n for n in numbers if stages[n].redefines), None)
        self.redefining = redefining
        #: the first stage that has to know the file which the redefining one names; None: there is no such file
        self.key_from = None
        if redefining is not None:
            self.key_from = next((n for n in numbers if n > redefining and self.counted[n]), None)
        #: does the work at a stage, or its condition, use the key?
        self.uses_key = [any(KEY in text.placeholders for text in stage_templates(s).values()) for s in stages]
        #: stage → stages after it whose conditions follow if it is skipped
        self.following = [self._following(n) for n in numbers]

    def _needed_for(self, number: int, imperative: list[int]) -> tuple[int, ...]:
        stage = self.stages[number]
        if stage.imperative or stage.always or stage.redefines:
            return ()
        return tuple(later for later in imperative if later > number)

    def _following(self, number: int) -> tuple[int, ...]:
        """Conditions that need no other question in between."""
        found = []
        for later in range(number + 1, len(self.stages)):
            if not self.counted[later]:
                continue
            if (
                not self.conditional[later]
                or self.needs[later]
                or self.needed_for[later]
                or later == self.key_from
            ):
                break
            found.append(later)
        return tuple(found)

    def jumped(self, number: int) -> list[int]:
        """The stages from which an element that was ok there jumps over this one."""
        if self.stages[number].always:
            return []
        return [origin for origin, target in self.jumps if origin < number < target]
