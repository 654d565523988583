"""Reads a pipeline from a YAML file."""

from __future__ import annotations

import os

from rota.core.pipelines.definition import Definition
from rota.documents import yaml_file
from rota.pipeline.reader import FORM, read_definition


def load(path: str | os.PathLike[str]) -> Definition:
    """The pipeline in this file. Raises `BadInput`; about what is wrong in it, with line and column."""
    return yaml_file.load(path, FORM, read_definition)


def from_bytes(data: bytes, *, source: str) -> Definition:
    """The pipeline that these bytes say. Raises `BadInput` as above."""
    return yaml_file.from_bytes(data, FORM, read_definition, source=source)
