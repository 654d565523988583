"""Commands of the site that an agent runs for another host: their ticket and their variables."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rota.launcher.trees import remove_file
from rota.plan.size import Size
from rota.runner.start import errands
from rota.runner.start.environment import Catalogue
from rota.wire import messages as m

LEASE = (7, 1, 0xABC)


def grant(errand: m.Errand | None) -> m.Grant:
    return m.Grant(*LEASE, -3, "install", 0, errand=errand)


def work(errand: m.Errand | None) -> m.Work:
    spec = m.RunSpec(
        id=-3,
        env=-3,
        cwd="/",
        user="ann",
        name="",
        group="g",
        size=Size(),
        walltime_s=60.0,
        scratch=False,
        pipefail=False,
    )
    return m.Work([grant(errand)], [], [spec], [(-3, b"ROTA_HOST=h1")])


def variables(catalogue: Catalogue, errand: m.Errand | None) -> dict[str, str]:
    catalogue.learn(work(errand))
    found = catalogue.environment(grant(errand))
    assert found is not None
    found.fill(b"ROTA_JOB_ID=7", 1, b"")
    entries = (os.fsdecode(entry).partition("=") for entry in found.entries())
    return {name: value for name, _, value in entries if name}


def test_the_ticket_is_in_a_private_file_named_by_its_variable_and_in_no_variable(tmp_path: Path) -> None:
    found = variables(Catalogue(str(tmp_path)), m.Errand(b"secret"))
    assert found["ROTA_TICKET"] == errands.ticket_path(str(tmp_path), LEASE)
    assert "secret" not in str(found)
    errands.write_ticket(found["ROTA_TICKET"], b"secret")
    errands.write_ticket(found["ROTA_TICKET"], b"another")
    path = Path(found["ROTA_TICKET"])
    assert path.read_bytes() == b"another"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert remove_file(str(path)) == []
    assert remove_file(str(path)) == []
    assert not path.exists()


def test_a_link_in_the_place_of_the_ticket_is_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "ticket", tmp_path / "other"
    other.write_bytes(b"kept")
    path.symlink_to(other)
    errands.write_ticket(str(path), b"secret")
    assert other.read_bytes() == b"kept"
    assert path.read_bytes() == b"secret"


def test_it_has_the_variables_of_its_agent_and_those_that_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_AGENT", "yes")
    monkeypatch.setenv("ROTA_HOST", "wrong")
    found = variables(Catalogue(str(tmp_path)), m.Errand(b"secret"))
    assert (found["OF_THE_AGENT"], found["ROTA_HOST"]) == ("yes", "h1")
    plain = variables(Catalogue(str(tmp_path)), None)
    assert "OF_THE_AGENT" not in plain
    assert "ROTA_TICKET" not in plain
