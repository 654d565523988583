"""What becomes of every element at every stage, from the meaning of pipelines alone: no engine, no time."""

from __future__ import annotations

from collections.abc import Callable

from rota.core.pipelines.definition import Definition

#: (element, stage) → exit codes of its attempts, the last one for all that follow.
Codes = Callable[[str, str], tuple[int, ...]]
#: (element, stage) → exit status of its condition; negative: it takes too long.
Condition = Callable[[str, str], int]

PASSED = ("processed", "skipped")


def foretell(definition: Definition, codes: Codes, condition: Condition) -> dict[tuple[str, str], str]:
    """The sum in which each element is counted at each stage, if every failure means `continue`."""
    found: dict[tuple[str, str], str] = {}
    names = [element.name for element in definition.elements]
    places = {stage.name: number for number, stage in enumerate(definition.stages)}
    redefines = bool(definition.stages[0].redefines)
    known: set[str] = set()  #: elements whose key is known, if a stage redefines them
    for element in definition.elements:
        jump_to = ""
        lost = ""  #: failed or blocked
        for number, stage in enumerate(definition.stages):
            if stage.per_session:
                continue
            cell = (element.name, stage.name)
            if jump_to == stage.name:
                jump_to = ""
            lacks_key = redefines and number > 0 and "{key}" in "".join(stage.texts) and element.name not in known
            if lost and (lost != "failed" or not stage.also_failed or lacks_key):
                found[cell] = "blocked"
                continue
            if not lost and redefines and number > 0 and element.name not in known:
                if any(names[each] not in known for each in element.depends):
                    found[cell], lost = "blocked", "blocked"
                    continue
                known.add(element.name)
            if not lost:
                if jump_to and not stage.always:
                    found[cell] = "skipped"
                    continue
                waits = [(names[each], stage.name) for each in element.depends] if stage.needs_dependencies else []
                if any(found[each] not in PASSED for each in waits):
                    found[cell], lost = "blocked", "blocked"
                    continue
                needed = _needed(definition, number, element.name, condition)
                if needed is not True:
                    found[cell] = needed
                    lost = "failed" if needed == "failed" else ""
                    continue
            found[cell] = _worked(definition, number, element.name, codes, condition)
            if found[cell] == "failed":
                lost = "failed"
            elif found[cell] == "processed" and stage.skip_to:
                # A stage that is always taken lies inside the jump, and cannot make it shorter.
                jump_to = max(jump_to, stage.skip_to, key=lambda name: places.get(name, -1))
    return found


def _needed(definition: Definition, number: int, element: str, condition: Condition) -> bool | str:
    """A stage that is not imperative is taken only if a later, imperative one will need it."""
    stage = definition.stages[number]
    later = [each for each in definition.stages[number + 1 :] if each.imperative]
    if stage.imperative or stage.always or stage.redefines or not later:
        return True
    if any(not (each.skip_if or each.run_if) for each in later):
        return True
    for each in later:
        skip = _skips(each.skip_if, each.run_if, condition(element, each.name))
        if skip is None:
            return "failed"
        if not skip:
            return True
    return "skipped"


def _skips(skip_if: str, run_if: str, status: int) -> bool | None:
    """None: the condition ended by a signal, or took too long."""
    if not (skip_if or run_if):
        return False
    if status < 0 or status > 128:
        return None
    return (status == 0) is bool(skip_if)


def _worked(definition: Definition, number: int, element: str, codes: Codes, condition: Condition) -> str:
    stage = definition.stages[number]
    skip = _skips(stage.skip_if, stage.run_if, condition(element, stage.name))
    if skip is None:
        return "failed"
    if skip:
        return "skipped"
    said = codes(element, stage.name)
    for attempt in range(stage.retries + 1):
        code = said[min(attempt, len(said) - 1)]
        if code == 0:
            return "processed"
        if code == 77:
            return "skipped"
        if code != 75:
            return "failed"
    return "failed"
