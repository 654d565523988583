"""Batches as jobs of rq: JSON only, for unmodified workers (`rq worker --serializer json`).

rq does not say when the process of a job was killed, and lets a job go on that swallowed its timeout. So nothing
relies on callbacks: the manager asks for signs in each cycle, and a batch looks at its deadline between keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from math import ceil
from typing import Any, Final

from rota.populate.batch import Batch, order_of
from rota.populate.transport.base import (
    ENDED,
    LOST,
    QUEUED,
    RUNNING,
    UNKNOWN,
    QueueStatus,
    Sign,
    TransportFailed,
    WorkerStatus,
)

FUNCTION: Final = "rota_tables.batch.run"
#: The alarm of rq comes after the batch's own deadline, which is looked at between keys.
ALARM_AFTER_S: Final = 5
#: rq's workers touch what they run twice a minute.
SILENCE_S: Final = 120.0
#: How long the outcome of a batch is remembered, for the signs.
_KEPT_S: Final = 7 * 86400
_SIGNS: Final[dict[str, Sign]] = {
    "created": QUEUED,
    "queued": QUEUED,
    "deferred": QUEUED,
    "scheduled": QUEUED,
    "started": RUNNING,
}


class RqTransport:
    def __init__(self, url: str) -> None:
        """Raises `TransportFailed` if rq is not installed."""
        try:
            # Late, because only this transport needs them.
            redis: Any = import_module("redis")
            rq: Any = import_module("rq")
            serializers: Any = import_module("rq.serializers")
        except ImportError as error:
            hint = "install rota[populate] where the manager runs"
            raise TransportFailed(f"{error.name} is not installed", hint=hint) from None
        self._rq: Any = rq
        self._serializer: Any = serializers.JSONSerializer
        self._failures = (redis.RedisError, OSError)
        self._redis = redis.Redis.from_url(url, socket_connect_timeout=10, socket_timeout=30)

    def send(self, batches: Sequence[Batch]) -> None:
        with self._reached(), self._redis.pipeline() as pipeline:
            for batch in batches:
                table = batch.table
                queue = self._rq.Queue(batch.bin.queue, connection=self._redis, serializer=self._serializer)
                queue.enqueue_call(
                    FUNCTION,
                    args=(order_of(batch),),
                    timeout=ceil(table.job_timeout_s) + ALARM_AFTER_S,
                    ttl=ceil(table.ttl_s),
                    result_ttl=_KEPT_S,
                    failure_ttl=_KEPT_S,
                    job_id=batch.token,
                    description=f"{table.name}: {len(batch.keys)} keys",
                    meta={"table": table.name, "keys": len(batch.keys)},
                    pipeline=pipeline,
                )
            pipeline.execute()

    def signs(self, tokens: Collection[str]) -> dict[str, Sign]:
        if not tokens:
            return {}
        names = list(tokens)
        with self._reached():
            jobs = self._rq.job.Job.fetch_many(names, connection=self._redis, serializer=self._serializer)
        return {name: self._sign(job) for name, job in zip(names, jobs, strict=True)}

    def _sign(self, job: Any) -> Sign:
        if job is None:
            return UNKNOWN
        status = job.get_status(refresh=False)
        if status is None:
            return UNKNOWN
        sign = _SIGNS.get(str(status.value), ENDED)
        touched = job.last_heartbeat or job.started_at
        if sign == RUNNING and touched is not None:
            touched = touched if touched.tzinfo else touched.replace(tzinfo=UTC)
            if (datetime.now(UTC) - touched).total_seconds() > SILENCE_S:
                return LOST
        return sign

    def queues(self, names: Collection[str]) -> Mapping[str, QueueStatus]:
        found = {name: QueueStatus() for name in names}
        with self._reached():
            for worker in self._rq.Worker.all(connection=self._redis, serializer=self._serializer):
                for name in worker.queue_names():
                    found.setdefault(name, QueueStatus()).workers += 1
            for name, status in found.items():
                queue = self._rq.Queue(name, connection=self._redis, serializer=self._serializer)
                jobs = self._rq.job.Job.fetch_many(
                    queue.get_job_ids(), connection=self._redis, serializer=self._serializer
                )
                meta = [job.meta for job in jobs if job is not None]
                status.batches = len(meta)
                status.keys = sum(int(each.get("keys", 0)) for each in meta)
        return found

    def workers(self, now_s: float) -> list[WorkerStatus]:
        with self._reached():
            return [
                self._worker(each, now_s)
                for each in self._rq.Worker.all(connection=self._redis, serializer=self._serializer)
            ]

    def _worker(self, worker: Any, now_s: float) -> WorkerStatus:
        job = worker.get_current_job()
        queues = tuple(worker.queue_names())
        if job is None:
            return WorkerStatus(name=worker.name, queues=queues)
        started = job.started_at
        if started is not None and started.tzinfo is None:
            started = started.replace(tzinfo=UTC)
        for_s = max(now_s - started.timestamp(), 0.0) if started is not None else None
        table = str(job.meta["table"]) if "table" in job.meta else None
        return WorkerStatus(name=worker.name, queues=queues, state="busy", table=table, for_s=for_s)

    def warnings(self) -> list[str]:
        from rota.populate.source.desk import INSIDE

        return [
            f"workers need rota_tables: copy it from {INSIDE}, or start them with PYTHONPATH={INSIDE}",
            "workers are started with: rq worker --serializer json QUEUE…",
            "limits of memory, learning and suspension do not apply to workers of rq",
        ]

    def close(self) -> None:
        self._redis.close()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise TransportFailed(
                f"Redis: {error}", hint="see that it runs and that redis: {url} is right"
            ) from None
