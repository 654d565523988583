"""How much of the property tests is run: some in `make test`, twenty times as much in `make properties`.

Every property takes its dose from here. A failure prints the steps that lead to it and a blob that repeats it;
with `CI` set the examples are the same every time. Tests that draw without Hypothesis multiply by `FACTOR`
themselves, and carry its mark.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

#: How many times the usual dose.
FACTOR = int(os.environ.get("ROTA_TEST_DOSE", "1"))

#: Seconds for one property. A failure is worth the minutes that it takes to find its shortest example.
PATIENCE = 600 * FACTOR

# A busy machine is no failure: the time of one example is not judged.
settings.register_profile(
    "rota",
    max_examples=60 * FACTOR,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def half(number: int) -> int:
    """Half as many in `make test`, for what takes long and has long been sound; all of them in a larger dose."""
    return number // 2 if FACTOR == 1 else number


def dose(examples: int) -> settings:
    """So many examples, which suits properties that are slow or that need luck."""
    return settings(max_examples=examples * FACTOR)


def histories(examples: int, *, steps: int) -> settings:
    """So many runs of a state machine; those of a larger dose are longer as well."""
    return settings(
        max_examples=examples * FACTOR,
        stateful_step_count=steps if FACTOR == 1 else 2 * steps,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
