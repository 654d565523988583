"""Converts the fields of a job into the specification that is sent to the manager."""

from __future__ import annotations

from rota.client.fields.fields import Wanted
from rota.client.job_keys import hash_in
from rota.wire.messages import NewSpec


def new_spec(wanted: Wanted, env: int) -> NewSpec:
    """The specification to send, once for all jobs with the same fields."""
    return NewSpec(
        cwd=wanted.cwd,
        group=wanted.group,
        name=wanted.name,
        project=wanted.project,
        queue=wanted.queue,
        priority=wanted.priority,
        size=wanted.size,
        walltime_s=wanted.walltime,
        retries=wanted.retries,
        backoff_s=wanted.backoff,
        no_retry_over_s=wanted.no_retry_over,
        scratch=wanted.scratch,
        pipefail=wanted.pipefail,
        env=env,
        limits=wanted.limits,
        dep_groups=wanted.dep_groups,
        live=wanted.live,
        allow_empty_group=wanted.allow_empty_group,
        learn=wanted.learn,
        override=wanted.override,
        given=wanted.given,
        on_success=wanted.on_success,
        on_failure=wanted.on_failure,
        on_exit=wanted.on_exit,
        stdout=wanted.stdout,
        stderr=wanted.stderr,
        request=wanted.request,
        where=wanted.where,
        types=wanted.type,
        at=wanted.at,
        checkpoint_s=wanted.checkpoint,
        signal=wanted.signal,
        retry_on=wanted.retry_on,
        interactive=wanted.interactive,
        job_key="" if wanted.job_key is None else hash_in(wanted.job_key),
    )
