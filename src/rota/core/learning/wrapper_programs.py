"""Tables of programs that run other programs, and of the arguments they take themselves.

Used by `core.learning.program`. A missing entry only means a learning group with the wrapper's name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Shell commands that prepare, test or end something: never the program.
PREPARE: Final = frozenset(
    "cd pushd popd dirs export unset set shopt ulimit umask source . module ml trap alias unalias declare local "
    "readonly typeset test [ [[ : true false exit return break continue shift getopts let read mapfile readarray "
    "wait jobs bg fg disown hash type which times enable logout".split()
)
#: Shell commands that are the program only if there is no other.
MINOR: Final = frozenset("echo printf pwd kill eval".split())
#: Words that open or close a construct with commands inside.
OPEN: Final = frozenset("! { } if then elif else while until do fi done esac coproc".split())
#: Words that are not followed by a command.
LOOPS: Final = frozenset("for select".split())
KEYWORDS: Final = OPEN | LOOPS | {"case", "function", "in", "]]"}


class Wrapper(NamedTuple):
    """A program that runs the program named in its arguments."""

    valued: frozenset[str] = frozenset()  #: options whose value is the next word
    skip: int = 0  #: own words between the options and the program
    doubly: frozenset[str] = frozenset()  #: options with two values
    values_look_like_numbers: bool = False  #: a number after an unknown option is its value


def _wrapper(valued: str = "", *, skip: int = 0, doubly: str = "", numbers: bool = False) -> Wrapper:
    return Wrapper(frozenset(valued.split()), skip, frozenset(doubly.split()), numbers)


_MPI: Final = _wrapper(
    "-n -np -c -N -H -host --host -hostfile --hostfile -machinefile --machinefile -f -ppn -x -wdir --wdir -wd "
    "-bind-to --bind-to -map-by --map-by -rank-by --rank-by -rf --output -path --prefix -cpus-per-proc",
    doubly="-mca --mca -gmca --gmca -genv -env",
    numbers=True,
)
_CONTAINER: Final = _wrapper(
    "-B --bind -H --home --pwd --env --env-file -W --workdir -o --overlay -S --scratch --hostname --network -s "
    "--security --app --nv-path --mount",
    skip=1,
)
WRAPPERS: Final = {
    "env": _wrapper("-u --unset -C --chdir -S --split-string"),
    "time": _wrapper("-f --format -o --output"),
    "nice": _wrapper("-n --adjustment"),
    "timeout": _wrapper("-s --signal -k --kill-after", skip=1),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "ionice": _wrapper("-c -n --class --classdata"),
    "taskset": _wrapper(skip=1),
    "chrt": _wrapper("-T -P -D", skip=1),
    "numactl": _wrapper("-i -m -p -P -N -C --interleave --membind --preferred --cpunodebind --physcpubind"),
    "sudo": _wrapper("-u -g -h -p -C -r -t -U -T -D -R --user --group"),
    "doas": _wrapper("-u -C"),
    "exec": _wrapper("-a"),
    "flock": _wrapper("-w -E --timeout --wait", skip=1),
    "strace": _wrapper("-e -o -s -p -P -u -E -a -b -I -O -S -X"),
    "xvfb-run": _wrapper("-n -s -e -f -p -w --server-num --server-args --error-file --auth-file --wait"),
    "srun": _wrapper(
        "-n -N -c -p -t -A -J -o -e -i -w -x -G -D -q -C -m -d -r -b -M -T -B -L -W --partition --account "
        "--job-name --output --error --input --chdir --qos --constraint --mpi --export --gres --mem --cpu-bind "
        "--distribution --nodelist --exclude --time",
        numbers=True,
    ),
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "aprun", "jsrun"), _MPI),
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "eatmydata", "unbuffer", "tini"), Wrapper()),
    **dict.fromkeys(("dumb-init", "valgrind", "catchsegv"), Wrapper()),
}
#: Wrappers only if this word follows.
WITH_VERB: Final = {
    "singularity": ("exec", _CONTAINER),
    "apptainer": ("exec", _CONTAINER),
    "uv": ("run", _wrapper("-p --python --with --extra --group --directory --project --env-file")),
    "poetry": ("run", Wrapper()),
    "pipenv": ("run", Wrapper()),
    **dict.fromkeys(("conda", "mamba", "micromamba"), ("run", _wrapper("-n -p --name --prefix --cwd"))),
}


class Interpreter(NamedTuple):
    """A program that runs the file named in its arguments."""

    valued: frozenset[str] = frozenset()
    code: str = "e"  #: letters of options whose value is program text
    named: frozenset[str] = frozenset()  #: options whose value is the program's name
    attached: str = ""  #: letters of options whose value may follow in the same word
    is_shell: bool = False


def _interpreter(valued: str = "", *, code: str = "e", named: str = "", attached: str = "") -> Interpreter:
    return Interpreter(frozenset(valued.split()), code, frozenset(named.split()), attached)


_SHELL: Final = Interpreter(frozenset("-o +o -O +O --rcfile --init-file".split()), "c", is_shell=True)
INTERPRETERS: Final = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish"), _SHELL),
    **dict.fromkeys(
        ("python", "pypy", "ipython"),
        _interpreter("-W -X --check-hash-based-pycs", code="c", named="-m", attached="WX"),
    ),
    "perl": _interpreter("-I", code="eE", attached="IMmxiDVC0F"),
    "ruby": _interpreter("-I -r -C -E", attached="IrCEKTWx0F"),
    "Rscript": _interpreter(),
    "R": _interpreter("-g --gui -d --debugger", named="-f --file BATCH"),
    "java": _interpreter("-cp -classpath --class-path -p --module-path --add-modules", code="", named="-jar -m"),
    "node": _interpreter("-r --require --import --loader -C", code="ep"),
    "julia": _interpreter("-t -p -L -J -C -H --threads --procs --load --sysimage", code="eE", attached="tpLJCO"),
    "php": _interpreter("-c -d -z", code="r", named="-f", attached="cdz"),
    "lua": _interpreter("-l", attached="l"),
    "luajit": _interpreter("-l", attached="l"),
    "tclsh": _interpreter(code=""),
    "octave": _interpreter("--path -p"),
}


def interpreter_called(base: str) -> Interpreter | None:
    """Look up an interpreter; `python3.11` counts as `python`."""
    return INTERPRETERS.get(base) or INTERPRETERS.get(base.rstrip("0123456789."))
