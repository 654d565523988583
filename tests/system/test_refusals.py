"""Bad input, a bad environment and strangers: a one-line error that says what to do, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rota as rota_package
from rota.errors import Denied, NoManager, RotaError
from rota.wire import codec
from rota.wire import messages as m
from tests.deployment import Deployment, deployment, wait_until


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with a manager to which nobody ever adds anything, whatever they try."""
    with deployment(tmp_path_factory.mktemp("empty"), grace="1s") as made:
        made.start()
        yield made


def _one_line(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("rota: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--cpus", "many", "--", "true"], "cpus"),
        (["run", "--mem", "4", "--", "true"], "unit"),
        (["run", "--time", "60", "--", "true"], "unit"),
        (["run", "--priority", "256", "--", "true"], "priority"),
        (["run", "--after", "banana", "--", "true"], "after"),
        (["run", "--no-such-flag"], "no-such-flag"),
        (["frobnicate"], "frobnicate"),
        (["run", "no-such-file.txt"], "no-such-file.txt"),
        (["run", "."], "directory"),
        (["kill"], ""),
        (["jobs", "state=flying"], "flying"),
        (["jobs", "what,ever"], "what"),
    ],
)
def test_bad_words_on_the_command_line(empty: Deployment, words: list[str], said: str) -> None:
    _one_line(empty.rota(*words), 2, said)
    assert empty.json("jobs")["total"] == 0


@pytest.mark.parametrize(
    "text",
    ["", "\n\n# only a comment\n", "true\n\x00\n", '{"cmd": 3}\n', '{"cmd": "x", "cpu": 1}\n', "[1, 2]", "[{]\n"],
)
def test_bad_input_adds_nothing(empty: Deployment, text: str) -> None:
    _one_line(empty.rota("add", "-", input=text), 2)
    assert empty.json("jobs")["total"] == 0


def test_strange_but_valid_commands_are_kept_byte_for_byte(rota: Deployment) -> None:
    strange = "printf '%s' \"a'b\\\"c $HOME ünïcödé 漢字 \\t\" > out"
    assert rota.rota("run", "-", input=strange + "\n").returncode == 0
    assert rota.json("show", "1")["cmd"] == strange
    listed = rota.json("add", "--", "printf", "%s\n", "two words", "new\nline", "")
    assert rota.json("show", str(listed["added"][0]))["cmd"] == ["printf", "%s\n", "two words", "new\nline", ""]
    assert "\x1b" not in rota.ok("jobs")


def test_control_characters_of_a_command_never_reach_the_terminal(rota: Deployment) -> None:
    rota.ok("add", "--sync", "--", "echo", "\x1b[31mred\x07")
    for words in (["jobs"], ["show", "1"]):
        assert "\x1b" not in rota.ok(*words)
        assert "\x07" not in rota.ok(*words)


def test_a_home_without_permission_is_refused(tmp_path: Path) -> None:
    if os.getuid() == 0:
        # Root may write anywhere, but not below a file.
        (tmp_path / "file").touch()
        home = tmp_path / "file" / "home"
    else:
        (tmp_path / "closed").mkdir(mode=0o500)
        home = tmp_path / "closed" / "home"
    with deployment(tmp_path) as rota:
        rota.env["ROTA_HOME"] = str(home)
        _one_line(rota.rota("run", "--", "true"), 4, str(home))


def test_a_foreign_database_is_refused_and_left_alone(rota: Deployment) -> None:
    rota.home.mkdir(mode=0o700)
    database = rota.home / "rota.db"
    for content in (b"this is not a database" * 100, b"SQLite format 3\0" + bytes(4080)):
        database.write_bytes(content)
        done = rota.rota("run", "--", "true")
        assert done.returncode == 4
        assert done.stderr.count("\n") == 1
        assert database.read_bytes() == content


def test_a_second_manager_is_refused(rota: Deployment) -> None:
    rota.start()
    done = rota.rota("manager", "start", "--foreground", timeout=30)
    assert done.returncode != 0
    assert str(rota.manager_pid()) in done.stderr
    assert rota.json("status")["counts"] == {}


def test_a_port_in_use_is_named(rota: Deployment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        rota.env["ROTA_PORT"] = str(port)
        _one_line(rota.rota("manager", "start"), 4, str(port))


@pytest.fixture
def listening(rota: Deployment) -> Deployment:
    rota.start()
    wait_until(lambda: (rota.home / "tls" / "server.pem").exists(), "the manager has a certificate")
    return rota


def _address(rota: Deployment) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads((rota.home / "manager.json").read_bytes())["address"] or "")
    return ""


def _tls(rota: Deployment, token: str) -> rota_package.Client:
    return rota_package.connect(home=str(rota.home), address=_address(rota), token=token)


def test_the_token_of_an_administrator_opens_the_tls_port(listening: Deployment) -> None:
    token = (listening.home / "tokens" / "admin.token").read_text().strip()
    with _tls(listening, token) as client:
        assert client.status().counts == {}
        made = client.add_token("laptop", "user")
    with _tls(listening, made.token) as guest:
        assert guest.status().counts == {}
        with pytest.raises(Denied):
            guest.stop_manager()


def test_wrong_and_removed_tokens_are_refused(listening: Deployment) -> None:
    token = (listening.home / "tokens" / "admin.token").read_text().strip()
    runner = (listening.home / "tokens" / "runner.token").read_text().strip()
    for wrong in ("", "rota_admin_" + "x" * 43, token[:-1], runner, "\x00"):
        with pytest.raises(RotaError) as refused, _tls(listening, wrong) as client:
            client.status()
        assert refused.value.exit_status in (2, 5)
    with _tls(listening, token) as client:
        made = client.add_token("guest", "user")
        with _tls(listening, made.token) as guest:
            guest.status()
            client.remove_token("guest")
            with pytest.raises((Denied, NoManager)):
                guest.status()
        with pytest.raises(Denied), _tls(listening, made.token) as guest:
            guest.status()


def test_garbage_on_any_port_disturbs_nobody(listening: Deployment) -> None:
    host, port = _address(listening).rsplit(":", 1)
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4096, b"\0\0\0\0", b"\x7f\xff\xff\xff", os.urandom(999)):
        with socket.create_connection((host, int(port))) as plain:
            plain.sendall(garbage)
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(listening.home / "manager.sock"))
            local.sendall(garbage)
            local.settimeout(20)
            with contextlib.suppress(ConnectionError):
                answer = local.recv(4096) if len(garbage) > 4 else b""
                assert b"failure" in answer or not answer
        assert listening.json("status")["counts"] == {}


def test_a_client_may_not_speak_as_a_runner_nor_a_runner_as_a_client(listening: Deployment) -> None:
    for role, message in (("user", m.Report(1)), ("runner", m.Status(1, [])), ("runner", m.Control(1, "stop"))):
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(listening.home / "manager.sock"))
            local.settimeout(20)
            local.sendall(codec.frame(m.Hello(m.PROTOCOL, role)))
            local.sendall(codec.frame(message))
            reader: codec.Reader[object] = codec.Reader(m.ToClient)
            answers: list[object] = []
            while len(answers) < 2 and (data := local.recv(4096)):
                answers += reader.feed(data)
            assert isinstance(answers[1], m.Failure)
            assert answers[1].code == "denied"


def test_nobody_can_speak_for_a_runner_that_lives(listening: Deployment) -> None:
    listening.json("add", "--retries", "0", "--", "sh", "-c", "echo $$ >> ran; exec sleep 30")
    wait_until(lambda: listening.states()[1] == "running", "it runs")
    (runner,) = listening.json("manager", "status")["runners"]
    forged = m.Join(runner["id"], runner["host"], "boot", 1, 1, 2, 1 << 30, 1 << 30)
    other = m.Join("stranger", runner["host"], "boot", 1, 1, 2, 1 << 30, 1 << 30)
    for message in (m.Settle(runner["id"]), forged, other):
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(listening.home / "manager.sock"))
            local.settimeout(20)
            local.sendall(codec.frame(m.Hello(m.PROTOCOL, "runner")))
            local.sendall(codec.frame(message))
            local.recv(4096)
    assert listening.states()[1] == "running"
    assert len(listening.json("show", "1")["attempts"]) == 1
    assert listening.rota("run", "--", "true", timeout=60).returncode == 0


def test_a_full_disk_refuses_jobs_but_records_ends_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    with deployment(small_disk) as rota:
        rota.json("add", "--", "sh", "-c", f"while [ ! -e {rota.work}/go ]; do sleep 0.1; done")
        wait_until(lambda: rota.states().get(1) == "running", "it runs")
        pipeline = rota.work / "p.yaml"
        pipeline.write_text("stages: [{name: a, run: 'true'}]\nelements: {e: {}}\n")
        filler = small_disk / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        refused = rota.rota("add", "--", "true")
        _one_line(refused, 4, "full")
        _one_line(rota.rota("pipeline", "run", str(pipeline)), 4, "full")
        with contextlib.suppress(OSError):
            os.link(filler, rota.work / "go")  # a new name needs no room
        wait_until(lambda: rota.states()[1] == "complete", "its end is recorded on a full disk")
        filler.unlink()
        (rota.work / "go").unlink()
        wait_until(lambda: rota.rota("add", "--sync", "--", "true").returncode == 0, "there is room again")
