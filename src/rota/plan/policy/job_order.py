"""The order of jobs within a queue: by submission, by fair share, or multifactor."""

from __future__ import annotations

from rota.plan.ask import Ask
from rota.plan.policy.decay import Usage
from rota.plan.policy.fair_share import Targets, karma, multifactor
from rota.plan.policy.policy import FairShare, Queue


def order_key(
    queue: Queue,
    ask: Ask,
    *,
    submitted: float,
    now: float,
    usage: Usage,
    targets: Targets | None,
    fair_share: FairShare,
) -> float:
    """The sort key in the order of the queue; the lowest goes first, ties by submission.

    `targets`: the share targets of the queue; None if its order is fifo.
    """
    if targets is None:
        return 0.0
    if queue.order == "fairshare":
        return karma(ask, usage=usage, targets=targets, fair_share=fair_share)
    waited_s = now - submitted
    return -multifactor(ask, waited_s=waited_s, usage=usage, targets=targets, fair_share=fair_share)


def starves(queue: Queue, *, submitted: float, now: float) -> bool:
    """Has it waited longer than the queue's `max_wait_s`?"""
    return now - submitted > queue.max_wait_s


Rank = tuple[int, int, int, float, float]


def rank(
    queue: Queue,
    ask: Ask,
    *,
    submitted: float,
    now: float,
    usage: Usage,
    targets: Targets | None,
    fair_share: FairShare,
) -> Rank:
    """The rank: queue, starvation, priority, order of the queue, submission. The lowest goes first."""
    if starves(queue, submitted=submitted, now=now):
        return (-queue.priority, 0, 0, 0.0, submitted)
    key = order_key(
        queue,
        ask,
        submitted=submitted,
        now=now,
        usage=usage,
        targets=targets,
        fair_share=fair_share,
    )
    return (-queue.priority, 1, -ask.priority, key, submitted)
