#!/usr/bin/env python3
"""Write the sources of the elements in pipeline.yaml into upstream/, the same ones each time.

Every element is a directory with a header, six parts and a test that compares a value with the one expected, which
is computed here.
"""

from __future__ import annotations

import re
from pathlib import Path

PARTS = 6
HERE = Path(__file__).parent

Graph = dict[str, list[str]]


def read_graph(pipeline: str) -> Graph:
    """Elements with their dependencies, which are written before them."""
    lines = re.findall(
        r"^  (\w+): \{(?:depends: \[(.*)\])?\}$", pipeline.partition("\nelements:\n")[2], re.MULTILINE
    )
    return {name: depends.split(", ") if depends else [] for name, depends in lines}


def factor(name: str, part: int) -> int:
    return sum(name.encode()) * 2 + part * 100 + 1


def value(graph: Graph, name: str, number: int) -> int:
    """What the C function NAME_value returns, in 32 bits."""
    total = number
    for part in range(1, PARTS + 1):
        total = (total * factor(name, part) + part) % 2**32
        total ^= total >> 7
    return (total + sum(value(graph, each, number) for each in graph[name])) % 2**32


def header(name: str) -> str:
    steps = "".join(f"unsigned {name}_step{part}(unsigned number);\n" for part in range(1, PARTS + 1))
    return f"#pragma once\n\nunsigned {name}_value(unsigned number);\n{steps}"


def source(graph: Graph, name: str, part: int) -> str:
    """One step of the computation; the last part has the function that does them all."""
    text = f"""\
unsigned {name}_step{part}(unsigned number)
{{
    number = number * {factor(name, part)}u + {part};
    return number ^ number >> 7;
}}
"""
    if part < PARTS:
        return f'#include "{name}/{name}.h"\n\n{text}'
    includes = "".join(f'#include "{each}/{each}.h"\n' for each in [name, *graph[name]])
    steps = "".join(f"    total = {name}_step{each}(total);\n" for each in range(1, PARTS + 1))
    others = "".join(f" + {each}_value(number)" for each in graph[name])
    body = f"    unsigned total = number;\n{steps}    return total{others};\n"
    return f"{includes}\n{text}\nunsigned {name}_value(unsigned number)\n{{\n{body}}}\n"


def test(graph: Graph, name: str) -> str:
    checks = " && ".join(f"{name}_value({n}) == {value(graph, name, n)}u" for n in (0, 1, 1000))
    return f'#include "{name}/{name}.h"\n\nint main(void)\n{{\n    return {checks} ? 0 : 1;\n}}\n'


def main() -> None:
    graph = read_graph((HERE / "pipeline.yaml").read_text())
    count = 0
    for name in graph:
        files = {f"{name}.h": header(name), "test.c": test(graph, name)}
        files |= {f"part{part}.c": source(graph, name, part) for part in range(1, PARTS + 1)}
        directory = HERE / "upstream" / name
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (directory / file).write_text(text)
        count += len(files)
    print(f"wrote {count} files of {len(graph)} elements to {HERE / 'upstream'}")


if __name__ == "__main__":
    main()
