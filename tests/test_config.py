"""Settings: the nearest source wins, and mistakes are named with their place. Paths of a deployment."""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.config import all_settings, config_files, load
from rota.errors import BadInput, EnvironmentFault
from rota.home import Home, check_private
from rota.unix import short


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def places(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), **more}


def test_without_any_source_all_are_defaults(home: Home, tmp_path: Path) -> None:
    loaded = load(home, environ=places(tmp_path))
    assert loaded.settings.touch_s == 15
    assert loaded.settings.lost_after == 60
    assert loaded.settings.idle_stop == 60
    assert loaded.settings.keep_output == 16 << 20
    assert set(loaded.origin.values()) == {"default"}


def test_the_nearest_source_wins_and_is_remembered(home: Home, tmp_path: Path) -> None:
    user = tmp_path / "config" / "rota" / "rota.toml"
    user.parent.mkdir(parents=True)
    user.write_text('grace = "1s"\nport = 1001\nidle_stop = "1m"\n')
    home.config.write_text('grace = "2s"\nport = 1002\n')
    environ = places(tmp_path, ROTA_GRACE="3s")
    loaded = load(home, environ=environ)
    assert (loaded.settings.grace, loaded.settings.port, loaded.settings.idle_stop) == (3, 1002, 60)
    assert loaded.origin["grace"] == "ROTA_GRACE"
    assert loaded.origin["port"] == str(home.config)
    assert loaded.origin["idle_stop"] == str(user)
    flagged = load(home, environ=environ, flags={"grace": "4s", "port": None})
    assert flagged.settings.grace == 4
    assert flagged.origin["grace"] == "--grace"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('gracee = "1s"', "did you mean 'grace'?"),
        ("grace = 5", "'5' has no unit"),
        ("grace = true", "setting 'grace'"),
        ('port = "x"', "whole number"),
        ("port = 70000", "at most 65535"),
        ("cores = 0", "at least 1"),
        ('containment = "docker"', "use auto, cgroup, session"),
        ('host = ""', "must be a text"),
        ("local = false", "use on, off"),
        ("grace = [1]", "setting 'grace'"),
        ("[grace]\nx = 1", "setting 'grace'"),
        ("grace = ", "not valid TOML"),
        ('lost_after = "1s"', "longer than touch_s"),
        ('keep_output = "1"', "has no unit"),
    ],
)
def test_a_mistake_is_named_with_its_file(home: Home, tmp_path: Path, text: str, expected: str) -> None:
    home.config.write_text(text)
    with pytest.raises(BadInput) as refused:
        load(home, environ=places(tmp_path))
    assert str(home.config) in str(refused.value)
    assert expected in str(refused.value)


def test_a_mistaken_variable_is_named(home: Home, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ROTA_MEM: setting 'mem': '500' has no unit; write 500M"):
        load(home, environ=places(tmp_path, ROTA_MEM="500"))


def test_idle_stop_takes_bare_seconds_since_that_is_how_it_is_documented(home: Home, tmp_path: Path) -> None:
    home.config.write_text("idle_stop = 2")
    assert load(home, environ=places(tmp_path)).settings.idle_stop == 2
    assert load(home, environ=places(tmp_path, ROTA_IDLE_STOP="3")).settings.idle_stop == 3


@given(st.text(max_size=60) | st.from_regex(r'[a-z_]{1,12} = ("[^"\\]{0,10}"|-?[0-9]{1,30}|\[\]|\{\})'))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    home = Home(tmp_path_factory.getbasetemp() / "any")
    home.path.mkdir(exist_ok=True)
    home.config.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load(home, environ={"HOME": "/nonexistent"})
    except (BadInput, EnvironmentFault) as refused:
        error = refused
    else:
        return
    assert str(home.config) in str(error)


@pytest.mark.parametrize("name", list(all_settings()))
def test_every_setting_can_be_written_back_as_it_is_shown(home: Home, tmp_path: Path, name: str) -> None:
    setting = all_settings()[name]
    assert setting.doc
    if setting.default is not None:
        shown = setting.show(setting.default)
        loaded = load(home, environ=places(tmp_path, **{setting.variable: shown}))
        assert getattr(loaded.settings, name) == setting.default


def test_the_home_is_what_is_given_or_rota_home_or_the_state_directory() -> None:
    assert Home.find("/x", {"ROTA_HOME": "/y"}).path == Path("/x")
    assert Home.find(None, {"ROTA_HOME": "/y", "HOME": "/h"}).path == Path("/y")
    assert Home.find(None, {"XDG_STATE_HOME": "/s", "HOME": "/h"}).path == Path("/s/rota")
    assert Home.find(None, {"XDG_STATE_HOME": "relative", "HOME": "/h"}).path == Path("/h/.local/state/rota")
    assert config_files(Home("/x"), {"HOME": "/h"})[1] == Path("/h/.config/rota/rota.toml")


def test_a_home_is_made_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    home.create()
    home.create()
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.logs.stat().st_mode & 0o777 == 0o700


def test_a_home_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="others may write"):
        check_private(tmp_path)


def test_the_socket_lies_in_the_home_however_long_its_path_is(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * 120))
    home.create()
    assert home.socket == home.path / "manager.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        with short(str(home.socket)) as name:
            listener.bind(name)
        listener.listen()
        assert home.find_socket() == home.socket
        with short(str(home.socket)) as name:
            caller.connect(name)


def test_a_manager_that_listened_elsewhere_is_found_from_its_own_home_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, copy = Home(tmp_path / ("x" * 120)), Home(tmp_path / ("y" * 120))
    with tempfile.TemporaryDirectory(prefix="r-", dir="/tmp") as place:  # short enough for a socket
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        former = long.former_socket
        assert former is not None
        assert former.parent.parent == Path(place)
        assert former != copy.former_socket
        assert Home("/short").former_socket is None
        former.parent.mkdir(mode=0o700)
        former.touch()
        for home in (long, copy):
            home.create()
            home.manager_file.write_text(json.dumps({"socket": str(former)}))  # as the last release wrote it
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert long.find_socket() == former
        assert copy.find_socket() is None
        former.parent.chmod(0o777)
        with pytest.raises(EnvironmentFault, match="others may write"):
            long.find_socket()


def test_what_is_in_manager_json_is_believed_only_if_it_can_be_read(home: Home) -> None:
    assert home.read_manager_file() is None
    home.manager_file.write_bytes(b"\xff{")
    assert home.read_manager_file() is None
    home.manager_file.write_text('{"pid": 5, "socket": "/s", "new": 1}')
    found = home.read_manager_file()
    assert found is not None
    assert (found.pid, found.socket) == (5, "/s")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prologue", "scripts/before", "is not an absolute path"),
        ("containment_script", "hold", "is not an absolute path"),
        ("fence_cmd", "off 'b", "cannot be read as a command"),
        ("sleep_cmd", 'ipmi "', "cannot be read as a command"),
    ],
)
def test_scripts_and_commands_are_looked_at_before_somebody_needs_them(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    with pytest.raises(BadInput, match=f"setting '{name}'.*{said}"):
        load(Home(tmp_path), environ={f"ROTA_{name.upper()}": value})
