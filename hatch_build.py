"""Builds the dashboard into the wheel, where npm is there; `make web` also gets Node.js."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface[Any]):
    """A wheel without the dashboard says so when the page is asked for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        web, page = Path(self.root, "web"), Path(self.root, "src/rota/api/static/index.html")
        if version == "editable" or page.exists() or not web.is_dir():
            return
        if shutil.which("npm") is None:
            self.app.display_warning("npm was not found: the wheel has no dashboard")
            return
        subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=web, check=True)
        subprocess.run(["npm", "run", "build"], cwd=web, check=True)
