"""Run by the tests of backups: backs a home up and says how it went.

backer.py HOME TARGET
"""

from __future__ import annotations

import sys
from pathlib import Path

from rota.errors import RotaError
from rota.store.home.backup import back_up


def main() -> None:
    try:
        made = back_up(Path(sys.argv[1]), sys.argv[2], force=False)
    except RotaError as error:
        print(error.code, flush=True)
        sys.exit(9)
    print(made.jobs, flush=True)


if __name__ == "__main__":
    main()
