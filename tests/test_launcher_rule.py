"""Only the launcher starts processes, opens files of jobs and changes directory: the runner asks it to.

Each module of the runner that opens, makes or removes files of its own is listed with what they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_RUNNER = Path(__file__).parents[1] / "src" / "rota" / "runner"

#: Start, wait for or signal children, make their streams, or change where this process is.
_OF_LAUNCHERS = {
    f"os.{name}"
    for name in (
        "chdir fchdir chroot setuid setgid setgroups setresuid setresgid setreuid setregid seteuid setegid "
        "fork forkpty posix_spawn posix_spawnp system popen wait wait3 wait4 waitid waitpid killpg "
        "openpty login_tty pipe pipe2 execl execle execlp execlpe execv execve execvp execvpe "
        "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe"
    ).split()
}
#: Bring them with other names.
_MODULES = {"subprocess", "multiprocessing", "pty", "tempfile", "ctypes", "posix", "fileinput", "glob"}
#: What only launchers use of their package.
_INNARDS = {f"rota.launcher.{name}" for name in ("affinity", "output_files", "pipes", "process")}
_SPAWNING = {"libc.spawn", "libc.FileActions", "libc.strings"}

#: Open, make, remove or look for files.
_OF_FILES = {"open", "io.open", "pathlib", "shutil"} | {
    f"os.{name}"
    for name in (
        "open fwalk walk listdir scandir stat lstat access mkdir makedirs rmdir removedirs remove unlink rename "
        "renames replace link symlink readlink mkfifo mknod chmod chown lchown truncate utime statvfs memfd_create"
    ).split()
}
_OWN_FILES = {
    "contain/cgroup.py": "control groups",
    "contain/fences.py": "control groups",
    "contain/hierarchies.py": "control groups",
    "contain/task_containment.py": "/proc",
    "end/host_room.py": "/proc, control groups, the room on the disk of scratch directories",
    "end/measure.py": "/proc",
    "end/settling.py": "directories of dead runners",
    "enter/relay.py": "the socket of the relay",
    "identity.py": "the directory of this runner",
    "launch/launched.py": "directories of launchers",
    "launch/predecessor.py": "the directory of the runner whose place it takes",
    "log.py": "the log",
    "node.py": "/dev, the room on its disk",
    "output/segments.py": "segments of output",
    "output/shipping.py": "segments of output",
    "output/told_progress.py": "files in which jobs say how far they are",
    "report/contact.py": "the room on its disk",
    "report/journal.py": "the journal",
    "start/disk_room.py": "a file of its own that shows whether there is room on its disk",
    "start/errands.py": "tickets of provision commands, in a directory of its own",
    "startup.py": "the pass of a node, the directory of runners, its own descriptors",
    "ticket_runner.py": "the directory of this runner",
}


def _used(tree: ast.AST) -> Iterator[str]:
    """Names that a module uses, as `module.name` where it has a dot; and modules that it imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                yield f"{module}.{name}"
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


@cache
def _all_used(file: Path) -> frozenset[str]:
    return frozenset(_used(ast.parse(file.read_text())))


def _uses(file: Path, forbidden: set[str]) -> set[str]:
    return forbidden & _all_used(file)


_FILES = {str(file.relative_to(_RUNNER)): file for file in sorted(_RUNNER.rglob("*.py"))}


def test_the_runner_starts_and_reaps_nothing_itself() -> None:
    found = {name: _uses(file, _OF_LAUNCHERS | _MODULES | _INNARDS | _SPAWNING) for name, file in _FILES.items()}
    assert not {name: used for name, used in found.items() if used}, "use or extend rota.launcher"


def test_only_one_module_makes_a_launcher_inside_the_runner() -> None:
    makes = [name for name, file in _FILES.items() if _uses(file, {"rota.launcher.inside"})]
    assert makes == ["launch/place.py"]


def test_the_runner_opens_only_files_of_its_own() -> None:
    found = {name: used for name, file in _FILES.items() if (used := _uses(file, _OF_FILES))}
    strangers = {name: used for name, used in found.items() if name not in _OWN_FILES}
    assert not strangers, "files of jobs are opened in rota.launcher; files of the runner are listed here"
    assert not _OWN_FILES.keys() - found.keys(), "listed in vain"


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.chdir('/')",
        "from os import chdir",
        "import subprocess",
        "from rota.launcher.process import start",
    ],
)
def test_the_rule_sees_what_it_forbids(text: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text)
    assert _uses(tmp_path / "module.py", _OF_LAUNCHERS | _MODULES | _INNARDS)
