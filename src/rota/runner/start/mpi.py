"""Environment variables that make MPI launchers use the hosts of a job and `rota-rsh` without options."""

from __future__ import annotations

import os
import sys

from rota.wire.orders import Allocation

#: Beside the interpreter, where it is installed with everything else.
_RSH = os.path.join(os.path.dirname(sys.executable), "rota-rsh")


def mpi(allocation: Allocation, nodefile: str) -> dict[bytes, bytes]:
    """Where the hosts are listed and what starts processes on them; nothing for a job on one host."""
    if len({host for host, _ in allocation.nodes}) < 2:
        return {}
    rsh, hosts = os.fsencode(_RSH), os.fsencode(nodefile)
    return {
        # Open MPI up to 4, and PRRTE since 5. A host that is listed once has one slot, not one per core.
        b"OMPI_MCA_plm_rsh_agent": rsh,
        b"OMPI_MCA_orte_default_hostfile": hosts,
        b"OMPI_MCA_orte_set_default_slots": b"1",
        b"PRTE_MCA_plm_ssh_agent": rsh,
        b"PRTE_MCA_prte_default_hostfile": hosts,
        b"PRTE_MCA_prte_set_default_slots": b"1",
        # MPICH and its derivatives.
        b"HYDRA_LAUNCHER_EXEC": rsh,
        b"HYDRA_HOST_FILE": hosts,
    }
