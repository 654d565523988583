"""Codes of reasons are for programs; people are told a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rota
from rota.core.jobs.explain import Explanation
from rota.core.jobs.job import Reason
from rota.core.jobs.reason_texts import sentence
from rota.plan.reasons import Waits

_CLASSES = "|".join(each.__name__ for each in (Reason, Waits, Explanation))
_GIVEN = re.compile(rf'\b(?:{_CLASSES})\(\s*"([a-z_]+)"')


def given_codes() -> set[str]:
    """Every code that a reason is given somewhere."""
    sources = Path(rota.__file__).parent.rglob("*.py")
    return {code for path in sources for code in _GIVEN.findall(path.read_text())}


@pytest.mark.parametrize("code", sorted(given_codes()))
def test_every_code_has_a_sentence(code: str) -> None:
    said = sentence(code)
    assert " " in said
    assert "_" not in said


def test_what_somebody_said_goes_before_what_the_code_means() -> None:
    assert sentence("walltime", "it ran for 3 h") == "it ran for 3 h"
    assert sentence("walltime", "walltime") == sentence("walltime") == "its walltime was over"
    assert sentence("not_yet_known") == "not yet known"
