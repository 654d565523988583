"""Scripts: what is executed, which options their lines give, and that none passes for a list of commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client import scripts, submission
from rota.client.intake import from_bytes
from rota.core.fields.table import FIELDS
from rota.core.fields.values import MAX_COMMAND
from rota.core.jobs.command import brief
from rota.errors import BadInput


def read(text: str, name: str = "job.sh") -> scripts.Script:
    return scripts.read([text.encode()], source="job.sh", name=name)


@pytest.mark.parametrize(
    ("first", "begin"),
    [
        ("#!/bin/bash", ["/bin/bash", "-c"]),
        ("#!/bin/sh -eu", ["/bin/sh", "-eu", "-c"]),
        ("#! /usr/bin/env bash", ["/usr/bin/env", "bash", "-c"]),
        ("#!/usr/bin/env -S bash -e", ["/usr/bin/env", "bash", "-e", "-c"]),
        ("#!/bin/sh -", ["/bin/sh", "-c"]),
        ("#!", ["/bin/sh", "-c"]),
    ],
)
def test_a_shell_gets_the_text(first: str, begin: list[str]) -> None:
    text = f"{first}\necho $1"
    assert read(text).command(["a b"]) == [*begin, text, "job.sh", "a b"]


@pytest.mark.parametrize("first", ["#!/bin/bash -e", "#!/usr/bin/env python3", "#!/usr/bin/awk -f", "#", "#ROTA"])
def test_a_script_is_shown_by_its_name_and_arguments(first: str) -> None:
    assert brief(read(f"{first}\nrun").command(["a b", "-c"])) == "script job.sh 'a b' -c"
    assert brief(read(f"{first}\nrun", name="").command(["a"])) == "script stdin a"


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -u", "#!/usr/bin/python3"])
def test_other_interpreters_read_the_text_from_a_descriptor(first: str, size: int) -> None:
    text = f"{first}\n'''$HOME `x` \\\\ END\nEND\n'''\nimport sys\nprint(sys.argv[1:])\n#{'x' * size}"
    command = read(text).command(["a b", "$c"])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['a b', '$c']\n", "")


def test_without_an_interpreter_it_is_a_text_for_the_shell() -> None:
    assert read("echo 1\necho 2\n").command() == "echo 1\necho 2\n"
    assert read("echo $1").command(["x"]) == ["/bin/sh", "-c", "echo $1", "job.sh", "x"]


def test_options_are_read_down_to_the_first_command() -> None:
    script = read(
        "#!/bin/sh\r\n#ROTA --cpus 2 --mem=4G -nfine # isn't it\r\n# ROTA --cpus 3\n#ROTAX --cpus 4\n\n"
        "#ROTA --env A=1 --env 'B=x y' --name a#b\n#ROTA --env C=3 --scratch --no-live\n#SBATCH -n 3\necho\n"
        "#ROTA --cpus 9"
    )
    assert script.options == {
        "cpus": "2", "mem": "4G", "name": "a#b", "env": ("A=1", "B=x y", "C=3"), "scratch": True, "live": False,
    }  # fmt: skip
    assert script.others == ("#SBATCH",)


def test_every_option_of_a_job_may_be_written() -> None:
    for field in FIELDS.values():
        value = "" if not (field.metavar or field.kind.metavar) else " ''"
        try:
            assert field.name in read(f"#ROTA {field.option}{value}\ntrue").options
        except BadInput as error:  # of the value, not of the option
            assert "has no option" not in error.message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#ROTA --cpu 3", "job.sh line 2: a job has no option '--cpu'; did you mean --cpus?"),
        ("#ROTA --mem 3", "job.sh line 2: --mem: '3' has no unit; write 3G for gigabytes"),
        ("#ROTA --mem", "job.sh line 2: --mem needs a value; write --mem SIZE"),
        ("#ROTA --scratch=x", "job.sh line 2: --scratch takes no value; write --scratch"),
        ("#ROTA cpus=3", "'cpus=3' is no option; write options as for 'rota add', such as --mem 4G"),
        ("#ROTA --name 'x", "a quotation mark is not closed"),
        ("#ROTA --sync", "a job has no option '--sync'"),
    ],
)
def test_a_bad_option_is_refused_with_its_line(line: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(f"#!/bin/sh\n{line}\ntrue")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "the script is empty"),
        (b"echo \xff", "is not valid UTF-8"),
        (b"\x7fELF\0", "contains a NUL byte; run it by its path: rota add -- ./job.sh"),
        (b"x" * (MAX_COMMAND + 1), "run it by its path: rota add -- /bin/sh job.sh"),
        (b"#!/usr/bin/env python3\n'\xff'", "run it by its path: rota add -- /usr/bin/env python3 job.sh"),
    ],
)
def test_what_is_no_script_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        scripts.read([data], source="job.sh", name="job.sh")
    assert str(refused.value).startswith("job.sh: ")
    assert message in str(refused.value)


@given(st.text("#ROTA -'\"\\\n=lm!/ ", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        script = read(text)
    except BadInput as error:
        assert error.message
    else:
        assert text.replace("\r\n", "\n") in (script.text, *script.command(["x"]))


@pytest.mark.parametrize(
    "line", ["#!/bin/sh", "#SBATCH -n 1", "#BSUB -q x", "#OAR -l x", "#PBS -l x", "#ROTA --cpus 1"]
)
def test_a_script_is_no_list_of_commands(line: str) -> None:
    data = f"{line}\necho 1\n".encode()
    base = submission.base_wanted({})
    with pytest.raises(BadInput) as refused:
        list(from_bytes([data], base, source="job.sh"))
    assert f"'{line}'; give --script job.sh to run it as one job, or --lines if" in str(refused.value)
    with pytest.raises(BadInput, match="give --script - to run it"):
        list(from_bytes([data], base, source="stdin"))
    (batch,) = from_bytes([data], base, source="job.sh", lines=True)
    assert batch.cmds == ["echo 1"]


def test_other_comments_are_no_script() -> None:
    data = b"# SBATCH\necho 1\n#!/bin/sh\n#SBATCHING\n  #PBS -l\n#\n"
    (batch,) = from_bytes([data], submission.base_wanted({}), source="job.sh")
    assert batch.cmds == ["echo 1"]


def test_a_script_can_be_added_from_python(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/sh\n#ROTA --cpus 2 --priority 3\ntrue")
    batches, options = submission.prepare_file(path, {"priority": 9}, check=False, script=True)
    (batch,) = batches
    (spec,) = batch.specs
    assert (spec.size.cpus, spec.priority, spec.name, spec.group, spec.learn) == (
        200,
        9,
        "job.sh",
        "job.sh",
        "job.sh",
    )
    assert options.fresh
