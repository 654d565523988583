"""`rota config show` beside a running manager: what it has, and what a restart would change."""

from __future__ import annotations

from pathlib import Path

from tests.deployment import deployment
from tests.system.test_users_apart import Colleague


def test_what_the_manager_has_is_told_beside_what_is_written(tmp_path: Path) -> None:
    with deployment(tmp_path, grace="1s") as rota:
        assert "manager: none is running" in rota.ok("config", "show")
        assert rota.json("config", "show")["running"] is False
        rota.start()
        found = rota.json("config", "show")
        assert found["running"] is True
        assert found["restart"] == []
        assert found["settings"]["grace"]["running"] == 1.0
        assert "running, with these settings" in rota.ok("config", "show")
        other = rota.env | {"ROTA_GRACE": "7s", "ROTA_LOST_AFTER": "5m"}
        found = rota.json("config", "show", env=other)
        assert sorted(found["restart"]) == ["grace", "lost_after"]
        grace = found["settings"]["grace"]
        assert (grace["value"], grace["origin"], grace["running"], grace["restart"]) == (
            7.0,
            "ROTA_GRACE",
            1.0,
            True,
        )
        assert found["settings"]["host"]["restart"] is False
        text = rota.ok("config", "show", env=other)
        assert "2 of its settings differ" in text
        assert "1s, until it is restarted" in text
        ann = Colleague(rota, "ann", user="nobody")
        assert "it shows its settings only to administrators" in ann.ok("config", "show")
