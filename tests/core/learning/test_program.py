"""What a command's learning group is called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.learning import program
from rota.core.learning.program import MAX_NAME_BYTES, program_of
from rota.core.learning.wrapper_programs import KEYWORDS, PREPARE


@pytest.mark.parametrize(
    ("cmd", "name"),
    [
        ("prog a b", "prog"),
        ("prog", "prog"),
        ("prog\targ", "prog"),
        ("  prog", "prog"),
        ("prog;other", "prog"),
        ("cat x | sort", "cat"),
        ("/usr/bin/prog x", "prog"),
        ("./prog x", "prog"),
        ('"$HERE"/bin/prog x', "prog"),
        ("'my prog' x", "my prog"),
        ("# a remark\nprog x", "prog"),
        ("\\\nprog x", "prog"),
        ("> out prog x", "prog"),
        ("2>err prog x", "prog"),
    ],
)
def test_it_is_the_first_word_without_its_directory(cmd: str, name: str) -> None:
    assert program_of(cmd) == name


@pytest.mark.parametrize(
    "cmd",
    [
        "cd /x && prog",
        "cd '/x y'; prog",
        "cd /x || exit 1; prog",
        "(cd x; prog)",
        "set -eu; export A=b; ulimit -n 99; prog",
        "source env/bin/activate && prog",
        "module load x/1.2\nprog",
        "env A=b C='d e' prog",
        "env -i -u X A=b prog",
        "env -S 'A=b prog x'",
        "A=1 B='x y' prog",
        "A=$(date) prog",
        "if [ -f x ]; then prog; fi",
        "for i in 1 2; do prog $i; done",
        "! prog",
        "{ prog; }",
        "true; prog",
        "test -f x || exit 1; prog",
        "[[ -f x && -f y ]] && prog",
        "command -v tool >/dev/null || exit 1; prog",
        "echo start; prog; echo end",
        "echo text | prog",
        "prog | sort | tee x",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); prog $i; done",
        "while true; do prog; done",
        "while read -r line; do prog $line; done < list",
        "until test -e x; do prog; done",
        "for ((i = 0; i < 3; i++)); do prog $i; done",
        "((n++)); prog",
        "n=$((2 * (3 + 4))) prog",
        "x=$(date $(tr a (b))) prog",
        "x=${y:-a b} prog",
        "names=(one two); prog",
        "case $1 in a|b) cd x;; *) prog;; esac",
        "case $1 in (a) true;; esac; prog",
        "work() { prog x; }; work",
        "function work { prog x; }",
        "read x <<END\nsome text\nEND\nprog $x",
        ": <<'END'\nsome text\nEND\nprog",
        "eval 'prog x'",
        "trap 'rm -f x' EXIT; prog",
    ],
)
def test_it_comes_after_cd_and_env(cmd: str) -> None:
    assert program_of(cmd) == "prog"


@pytest.mark.parametrize(
    "wrapper",
    [
        "time",
        "time -p",
        "/usr/bin/time -f '%e s' -o log",
        "nice",
        "nice -n 10",
        "nice -10",
        "nohup",
        "timeout 10m",
        "timeout -k 5 -s INT 10m",
        "timeout --kill-after=5 10m",
        "stdbuf -oL -e 0",
        "setsid -w",
        "ionice -c 3",
        "ionice -c2 -n 7",
        "taskset 0x3",
        "taskset -c 0-3",
        "numactl --cpunodebind=0 -m 0",
        "srun -n 4 --ntasks-per-node 2 --exclusive",
        "mpirun -np 4 --mca btl tcp",
        "mpiexec -n 4",
        "sudo -u ann",
        "exec",
        "command --",
        "xvfb-run -a -s '-screen 0 1x1x8'",
        "singularity exec -B /a:/b image.sif",
        "apptainer exec --nv image.sif",
        "uv run --with x",
        "conda run -n science",
        "nice nohup env A=b timeout 5 time",
    ],
)
def test_it_comes_after_wrappers_and_their_options(wrapper: str) -> None:
    assert program_of(f"{wrapper} bin/prog -n 3") == "prog"


@pytest.mark.parametrize(
    ("cmd", "name"),
    [
        ("python x.py a", "x.py"),
        ("python3.11 -u dir/x.py a", "x.py"),
        ("/opt/py/bin/python3 -W ignore -Xdev x.py", "x.py"),
        ("python -m pkg.mod a", "pkg.mod"),
        ("python -um pkg.mod a", "pkg.mod"),
        ("bash script.sh", "script.sh"),
        ("bash -x -o pipefail script.sh", "script.sh"),
        ("sh -euc 'cd x && ./tool a'", "tool"),
        ('bash -lc "source a; python x.py"', "x.py"),
        ("Rscript --vanilla x.R", "x.R"),
        ("R CMD BATCH x.R", "x.R"),
        ("R --no-save --file=x.R", "x.R"),
        ("perl -Ilib -w x.pl", "x.pl"),
        ("ruby x.rb", "x.rb"),
        ("java -Xmx4g -cp a:b -jar d/x.jar y", "x.jar"),
        ("java -cp a org.example.Main", "org.example.Main"),
        ("node --max-old-space-size=4 s.js", "s.js"),
        ("julia -t 4 --project=. x.jl", "x.jl"),
        ("cd d && nice python -u x.py", "x.py"),
    ],
)
def test_it_is_what_an_interpreter_interprets(cmd: str, name: str) -> None:
    assert program_of(cmd) == name


@pytest.mark.parametrize(
    ("cmd", "name"),
    [
        ("python -c 'print(1)'", "python"),
        ("perl -lane 'print'", "perl"),
        ("python", "python"),
        ("python - < x.py", "python"),
        ("bash -c", "bash"),
        ("bash -c 'exit 3'", "bash"),
        ("timeout 5", "timeout"),
        ("echo hello", "echo"),
        ("apptainer run x.sif", "x.sif"),
    ],
)
def test_without_a_file_it_is_the_interpreter_or_wrapper(cmd: str, name: str) -> None:
    assert program_of(cmd) == name


@pytest.mark.parametrize(
    "cmd",
    [
        "true",
        "false",
        ":",
        "exit",
        "exit 3",
        "cd x",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; true",
        "for",
        "case x in",
        "if true; then exit 1; fi",
        "./if x",
        "a/b=c",
    ],
)
def test_what_only_the_shell_does_is_the_shells(cmd: str) -> None:
    assert [program_of(cmd), program_of(cmd)] == ["sh", "sh"]


def test_the_words_of_a_list_are_taken_as_they_are() -> None:
    assert program_of(["true"]) == "true"
    assert program_of(["test", "-f", "x"]) == "test"
    assert program_of(["env", "A=b", "prog"]) == "prog"
    assert program_of(["/bin/prog", "x"]) == "prog"
    assert program_of(["my prog;", "x"]) == "my prog;"
    assert program_of(["python", "-u", "x y.py"]) == "x y.py"
    assert program_of(["bash", "-c", "cd a; tool"]) == "tool"


def test_names_do_not_mix_by_prefix() -> None:
    assert {program_of(f"{name} x") for name in ("blast", "blastp", "blast2", "bla")} == {
        "blast",
        "blastp",
        "blast2",
        "bla",
    }


@pytest.mark.parametrize("cmd", ["", "   ", "\n\n", '""', "A=b", ";;;", [], [""]])
def test_a_command_without_a_program_is_the_shells(cmd: str | list[str]) -> None:
    assert program_of(cmd) == "sh"


@given(st.text() | st.lists(st.text()) | st.text("'\"\\ \n;&|()<>$`=-abc/#"))
def test_any_text_has_a_name_that_can_be_stored(cmd: str | list[str]) -> None:
    name = program_of(cmd)
    assert 0 < len(name.encode()) <= MAX_NAME_BYTES
    assert program_of(cmd) == name


#: What shells' texts are made of.
PIECES = st.sampled_from(
    (
        "i=0 a+=(1 2) $((i+1)) $(x) ${y:-z} if then fi while do done for in case esac a) ;; ; && || | & ( ) { } ! "
        "[ [[ ]] function f() true exit cd echo read eval env nice timeout bash python -c -v <<END END > "
        "\n ' \" \\ ` prog x.py 3"
    ).split(" ")
)


@given(st.lists(PIECES).map(" ".join) | st.lists(PIECES).map("".join) | st.text())
def test_no_text_is_named_after_a_word_of_the_shell(text: str) -> None:
    name = program_of(text)
    assert name
    assert name not in KEYWORDS | PREPARE
    assert not re.match(r"[A-Za-z_][A-Za-z_0-9]*\+?=", name)


@pytest.mark.parametrize(
    "piece",
    ['"', "'", "\\", "\n", '"\\', "(", "$(", "a", "env ", "bash -c '", "☃", "\ud800", "'\"", "`", "$((", "a=("],
)
def test_hostile_text_has_one_too(piece: str) -> None:
    name = program_of(piece * 100_000)
    assert 0 < len(name.encode()) <= MAX_NAME_BYTES


def test_what_was_seen_before_does_not_change_a_name() -> None:
    for cmd in ("bash x.sh", "prog x", "python a.py"):
        program_of(cmd)
    assert program_of("bash -c 'prog x'") == "prog"
    assert program_of(["bash x.sh"]) == "bash x.sh"
    assert program_of("python -c a.py") == "python"


def test_what_is_remembered_stays_bounded() -> None:
    for number in range(10_000):
        program_of(f"prog{number} x")
        program_of(f"python p{number}.py x")
    assert len(program._plain) <= 4096
    assert len(program._pairs) <= 4096


@pytest.mark.parametrize("cmd", [".", "..", ". ./settings", "a/..", ["."]])
def test_it_is_never_what_browsers_take_out_of_an_address(cmd: str | list[str]) -> None:
    assert program_of(cmd) == program.NAMELESS
