"""Other programs that take a graph of elements through stages, each behind one function.

Each gets an empty directory and the same graph (`pipeline_graph`), and is timed from its start to its end, loading
of the graph included. All start one process for each build and each push: make and BuildStream's scheduler `true`
itself, ninja and Rota a shell that runs it, Snakemake bash.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pipeline_graph as graph

_LIMIT_S = 3600
_PEERS = Path(sys.executable).parent.parent / "peers"


class Times(NamedTuple):
    seconds: float
    first_build_s: float
    cpu_s: float  #: of the program and all that it has started and waited for


Peer = Callable[[int, int, Path], Times]


def timed(command: list[str], directory: Path, env: dict[str, str] | None = None) -> Times:
    """Raises `CalledProcessError`, with what the program said."""
    wall, begun, before = time.time(), time.perf_counter(), _spent_s()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=directory,
        env=env or os.environ | {"HOME": str(directory)},
        timeout=_LIMIT_S,
        check=False,
    )
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(
            f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}"
        )
    return Times(seconds, (directory / graph.FIRST_BUILD).stat().st_mtime - wall, _spent_s() - before)


def _spent_s() -> float:
    """CPU of all children so far that have ended, and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _prepare(elements: int, directory: Path, name: str, text: str) -> None:
    graph.write_done(directory, elements)
    (directory / name).write_text(text)


def make(elements: int, slots: int, directory: Path) -> Times:
    _prepare(elements, directory, "Makefile", graph.as_make(elements))
    return timed(["make", "-s", f"-j{slots}"], directory)


def ninja(elements: int, slots: int, directory: Path) -> Times:
    _prepare(elements, directory, "build.ninja", graph.as_ninja(elements))
    return timed([_program("ninja", "ninja"), f"-j{slots}"], directory)


def snakemake(elements: int, slots: int, directory: Path) -> Times:
    _prepare(elements, directory, "Snakefile", graph.SNAKEMAKE)
    command = [_program("snakemake", "snakemake"), f"--cores={slots}", "--quiet=all", "--nolock"]
    return timed([*command, "--rerun-triggers=mtime", "--config", f"elements={elements}"], directory)


def buildstream(elements: int, slots: int, directory: Path) -> Times:
    """Only its scheduler: see `buildstream_elements`."""
    graph.write_done(directory, elements)
    script = Path(__file__).with_name("buildstream_elements.py")
    return timed([_program("BuildStream", "python"), str(script), str(elements), str(slots)], directory)


PEERS: dict[str, Peer] = {"make": make, "ninja": ninja, "snakemake": snakemake, "buildstream": buildstream}


def _program(environment: str, name: str) -> str:
    ours = _PEERS / environment / "bin" / name
    return str(ours) if ours.exists() else shutil.which(name) or name


def missing(name: str) -> str:
    """How to get this peer, or "" if it is here."""
    if name == "make":
        return "" if shutil.which("make") else "install the package make"
    if name == "buildstream":
        ours = _PEERS / "BuildStream/bin/bst"
        return "" if ours.exists() else "pip could not install BuildStream; see the output of make"
    return "" if shutil.which(_program(name, name)) else f"pip could not install {name}; see the output of make"
