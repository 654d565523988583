"""Variables that belong to one job alone."""

from __future__ import annotations

#: Never taken from the environment of the submitter, which may be a job itself. `ROTA_OUTCOME` and `ROTA_PROGRESS`
#: are not among them: stages of pipelines have them, and clients leave them out of what they capture.
OF_ONE_JOB = (
    b"ROTA_JOB_ID",
    b"ROTA_ATTEMPT",
    b"ROTA_LEASE",
    b"ROTA_TMPDIR",
    b"ROTA_SCRATCH",
    b"ROTA_SUBMIT_TMPDIR",
    b"ROTA_ARRAY_ID",
    b"ROTA_ARRAY_INDEX",
    b"ROTA_CPU_LIST",
    b"ROTA_NODE",
    b"ROTA_NODES",
    b"ROTA_NODEFILE",
    b"ROTA_GANG",
    b"ROTA_GANG_HOSTS",
    b"ROTA_RELAY",
    b"ROTA_EXIT_CODE",
    b"ROTA_SIGNAL",
)
