"""Refuses import cycles between modules of `src/rota`, imports for the type checker included.

import-linter keeps the order of packages; this looks at single modules. `rota` offers `rota.client` lazily, which
is the one exception.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from pathlib import Path

_SOURCE = Path(__file__).parents[1] / "src"
_ALLOWED = {("rota", "rota.client")}

Graph = dict[str, set[str]]


def modules(source: Path) -> dict[str, Path]:
    """Dotted name → file."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(source: Path) -> Graph:
    """Module → the modules that it imports, at whatever place."""
    files = modules(source)
    graph: Graph = {}
    for name, file in files.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= inside & files.keys() or {node.module}
        graph[name] = {other for other in wanted & files.keys() if (name, other) not in _ALLOWED and other != name}
    return graph


def cycle_through(graph: Graph, start: str) -> list[str]:
    """The shortest way from a module back to itself; empty: there is none."""
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        module = queue.popleft()
        for other in sorted(graph[module]):
            if other == start:
                way = [module]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return [*reversed(way), start]
            if other not in came_from:
                came_from[other] = module
                queue.append(other)
    return []


def cycles(graph: Graph) -> list[list[str]]:
    """One shortest cycle for each module that is in one, every cycle once."""
    found: dict[frozenset[str], list[str]] = {}
    for module in graph:
        way = cycle_through(graph, module)
        if way:
            found.setdefault(frozenset(way), way)
    return sorted(found.values(), key=len)


def main() -> int:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else _SOURCE
    found = cycles(imports(source))
    for way in found:
        print("import cycle:", " -> ".join(way))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
