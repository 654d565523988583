"""`rota run` and the commands around it, as a user sees them, on a real deployment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

from tests.deployment import LEFT_ALONE, ROTA, Deployment, is_alive, wait_until


def test_a_file_of_commands_runs_and_its_output_is_passed_through(rota: Deployment) -> None:
    done = rota.rota("run", "-", input="echo one\necho two >&2\nprintf 'no newline'\n")
    assert done.returncode == 0
    assert sorted(done.stdout.replace("no newline", "no newline\n").split("\n")) == ["", "no newline", "one"]
    assert "two" in done.stderr


def test_what_lies_in_the_directory_of_a_user_is_no_part_of_the_program(rota: Deployment) -> None:
    for name in ("msgspec", "ssl", "rota"):
        (rota.work / f"{name}.py").write_text(f"open({str(rota.work / 'ran')!r}, 'w')\n")
    assert rota.ok("run", "--", "echo fine") == "fine\n"
    assert not (rota.work / "ran").exists()


def test_nothing_that_whoever_started_the_manager_has_open_reaches_jobs(rota: Deployment) -> None:
    secret = os.open(rota.work / "secret", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(secret, b"not for jobs")
    rota.ok("manager", "start", pass_fds=[secret])
    assert "secret" not in rota.ok("run", "--", "ls -l /proc/self/fd")
    os.close(secret)


def test_a_scratch_directory_that_is_thousands_deep_goes_and_its_seat_is_free_again(rota: Deployment) -> None:
    deep = "perl -e 'for (1..2000) { mkdir q(d) or die; chdir q(d) or die }'"
    assert rota.rota("run", "--scratch", "--", deep).returncode == 0
    assert rota.ok("run", "--cpus", str(os.cpu_count()), "--", "echo all of it is free") == "all of it is free\n"
    assert list((rota.home / "scratch").iterdir()) == []


def test_a_job_added_inside_a_scratch_job_gets_the_submit_directory_of_its_parent(rota: Deployment) -> None:
    said = 'pwd; echo "${TMPDIR-none} $ROTA_SUBMIT_DIR $PWD"'
    inner = f"mkdir deep && cd deep && {ROTA} add --quiet -- '{said}'"
    for tmpdir in ({}, {"TMPDIR": str(rota.home.parent)}):
        env = {key: value for key, value in rota.env.items() if key != "TMPDIR"} | tmpdir
        child = rota.ok("run", "--scratch", "--", inner, env=env).strip()
        assert rota.rota("wait", child).returncode == 0
        here = str(rota.work)
        assert rota.ok("logs", child).splitlines() == [here, f"{tmpdir.get('TMPDIR', 'none')} {here} {here}"]


def test_a_job_added_inside_a_scratch_job_may_still_name_that_directory(rota: Deployment) -> None:
    inner = f"{ROTA} run --cwd $PWD -- pwd; pwd"
    first, second = rota.ok("run", "--scratch", "--cpus", "0", "--", inner).split()
    assert first == second


def test_a_failing_command_gives_status_1_and_is_named_with_its_reason(rota: Deployment) -> None:
    done = rota.rota("run", "-", input="true\nexit 3\n")
    assert done.returncode == 1
    assert "job 2 failed (exit 3): exit 3" in done.stderr
    assert "rota logs 2" in done.stderr


def test_a_single_command_gives_its_own_exit_status(rota: Deployment) -> None:
    assert rota.rota("run", "--", "sh", "-c", "exit 7").returncode == 7
    assert rota.rota("run", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_running_the_same_file_again_resumes_it(rota: Deployment) -> None:
    (rota.work / "jobs.txt").write_text("echo a >> ran\ntest -e ready\necho c >> ran\n")
    assert rota.rota("run", "jobs.txt").returncode == 1
    (rota.work / "ready").touch()
    again = rota.rota("run", "jobs.txt")
    assert again.returncode == 0
    assert sorted((rota.work / "ran").read_text().split()) == ["a", "c"]
    assert rota.states("@jobs.txt") == {1: "complete", 2: "complete", 3: "complete"}
    assert rota.rota("run", "--rerun", "jobs.txt").returncode == 0
    assert sorted((rota.work / "ran").read_text().split()) == ["a", "a", "c", "c"]


def test_equal_lines_are_different_jobs_and_adding_them_again_is_the_same_five(rota: Deployment) -> None:
    first = rota.json("add", "-", input="true\n" * 5)
    assert len(first["added"]) == 5
    again = rota.json("add", "-", input="true\n" * 5)
    assert again == {"added": [], "existing": first["added"], "retried": [], **LEFT_ALONE}


def test_a_bad_line_adds_nothing_and_is_named(rota: Deployment) -> None:
    rota.start()
    done = rota.rota("add", "-", input='true\n{"cmd": "true", "cpus": -1}\n')
    assert done.returncode == 2
    assert "line 2" in done.stderr
    assert "cpus" in done.stderr
    assert done.stderr.count("\n") == 1
    assert rota.json("jobs")["total"] == 0


def test_what_never_fits_is_refused_with_its_reason(rota: Deployment) -> None:
    done = rota.rota("add", "--cpus", "9999", "--", "true")
    assert done.returncode == 2
    assert "never fits: asked 9999 cpus" in done.stderr
    kept = rota.json("add", "--cpus", "9999", "--allow-unsatisfiable", "--", "true")
    shown = rota.json("show", str(kept["added"][0]))
    assert shown["state"] == "ready"
    assert shown["reason"]["code"] == "unsatisfiable"


def test_dependents_wait_run_and_are_blocked(rota: Deployment) -> None:
    lines = [
        {"cmd": "sleep 0.3; echo parent >> order"},
        {"cmd": "echo child >> order", "after": ["line:1"]},
        {"cmd": "false"},
        {"cmd": "true", "after": ["line:3"]},
        {"cmd": "true", "after": ["line:4"]},
        {"cmd": "echo anyway >> order", "after": ["afterany:line:3", "line:2"]},
    ]
    done = rota.rota("run", "-", input="\n".join(json.dumps(line) for line in lines))
    assert done.returncode == 1
    assert (rota.work / "order").read_text().split() == ["parent", "child", "anyway"]
    states = rota.states()
    assert [states[job] for job in range(1, 7)] == [
        "complete", "complete", "failed", "blocked", "blocked", "complete",
    ]  # fmt: skip
    shown = rota.json("show", "4")
    assert shown["reason"]["code"] == "dependency_never"
    assert "job 3" in shown["reason"]["message"]


def test_a_cycle_is_refused_and_named(rota: Deployment) -> None:
    lines = [{"cmd": "true", "after": ["line:2"]}, {"cmd": "true", "after": ["line:1"]}]
    done = rota.rota("add", "-", input="\n".join(json.dumps(line) for line in lines))
    assert done.returncode == 2
    assert "cycle" in done.stderr
    assert rota.json("jobs")["total"] == 0


def test_retries_are_used_and_the_attempts_kept(rota: Deployment) -> None:
    rota.json(
        "add",
        "--retries",
        "2",
        "--backoff",
        "0s",
        "--sync",
        "--",
        "sh",
        "-c",
        "echo $ROTA_ATTEMPT; test $ROTA_ATTEMPT = 3",
    )
    shown = rota.json("show", "1")
    assert shown["state"] == "complete"
    assert [attempt["state"] for attempt in shown["attempts"]] == ["failed", "failed", "complete"]
    assert [rota.ok("logs", "1", "--attempt", str(number)).strip() for number in (1, 2, 3)] == ["1", "2", "3"]


def test_a_command_that_does_not_exist_fails_at_once_whatever_its_retries(rota: Deployment) -> None:
    done = rota.rota("add", "--retries", "3", "--sync", "-", input="nosuchcommand-at-all\n")
    assert done.returncode == 127
    shown = rota.json("show", "1")
    assert (shown["state"], shown["exit_code"], len(shown["attempts"])) == ("failed", 127, 1)
    assert shown["reason"]["code"] == "not_found"


def test_hold_release_kill_and_retry(rota: Deployment) -> None:
    rota.json("add", "--cpus", "2", "--", "sleep", "60")
    rota.json("add", "--", "true")
    rota.ok("hold", "2")
    assert rota.states()[2] == "held"
    pid = wait_until(lambda: rota.json("show", "1")["started_at"] and rota.runner_pids(), "it runs")
    assert pid
    rota.ok("kill", "1")
    wait_until(lambda: rota.states()[1] == "cancelled", "it is cancelled")
    assert rota.states()[2] == "held"
    rota.ok("release", "2")
    assert rota.rota("wait", "2").returncode == 0
    rota.ok("retry", "1")
    wait_until(lambda: rota.states()[1] == "running", "it runs again")
    rota.ok("kill", "all")
    assert rota.rota("wait", "1").returncode != 0


def test_a_killed_job_leaves_no_process_behind(rota: Deployment) -> None:
    daemon = "(setsid sh -c 'echo $$ > daemon; exec sleep 300') &"
    script = f"trap '' TERM; {daemon} echo $$ > main; while :; do sleep 1; done"
    rota.json("add", "--", "sh", "-c", script)
    wait_until(lambda: (rota.work / "daemon").exists() and (rota.work / "daemon").read_text(), "it runs")
    pids = [int((rota.work / name).read_text()) for name in ("main", "daemon")]
    rota.ok("kill", "1")
    wait_until(lambda: rota.states()[1] == "cancelled", "it is cancelled")
    assert not [pid for pid in pids if is_alive(pid)]


def test_walltime_ends_a_job_with_that_reason(rota: Deployment) -> None:
    rota.rota("add", "--walltime", "1s", "--retries", "3", "--backoff", "0s", "--sync", "--", "sleep", "100")
    shown = rota.json("show", "1")
    assert (shown["state"], shown["reason"]["code"]) == ("failed", "walltime")
    assert len(shown["attempts"]) == 1, "what did not do its work in its time is not given it three times more"


def test_measurements_are_kept(rota: Deployment) -> None:
    code = """
import time
touched = bytearray(150 << 20)
touched[::4096] = b"x" * len(touched[::4096])
while time.process_time() < 0.4:
    pass
"""
    rota.ok("run", "--", "python3", "-c", code)
    shown = rota.json("show", "1")
    assert shown["peak_mem_bytes"] > 150 << 20
    assert shown["cpu_s"] > 0.3
    assert shown["wall_s"] >= 0.3


def test_the_environment_tells_a_job_who_it_is(rota: Deployment) -> None:
    out = rota.ok("run", "--name", "my job", "-g", "grp", "--env", "MINE=1", "--", "sh", "-c", "env")
    seen = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    assert seen["ROTA_JOB_ID"] == "1"
    assert (seen["ROTA_JOB_NAME"], seen["ROTA_GROUP"], seen["ROTA_ATTEMPT"]) == ("my job", "grp", "1")
    assert (seen["ROTA_CPUS"], seen["OMP_NUM_THREADS"], seen["MINE"]) == ("1", "1", "1")
    assert seen["PWD"] == str(rota.work)
    elsewhere = rota.ok("run", "--cwd", "/", "--", "sh", "-c", "pwd; echo $ROTA_SUBMIT_DIR")
    assert elsewhere.split() == ["/", str(rota.work)]


def test_never_more_at_once_than_the_machine_has(rota: Deployment) -> None:
    rota.env["ROTA_CORES"] = "2"
    line = "echo + >> log; sleep 0.05; echo - >> log"
    lines = [
        json.dumps({"cmd": f"{line}; : {n}", "cpus": cpus}) for n, cpus in enumerate([0.5, 1, 2, 1.5, 0.25] * 8)
    ]
    assert rota.rota("run", "-", input="\n".join(lines)).returncode == 0
    level = highest = 0
    for mark in (rota.work / "log").read_text().split():
        level += 1 if mark == "+" else -1
        highest = max(highest, level)
    assert highest <= 8


def test_the_queue_is_still_there_after_stop_and_start_and_running_jobs_go_on(rota: Deployment) -> None:
    rota.env["ROTA_CORES"] = "1"
    rota.json("add", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done; echo done > result")
    rota.json("add", "--", "true")
    wait_until(lambda: rota.states()[1] == "running", "it runs")
    rota.ok("manager", "stop")
    assert rota.rota("status").returncode == 4
    (rota.work / "go").touch()
    wait_until(lambda: (rota.work / "result").exists(), "the job goes on without a manager")
    rota.start()
    assert rota.rota("wait", "all").returncode == 0
    shown = rota.json("show", "1")
    assert [attempt["state"] for attempt in shown["attempts"]] == ["complete"]


def test_a_job_that_runs_while_the_manager_is_killed_ends_once(rota: Deployment) -> None:
    rota.json("add", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done; echo x >> ran")
    wait_until(lambda: rota.states()[1] == "running", "it runs")
    os.kill(rota.manager_pid(), signal.SIGKILL)
    (rota.work / "go").touch()
    rota.start()
    assert rota.rota("wait", "1").returncode == 0
    assert (rota.work / "ran").read_text() == "x\n"
    assert len(rota.json("show", "1")["attempts"]) == 1


def test_a_job_with_no_retries_whose_runner_dies_fails_as_lost_and_is_not_run_again(rota: Deployment) -> None:
    rota.json("add", "--retries", "0", "--", "sh", "-c", "echo $$ >> ran; exec sleep 300")
    wait_until(lambda: (rota.work / "ran").exists() and (rota.work / "ran").read_text(), "it runs")
    for pid in rota.runner_pids():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: rota.states()[1] == "failed", "it has failed")
    assert rota.json("show", "1")["reason"]["code"] == "lost"
    pids = [int(word) for word in (rota.work / "ran").read_text().split()]
    assert len(pids) == 1
    assert not is_alive(pids[0])


def test_ctrl_c_in_a_script_cancels_the_jobs_of_this_run(rota: Deployment) -> None:
    process = rota.popen("run", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(b"sleep 100\nsleep 101\nsleep 102\n")
    process.stdin.close()
    wait_until(lambda: (rota.home / "manager.json").exists(), "there is a manager")
    wait_until(lambda: "running" in rota.json("status")["counts"], "jobs run")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    wait_until(lambda: set(rota.states().values()) == {"cancelled"}, "all are cancelled")


def test_a_manager_that_run_started_leaves_when_it_is_idle(rota: Deployment) -> None:
    rota.env["ROTA_IDLE_STOP"] = "1s"
    assert rota.rota("run", "--", "cp", str(rota.home / "manager.json"), "manager.json").returncode == 0
    pid = json.loads((rota.work / "manager.json").read_bytes())["pid"]
    wait_until(lambda: not is_alive(pid), "it has left")
    wait_until(lambda: not rota.runner_pids(), "its runner has left")
    assert rota.rota("kill", "1").returncode == 4, "only commands that ask wake it (tests/cli/test_idle_stop.py)"


def test_output_of_both_streams_is_kept_and_large_output_has_head_and_tail(rota: Deployment) -> None:
    rota.env["ROTA_KEEP_OUTPUT"] = "1M"
    rota.ok("add", "--sync", "--", "sh", "-c", "echo first; seq 1000000; echo last; echo oops >&2")
    done = rota.rota("logs", "1")
    assert done.returncode == 1, "not all of it is there"
    out = done.stdout
    assert out.startswith("first\n")
    assert out.endswith("last\n")
    (mark,) = [line for line in out.splitlines() if line.startswith("[rota: ")]
    assert "keep_output" in mark
    assert len(out) - len(mark) - 2 <= 1 << 20
    assert rota.ok("logs", "1", "--err") == "oops\n"


def test_output_is_seen_live(rota: Deployment) -> None:
    rota.json("add", "--", "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over")
    with rota.popen("logs", "-f", "1", stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        (rota.work / "go").touch()
        assert process.stdout.readline() == b"over\n"
        assert process.wait(timeout=60) == 0


def test_wait_times_out_with_status_6(rota: Deployment) -> None:
    rota.json("add", "--", "sleep", "50")
    begun = time.monotonic()
    assert rota.rota("wait", "--timeout", "1s", "1").returncode == 6
    assert time.monotonic() - begun < 40


def test_what_does_not_exist_gives_status_3(rota: Deployment) -> None:
    rota.start()
    for words in (["show", "99"], ["kill", "99"], ["logs", "99"], ["wait", "99"], ["jobs", "99"]):
        done = rota.rota(*words)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), f"{words}: {done.stderr}"


def test_the_json_of_a_job_has_every_field_of_the_contract(rota: Deployment) -> None:
    rota.ok("run", "--", "true")
    fields = (
        "id key cmd cwd name group user project queue priority state reason request size limits after dep_groups "
        "attempts attempt exit_code signal host pool resources submitted_at ready_at scheduled_at started_at "
        "ended_at expected_start wall_s cpu_s peak_mem_bytes peak_disk_bytes retries_left"
    ).split()
    page = rota.json("jobs")
    assert set(page) == {"jobs", "next", "total"}
    assert not set(fields) - set(page["jobs"][0])
    assert page["jobs"][0]["attempts"] == 1
    shown = rota.json("show", "1")
    assert isinstance(shown["attempts"], list)
    assert set(shown["size"]) == {"cpus", "mem_bytes", "disk_bytes", "time_s", "gpus"}
    assert rota.json("status").keys() >= {"counts", "groups"}


def test_lists_are_paged(rota: Deployment) -> None:
    rota.ok("add", "-", input="true\n" * 25)
    rota.rota("wait", "all")
    first = rota.json("jobs", "--limit", "10")
    second = rota.json("jobs", "--limit", "10", "--cursor", first["next"])
    third = rota.json("jobs", "--limit", "10", "--cursor", second["next"])
    ids = [job["id"] for page in (first, second, third) for job in page["jobs"]]
    assert ids == list(range(1, 26))
    assert (first["total"], third["next"]) == (25, None)


def test_last_means_all_of_the_newest_submission_also_what_it_retried(rota: Deployment) -> None:
    (rota.work / "jobs.txt").write_text("exit 1\ntrue\n")
    assert rota.rota("run", "jobs.txt").returncode == 1
    assert rota.json("add", "--retries", "0", "jobs.txt") == {
        "added": [],
        "existing": [2],
        "retried": [1],
        **LEFT_ALONE,
    }
    assert rota.rota("wait", "last").returncode == 1
    assert rota.states("last") == {1: "failed", 2: "complete"}
    assert rota.states("last,state=failed") == {1: "failed"}


def test_a_command_that_begins_with_a_control_character_stays_what_it_is(rota: Deployment) -> None:
    strange = '\x01["touch", "executed"]'
    rota.rota("run", "-", input=f"{strange}\n\x02true\n")
    shown = [rota.json("show", job)["cmd"] for job in ("1", "2")]
    assert shown == [strange, "\x02true"]
    os.kill(rota.manager_pid(), signal.SIGKILL)
    rota.start()
    assert [job["cmd"] for job in rota.json("jobs")["jobs"]] == shown
    assert not (rota.work / "executed").exists()


def test_output_that_is_not_kept_whole_is_passed_through_whole(rota: Deployment) -> None:
    rota.env["ROTA_KEEP_OUTPUT"] = "64K"
    for words in (["run", "--", "seq", "100000"], ["run", "-"]):
        done = rota.rota(*words, input="seq 100000\n" if words[-1] == "-" else None)
        assert done.returncode == 0
        assert done.stdout == "".join(f"{n}\n" for n in range(1, 100001))
    assert "keep_output" in rota.rota("logs", "last").stdout


def test_a_reader_that_goes_away_does_not_end_the_jobs(rota: Deployment) -> None:
    lines = "".join(f"echo {n}; sleep 0.05\n" for n in range(40))
    with rota.popen("run", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(lines.encode())
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert b"the jobs go on" in process.stderr.read()
        assert process.wait(timeout=60) == 141
    assert rota.rota("wait", "all").returncode == 0
    assert rota.json("status")["counts"] == {"complete": 40}


def test_a_follower_sees_every_attempt_from_its_beginning(rota: Deployment) -> None:
    script = "echo attempt $ROTA_ATTEMPT; sleep 0.4; test $ROTA_ATTEMPT = 2"
    done = rota.rota("run", "--retries", "1", "--backoff", "0s", "--", "sh", "-c", script)
    assert done.returncode == 0
    assert done.stdout.split("\n")[-2] == "attempt 2"


def test_a_page_of_long_commands_is_cut_and_goes_on(rota: Deployment) -> None:
    lines = [f": {n} {'x' * 120_000}" for n in range(60)]
    rota.ok("add", "-", input="\n".join(lines) + "\n")
    first = rota.json("jobs", "--limit", "60")
    assert 0 < len(first["jobs"]) < 60
    rest = rota.json("jobs", "--limit", "60", "--cursor", first["next"])
    assert [job["id"] for page in (first, rest) for job in page["jobs"]] == list(range(1, 61))
