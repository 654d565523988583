"""All operations of the API, one module per subject."""

from __future__ import annotations

from typing import Final

from rota.api.operations import Operation
from rota.api.routes import accounts, jobs, manager, outputs, plan, queue, session, site, stream

_SUBJECTS: Final = (jobs, outputs, queue, plan, site, accounts, manager, session, stream)
OPERATIONS: Final[list[Operation]] = [each for subject in _SUBJECTS for each in subject.table.operations]
