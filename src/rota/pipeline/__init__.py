"""Pipelines as users write them: a YAML file, or stages as small classes in Python.

    from rota.pipeline import Pipeline, Stage

    class Build(Stage):
        run = "make -C {name}"
        needs = "dependencies"

    pipeline = Pipeline(Build)
    pipeline.add("lib")
    pipeline.add("app", depends=["lib"])

Both become the same definition (`core.pipelines`). What becomes of it in the manager is not decided here.
"""

from __future__ import annotations

from rota.pipeline.python import Pipeline, Stage
from rota.pipeline.yaml_file import load

__all__ = ["Pipeline", "Stage", "load"]
