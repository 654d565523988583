"""A whole placement: all parts of the port."""

from __future__ import annotations

from typing import Protocol

from rota.plan.placement.decisions import Decisions
from rota.plan.placement.explanation import Explanation
from rota.plan.placement.hosts import Hosts
from rota.plan.placement.queue import Queue


class Placement(Queue, Hosts, Decisions, Explanation, Protocol):
    """What the engine asks of a planner."""
