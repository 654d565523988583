"""The graph of elements: its depth-first order, its cycles, how deep each element is, and what a few of them need.

Nothing here recurses, so a chain may be as long as it likes. All takes time in proportion to the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from msgspec.structs import replace

from rota.core.fields.values import shown
from rota.core.pipelines.definition import Definition, Element
from rota.errors import BadInput, BadPipeline

#: Names in a message about a cycle.
_SHOWN: Final = 20


class NamedElement(NamedTuple):
    """An element as written: what it depends on by name."""

    name: str
    depends: tuple[str, ...] = ()
    own: tuple[tuple[str, str], ...] = ()


def in_order(elements: Sequence[NamedElement]) -> tuple[Element, ...]:
    """The elements depth-first: in the order given, but each after all that it depends on.

    Raises `BadPipeline` for a dependency that is missing or named twice, and for a cycle.
    """
    positions = {element.name: position for position, element in enumerate(elements)}
    depends: list[tuple[int, ...]] = []
    for element in elements:
        found: dict[int, None] = {}
        for at, name in enumerate(element.depends):
            position = positions.get(name)
            if position is None:
                raise _wrong(element, at, f"there is no element '{shown(name)}'", hint=_similar(name, positions))
            if position in found:
                raise _wrong(element, at, f"'{shown(name)}' is named twice", hint="name it once")
            found[position] = None
        depends.append(tuple(found))
    order, cycle = _depth_first(depends, range(len(elements)))
    if cycle:
        raise _cyclic([elements[position] for position in cycle])
    new = [0] * len(elements)
    for position, old in enumerate(order):
        new[old] = position
    return tuple(
        Element(elements[old].name, tuple(new[parent] for parent in depends[old]), elements[old].own)
        for old in order
    )


def _depth_first(depends: Sequence[Sequence[int]], roots: Iterable[int]) -> tuple[list[int], list[int]]:
    """What can be reached from the roots, dependencies first; or a cycle, in which each depends on the next."""
    order: list[int] = []
    seen = bytearray(len(depends))  # 1: on the path from a root, 2: in the order
    for root in roots:
        if seen[root]:
            continue
        seen[root] = 1
        path = [root]
        rest = [iter(depends[root])]
        while path:
            for parent in rest[-1]:
                if seen[parent] == 1:
                    return [], path[path.index(parent) :]
                if not seen[parent]:
                    seen[parent] = 1
                    path.append(parent)
                    rest.append(iter(depends[parent]))
                    break
            else:
                rest.pop()
                seen[path[-1]] = 2
                order.append(path.pop())
    return order, []


def _cyclic(cycle: Sequence[NamedElement]) -> BadPipeline:
    """The error names the whole cycle, shortened in the text if it is very long."""
    names = [element.name for element in cycle]
    said = [shown(name, 80) for name in (*names, names[0])]
    if len(said) > _SHOWN:
        said[_SHOWN - 1 : -1] = [f"… {len(said) - _SHOWN} more …"]
    closing = cycle[-1]
    text = "it depends on itself" if len(names) == 1 else f"a cycle: {' -> '.join(said)}"
    error = _wrong(closing, closing.depends.index(names[0]), text, hint="take one of these dependencies out")
    error.cycle = tuple(names)
    return error


def _wrong(element: NamedElement, at: int, text: str, *, hint: str) -> BadPipeline:
    path = ("elements", element.name, "depends", at)
    return BadPipeline(text, path=path, hint=hint, of=f"element '{shown(element.name, 80)}'")


def _similar(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name[:60], list(known)[:10_000], n=1)
    return f"did you mean '{shown(close[0])}'?" if close else "add it to 'elements', or take it out"


def depths(elements: Sequence[Element], durations: Sequence[float] | None = None) -> list[float]:
    """How much has to be done one after the other from each element to the last that waits for it, itself
    included: elements or, with their durations, seconds. The deepest elements are needed first."""
    depths: list[float] = [0.0] * len(elements)
    for position in range(len(elements) - 1, -1, -1):
        depth = depths[position] + (1.0 if durations is None else durations[position])
        depths[position] = depth
        for parent in elements[position].depends:
            if depths[parent] < depth:
                depths[parent] = depth
    return depths


def only(definition: Definition, names: Iterable[str]) -> Definition:
    """The definition with only these elements and all that they need. Raises `BadInput`."""
    positions = {element.name: position for position, element in enumerate(definition.elements)}
    roots = set()
    for name in names:
        if name not in positions:
            raise BadInput(f"there is no element '{shown(name, 80)}'", hint=_similar(name, positions))
        roots.add(positions[name])
    order, _ = _depth_first([element.depends for element in definition.elements], sorted(roots))
    new = {old: position for position, old in enumerate(order)}
    kept = []
    for old in order:
        element = definition.elements[old]
        kept.append(replace(element, depends=tuple(new[parent] for parent in element.depends)))
    return replace(definition, elements=tuple(kept))


def left_out(definition: Definition, selected: Definition) -> tuple[NamedElement, ...]:
    """The elements of a definition that its selection leaves out."""
    elements = definition.elements
    chosen = {element.name for element in selected.elements}
    return tuple(
        NamedElement(element.name, tuple(elements[parent].name for parent in element.depends))
        for element in elements
        if element.name not in chosen
    )


def stage_positions(definition: Definition, names: Iterable[str]) -> tuple[int, ...]:
    """Where these stages are, in order of the definition. Raises `BadInput`."""
    positions = {stage.name: position for position, stage in enumerate(definition.stages)}
    chosen = set()
    for name in names:
        if name not in positions:
            raise BadInput(f"there is no stage '{shown(name)}'", hint=f"the stages are {', '.join(positions)}")
        chosen.add(positions[name])
    return tuple(sorted(chosen))
