"""The graph of the pipeline benchmark, in the languages of Rota and of the programs beside it.

Every element has five stages. Three are up to date already, which each program finds out by looking at a file; two
run `true`. The build of an element waits for those of two others, and in the end all wait for the first element,
whose build leaves a file behind: it tells when the first build was.
"""

from __future__ import annotations

from pathlib import Path

SKIPPED = ("pull", "fetch", "configure")
STAGES = (*SKIPPED, "build", "push")
FIRST_BUILD = "first-build"


def depends(element: int) -> list[int]:
    return sorted({element // 2, element // 3}) if element else []


def build(element: int) -> str:
    return f"{'true' if element else 'touch'} {FIRST_BUILD}"


def write_done(directory: Path, elements: int) -> None:
    """The files of the stages that are up to date."""
    done = directory / "done"
    done.mkdir()
    for stage in SKIPPED:
        for element in range(elements):
            (done / f"e{element}.{stage}").touch()


def as_rota(elements: int) -> str:
    lines = ["stages:"]
    for stage in SKIPPED:
        lines += [f"  - name: {stage}", f"    skip_if: test -e done/{{name}}.{stage}", "    run: 'false'"]
    lines += ["  - name: build", "    needs: dependencies", f"    run: '{{program}} {FIRST_BUILD}'"]
    lines += [
        "  - name: push",
        "    run: 'true'",
        "defaults: {program: 'true'}",
        "elements:",
        "  e0: {program: touch}",
    ]
    for element in range(1, elements):
        lines.append(f"  e{element}: {{depends: [{_joined(element, 'e{}', ', ')}]}}")
    return "\n".join(lines) + "\n"


def as_make(elements: int) -> str:
    lines = [".SUFFIXES:", "all: " + " ".join(f"e{element}.push" for element in range(elements))]
    for element in range(elements):
        lines += [f"done/e{element}.fetch: done/e{element}.pull", "\tfalse"]
        lines += [f"done/e{element}.configure: done/e{element}.fetch", "\tfalse"]
        lines += [f"e{element}.build: done/e{element}.configure {_joined(element, 'e{}.build', ' ')}"]
        lines += [f"\t{build(element)}", f"e{element}.push: e{element}.build", "\ttrue"]
    return "\n".join(lines) + "\n"


def as_ninja(elements: int) -> str:
    """`generator`: without it, ninja runs what it has not run itself before."""
    lines = ["rule skip", "  command = false", "  generator = 1", "rule run", "  command = $what"]
    for element in range(elements):
        lines += [f"build done/e{element}.fetch: skip done/e{element}.pull"]
        lines += [f"build done/e{element}.configure: skip done/e{element}.fetch"]
        lines += [f"build e{element}.build: run done/e{element}.configure {_joined(element, 'e{}.build', ' ')}"]
        lines += [f"  what = {build(element)}", f"build e{element}.push: run e{element}.build", "  what = true"]
    return "\n".join(lines) + "\n"


def _joined(element: int, form: str, between: str) -> str:
    return between.join(form.format(each) for each in depends(element))


#: Its outputs have to be there afterwards, so it touches them.
SNAKEMAKE = """
ELEMENTS = range(int(config["elements"]))

def builds(wildcards):
    number = int(wildcards.n)
    return [f"e{each}.build" for each in sorted({number // 2, number // 3} if number else ())]

rule all:
    input: expand("e{n}.push", n=ELEMENTS)

rule fetch:
    input: "done/e{n}.pull"
    output: "done/e{n}.fetch"
    shell: "false"

rule configure:
    input: "done/e{n}.fetch"
    output: "done/e{n}.configure"
    shell: "false"

rule build:
    input: "done/e{n}.configure", builds
    output: touch("e{n}.build")
    params: program=lambda wildcards: "true" if int(wildcards.n) else "touch"
    shell: "{params.program} first-build"

rule push:
    input: "e{n}.build"
    output: touch("e{n}.push")
    shell: "true"
"""
