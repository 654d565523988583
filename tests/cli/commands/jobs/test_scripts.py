"""`--script`: a file is one job, with its own interpreter, options and arguments, as it was when it was added."""

from __future__ import annotations

from tests.deployment import Deployment


def test_scripts_run_as_one_job(shared: Deployment) -> None:
    script = shared.work / "job.sh"
    script.write_text(
        "#!/bin/bash -e\n#ROTA --mem 300M -n fine --env 'A=x y'\n#ROTA --cpus 2\n"
        'echo "$0: $# $1, $A, $ROTA_JOB_NAME, $ROTA_CPUS, ${BASH_VERSION:+bash}"\nexit 3\n'
    )
    done = shared.rota("run", "--script", "job.sh", "--cpus", "1", "--", "a b")
    assert (done.returncode, done.stdout) == (3, "job.sh: 1 a b, x y, fine, 1, bash\n")
    assert "ignored" not in done.stderr
    # Rows have no room for its text; 'show' has.
    assert "failed (exit 3): script job.sh 'a b' " in done.stderr
    assert shared.ok("jobs", "name=fine").splitlines()[1].endswith("script job.sh 'a b'")
    assert "BASH_VERSION" in shared.ok("show", "last")
    assert shared.json("jobs", "@job.s*,name=fine,exit=3,cmd~BASH_VERSION")["total"] == 1
    assert "no group begins with 'job.x'" in shared.rota("kill", "@job.x*").stderr
    for selector, said in (
        ("name=nosuch", "no job with the name 'nosuch'"),
        ("name=nosuch*", "no name of a job begins with 'nosuch'"),
        ("state=failed,name=nosuch", "no job with the name 'nosuch'"),
        ("999_3", "there is no job 999_3"),
        ("999_*", "there is no array 999"),
        ("@nosuch", "there is no group 'nosuch'"),
    ):
        for verb in "kill", "wait":
            done = shared.rota(verb, selector)
            assert (done.returncode, said in done.stderr) == (3, True), (verb, selector, done)
    for selector in "name=fine", "name=fin*", "state=held", "user=nobody-at-all":
        assert shared.rota("kill", selector).returncode == 0, selector
    assert "'x' is not an exit code" in shared.rota("jobs", "exit=x").stderr

    (shared.work / "job.py").write_text("#!/usr/bin/env python3\n#SBATCH -n 3\nimport sys; print(sys.argv[1:])\n")
    done = shared.rota("run", "--script", "job.py", "--", "x")
    assert (done.returncode, done.stdout) == (0, "['x']\n")
    assert "job.py has #SBATCH lines, which are ignored" in done.stderr

    done = shared.rota("run", "--script", "-", input="#ROTA -g piped\necho $ROTA_GROUP\necho two\n")
    assert (done.returncode, done.stdout) == (0, "piped\ntwo\n")


def test_a_script_is_what_it_was_when_it_was_added(shared: Deployment) -> None:
    script = shared.work / "edited.sh"
    script.write_text("#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\necho before\n")
    (first,) = shared.json("add", "--script", "edited.sh")["added"]
    script.write_text("#!/bin/sh\necho after\n")
    (shared.work / "go").touch()
    shared.ok("wait", str(first))
    assert shared.ok("logs", str(first)) == "before\n"
    # Added again it is another job, as after '--'; with --once it is known by its text.
    (other,) = shared.json("add", "--script", "edited.sh")["added"]
    shared.ok("wait", str(other))
    assert shared.json("add", "--once", "--script", "edited.sh")["existing"] == [other]


def test_a_script_among_the_inputs_is_refused_and_nothing_is_added(shared: Deployment) -> None:
    script = shared.work / "refused.sh"
    script.write_text("#!/bin/sh\necho 1\necho 2\n")
    done = shared.rota("add", "refused.sh")
    assert done.returncode == 2
    assert "give --script refused.sh to run it as one job, or --lines if each line is a job" in done.stderr
    assert shared.rota("run", "-", input="echo 1\n#PBS -l nodes=1\n").returncode == 2
    assert len(shared.json("add", "--lines", "refused.sh")["added"]) == 2
    for words in ("refused.sh refused.sh", "refused.sh --lines", "no.sh"):
        assert shared.rota("add", "--script", *words.split()).returncode == 2
