"""All operations of the API, one module per subject."""

from __future__ import annotations

from typing import Final

from rota.api.operations import Operation
from rota.api.routes import (
    accounts,
    jobs,
    machines,
    manager,
    outputs,
    pipelines,
    plan,
    queue,
    session,
    site,
    stream,
)

_SUBJECTS: Final = (jobs, outputs, queue, plan, site, accounts, machines, pipelines, manager, session, stream)
OPERATIONS: Final[list[Operation]] = [each for subject in _SUBJECTS for each in subject.table.operations]
