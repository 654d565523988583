"""Commands are run as asked, and how they ended is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from rota.core.attempts.leases import Finished
from rota.plan.size import Size
from tests.runner.manager import FakeManager


def test_a_command_that_succeeds_is_reported_with_its_measurements(joined: FakeManager) -> None:
    (done,) = joined.run("echo hello; echo oops >&2")
    outcome = done.outcome
    assert (outcome.exit_code, outcome.signal, outcome.reason) == (0, None, "")
    assert outcome.started_at is not None
    assert outcome.started_at <= outcome.ended_at
    assert outcome.cpu_s > 0
    assert joined.output(done) == (b"hello\n", b"oops\n")
    assert (outcome.out_total, outcome.err_total) == (6, 5)


def test_exit_codes_and_signals_speak_for_themselves(joined: FakeManager) -> None:
    three, killed = joined.run("exit 3", "kill -USR1 $$")
    assert (three.outcome.exit_code, three.outcome.signal, three.outcome.reason) == (3, None, "")
    assert (killed.outcome.exit_code, killed.outcome.signal) == (None, signal.SIGUSR1)


def test_quiet_jobs_have_no_output(joined: FakeManager) -> None:
    (done,) = joined.run("true")
    assert (done.outcome.segment, done.outcome.out_len, done.outcome.err_len) == ("", 0, 0)
    assert not (joined.home / "output").exists()


def test_outputs_of_many_jobs_do_not_mix(joined: FakeManager) -> None:
    results = joined.run(*[f"echo out{n}; echo err{n} >&2; exit {n % 3}" for n in range(60)], seats=5)
    for n, done in enumerate(results):
        assert joined.output(done) == (f"out{n}\n".encode(), f"err{n}\n".encode())
        assert done.outcome.exit_code == n % 3


def test_a_list_is_executed_without_a_shell(joined: FakeManager) -> None:
    (done,) = joined.run(["printf", "%s|", "a b", "$HOME", "*"])
    assert joined.output(done)[0] == b"a b|$HOME|*|"


def test_a_script_without_interpreter_line_runs_as_in_a_shell(joined: FakeManager) -> None:
    script = joined.home / "script"
    script.write_text('echo "script $1"\n')
    script.chmod(0o755)
    (done,) = joined.run([str(script), "x"])
    assert joined.output(done)[0] == b"script x\n"


def test_what_cannot_be_found_fails_for_good_and_says_so(joined: FakeManager) -> None:
    plain = joined.home / "plain"
    plain.write_text("echo no\n")
    results = joined.run("nosuchcmd", ["nosuchcmd"], ["/nosuch/cmd"], [str(plain)], str(plain), [], "a\0b")
    codes = [127, 127, 127, 126, 126, 127, 126]
    assert [done.outcome.exit_code for done in results] == codes
    assert all(done.outcome.permanent for done in results)
    assert all(done.outcome.reason == "not_found" for done in results)
    assert results[0].outcome.message == "nosuchcmd: not found"
    assert results[1].outcome.message == "nosuchcmd: not found"
    assert str(plain) in results[3].outcome.message


def test_a_bad_directory_fails_for_good_and_is_named(joined: FakeManager) -> None:
    missing, file = joined.run("true", cwd="/nosuch/dir"), joined.run("true", cwd="/etc/passwd")
    for (done,), path in ((missing, "/nosuch/dir"), (file, "/etc/passwd")):
        assert done.outcome.reason == "not_found"
        assert done.outcome.permanent
        assert path in done.outcome.message


def test_jobs_start_in_their_directory_with_nothing_on_stdin(joined: FakeManager) -> None:
    directory = joined.home / "some dir"
    directory.mkdir()
    (done,) = joined.run("pwd -P; cat; echo $?", cwd=str(directory))
    assert joined.output(done)[0].decode().split("\n")[:2] == [str(directory.resolve()), "0"]


def test_the_environment_is_the_stored_one_and_the_variables_of_rota(joined: FakeManager) -> None:
    done = _run_sized(joined)
    pairs = dict(entry.split("=", 1) for entry in joined.output(done)[0].decode().split("\0") if entry)
    assert pairs["GREETING"] == "hello world"
    assert pairs["EMPTY"] == ""
    assert pairs["ROTA_JOB_ID"] == str(done.job)
    assert pairs["ROTA_ATTEMPT"] == "1"
    assert pairs["ROTA_JOB_NAME"] == "na me"
    assert pairs["ROTA_GROUP"] == "grp"
    assert pairs["ROTA_CPUS"] == "2.5"
    assert pairs["ROTA_MEM_MB"] == "2048"
    assert pairs["ROTA_WALLTIME_S"] == "90"
    assert pairs["ROTA_SUBMIT_DIR"] == str(joined.home)
    assert pairs["ROTA_LEASE"].startswith(f"{done.token:x}@")
    assert pairs["OMP_NUM_THREADS"] == "2"
    assert "ROTA_TMPDIR" in pairs
    assert len(pairs) == joined.output(done)[0].count(b"\0"), "no variable is there twice"


def _run_sized(joined: FakeManager) -> Finished:
    size = Size(cpus=250, mem=2 << 30)
    spec = joined.spec(name="na me", group="grp", size=size, walltime_s=90.0)
    env = b"PATH=/usr/bin:/bin\0GREETING=hello world\0EMPTY=\0ROTA_JOB_ID=999"
    joined.work([joined.grant(7, ["env", "-0"], spec)], spec, seats=joined.seats(1, size), env=env)
    return joined.wait_for([7])[0]


def test_signals_and_descriptors_of_the_runner_do_not_leak(joined: FakeManager) -> None:
    (done,) = joined.run(["sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd"])
    lines = joined.output(done)[0].decode().split()
    assert lines[1] == "0" * 16, "no signal is blocked"
    # glibc leaves its two internal signals ignored in whatever it spawns.
    assert int(lines[3], 16) & ~0x180000000 == 0, "no signal is ignored"
    assert lines[4:] == ["0", "1", "2", "3"], "only the standard streams (3 is ls itself)"


def test_pipefail_makes_a_pipe_fail(joined: FakeManager) -> None:
    (plain,) = joined.run("false | true")
    (strict,) = joined.run("false | true", pipefail=True)
    assert (plain.outcome.exit_code, strict.outcome.exit_code) == (0, 1)


def test_large_output_keeps_its_head_and_its_tail(manager: FakeManager) -> None:
    manager.rules["keep_output"] = 1000
    manager.begin()
    (done,) = manager.run("seq 1 100000; echo small >&2")
    out, err = manager.output(done)
    whole = "".join(f"{n}\n" for n in range(1, 100001)).encode()
    assert done.outcome.out_total == len(whole)
    assert out == whole[:500] + whole[-500:]
    assert err == b"small\n"


def test_megabytes_of_output_are_kept_whole(joined: FakeManager) -> None:
    (done,) = joined.run("head -c 9000000 /dev/zero; head -c 3000000 /dev/zero >&2")
    out, err = joined.output(done)
    assert (len(out), len(err)) == (9000000, 3000000)


def test_scratch_is_private_empty_measured_and_removed(joined: FakeManager) -> None:
    command = "pwd; ls -A; echo $TMPDIR $ROTA_TMPDIR; stat -c %a .; head -c 3000000 /dev/zero > big; mkdir -m 0 no"
    done, failed = joined.run(command, "exit 1", scratch=True)
    where, tmp, mode = joined.output(done)[0].decode().splitlines()  # `ls` finds nothing
    assert Path(where) == joined.home / "scratch" / f"{done.job}.1"
    assert mode == "700"
    assert tmp == f"{where}.tmp {where}.tmp"
    assert done.outcome.peak_disk >= 3000000
    assert failed.outcome.exit_code == 1
    assert os.listdir(joined.home / "scratch") == []


def test_scratch_has_no_directory_that_the_job_did_not_make(joined: FakeManager) -> None:
    (done,) = joined.run("mkdir tmp && stat -c %a $TMPDIR && head -c 3M /dev/zero > $TMPDIR/big", scratch=True)
    assert done.outcome.exit_code == 0, joined.output(done)
    assert joined.output(done)[0] == b"700\n"
    assert done.outcome.peak_disk >= 3000000
    assert os.listdir(joined.home / "scratch") == []


def test_scratch_removal_does_not_follow_links(joined: FakeManager) -> None:
    precious = joined.home / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    joined.run(f"ln -s {precious} link; ln -s {precious} $TMPDIR/link", scratch=True)
    assert (precious / "file").read_text() == "keep"
    assert os.listdir(joined.home / "scratch") == []


def test_a_job_that_lasts_is_sampled(joined: FakeManager) -> None:
    program = "import time; data = bytearray(80_000_000); time.sleep(0.6)"
    (done,) = joined.run(["python3", "-c", program], env=b"PATH=" + os.environ["PATH"].encode())
    assert 80_000_000 <= done.outcome.peak_mem < 200_000_000


def test_the_memory_of_a_small_job_is_not_that_of_the_runner(joined: FakeManager) -> None:
    (done,) = joined.run("sleep 0.5")
    assert 0 < done.outcome.peak_mem < 8_000_000


def test_the_peak_memory_of_a_job_too_short_to_be_sampled_is_not_known_but_bounded(joined: FakeManager) -> None:
    """It is the runner's own until the command is executed, and the kernel remembers the larger."""
    quiet, failed, spoke = joined.run("true", "exit 1", "echo hello")
    for done in (quiet, failed, spoke):
        assert done.outcome.peak_mem == 0
        assert done.outcome.most_mem > 1_000_000


def test_the_peak_memory_of_a_short_job_that_took_more_than_the_runner_is_known(joined: FakeManager) -> None:
    command = ["python3", "-c", "x = bytearray(90_000_000)"]
    (done,) = joined.run(command, env=b"PATH=" + os.environ["PATH"].encode())
    assert 90_000_000 <= done.outcome.peak_mem < 200_000_000
    assert done.outcome.most_mem == 0
