"""Logging to a file: one JSON object per line, readable by the owner only."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path


def log_to(path: Path, level: str) -> None:
    """Send all log records of this level and above to this file, and nowhere else."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    os.chmod(path, 0o600)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
