-- Sums for accounting and history, what hosts did when, and which job taught what.

-- What the attempts of an hour used and asked for, in microseconds (times cores). A step is so many hundredths
-- of cores more in every whole hour from this one on: see core/accounts/accounting.py.
CREATE TABLE accounts (
    hour       INTEGER NOT NULL,
    user       TEXT NOT NULL,
    project    TEXT NOT NULL,
    queue      TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    jobs       INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    used_us    INTEGER NOT NULL,
    used_step  INTEGER NOT NULL,
    asked_us   INTEGER NOT NULL,
    asked_step INTEGER NOT NULL,
    cpu_us     INTEGER NOT NULL,
    wait_us    INTEGER NOT NULL,
    PRIMARY KEY (hour, user, project, queue)
) WITHOUT ROWID;

CREATE TABLE minutes (
    minute    INTEGER PRIMARY KEY,
    started   INTEGER NOT NULL,
    complete  INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    wait_us   INTEGER NOT NULL,
    run_us    INTEGER NOT NULL
);

-- What a host does from then on (microseconds since 1970).
CREATE TABLE host_states (
    host  TEXT NOT NULL,
    at    INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (host, at)
) WITHOUT ROWID;

-- Null in rows of earlier schemas.
ALTER TABLE observations ADD COLUMN job INTEGER;

-- What accounts for a specification, read once each: many attempts share one.
CREATE TEMP TABLE terms (id INTEGER PRIMARY KEY, user, project, queue, cpus, walltime_s, time_s);
INSERT INTO terms
SELECT id, coalesce(spec ->> 'user', ''), coalesce(spec ->> 'project', ''), coalesce(spec ->> 'queue', 'default'),
       coalesce(spec -> 'size' ->> 0, 100), spec ->> 'walltime_s', coalesce(spec -> 'size' ->> 3, 3600.0)
FROM specs;

-- The attempts that ended before there were sums, each with what accounts for it.
CREATE TEMP TABLE ended AS
SELECT user, project, queue, state, start, over, cpu_us, waited, cpus,
       start + CAST(min(asked_s, 3155760000.0) * 1e6 AS INTEGER) AS asked_until
FROM (
    SELECT s.user, s.project, s.queue, a.outcome AS state,
           CAST(coalesce(a.started_at, 0) * 1e6 AS INTEGER) AS start,
           CAST(a.ended_at * 1e6 AS INTEGER) AS over,
           CAST(coalesce(a.cpu_s, 0) * 1e6 AS INTEGER) AS cpu_us,
           iif(a.number = j.attempt AND j.ready_at IS NOT NULL AND a.started_at > j.ready_at,
               CAST(a.started_at * 1e6 AS INTEGER) - CAST(j.ready_at * 1e6 AS INTEGER), 0) AS waited,
           CASE WHEN a.given IS NULL OR coalesce(json_array_length(a.given, '$[3]'), 0) = 0
                THEN coalesce(a.size ->> 0, s.cpus)
                WHEN json_array_length(a.given, '$[3]') = 1 THEN a.given -> 0 ->> 0
                ELSE (SELECT 100 * sum(value ->> 1) FROM json_each(a.given, '$[3]')) END AS cpus,
           coalesce(a.given ->> 4, s.walltime_s, a.size ->> 3, s.time_s) AS asked_s
    FROM attempts AS a CROSS JOIN jobs AS j ON j.id = a.job CROSS JOIN terms AS s ON s.id = coalesce(a.spec, j.spec)
    WHERE a.outcome IS NOT NULL AND a.outcome <> 'void' AND a.ended_at > 0);

-- As core.accounting.spread does it: used (kind 0) and asked (kind 1) in the first and the last hour, and steps.
CREATE TEMP TABLE span AS
SELECT user, project, queue, cpus, kind, start, over, start / 3600000000 AS first, over / 3600000000 AS last,
       cpus * (over - start) / 100 AS whole,
       cpus * ((start / 3600000000 + 1) * 3600000000 - start) / 100 AS head
FROM (SELECT user, project, queue, cpus, 0 AS kind, start, over FROM ended
      UNION ALL
      SELECT user, project, queue, cpus, 1, start, asked_until FROM ended)
WHERE start > 0 AND over > start AND cpus > 0;

INSERT INTO accounts
SELECT hour, user, project, queue, sum(attempts), sum(jobs), sum(failed), sum(used_us), sum(used_step), sum(asked_us),
       sum(asked_step), sum(cpu_us), sum(wait_us)
FROM (
    SELECT over / 3600000000 AS hour, user, project, queue, 1 AS attempts, 0 AS jobs, state = 'failed' AS failed,
           0 AS used_us, 0 AS used_step, 0 AS asked_us, 0 AS asked_step, cpu_us, iif(start > 0, waited, 0) AS wait_us
    FROM ended
    UNION ALL
    SELECT CAST(j.ended_at AS INTEGER) / 3600, s.user, s.project, s.queue, 0, 1, 0, 0, 0, 0, 0, 0, 0
    FROM jobs AS j CROSS JOIN terms AS s ON s.id = j.spec
    WHERE j.state >= 12 AND j.ended_at IS NOT NULL
    UNION ALL
    SELECT first, user, project, queue, 0, 0, 0,
           iif(kind = 0, iif(first = last, whole, head), 0), 0, iif(kind = 1, iif(first = last, whole, head), 0), 0, 0, 0
    FROM span
    UNION ALL
    SELECT last, user, project, queue, 0, 0, 0,
           iif(kind = 0, whole - head - (last - first - 1) * cpus * 36000000, 0),
           iif(kind = 0 AND last > first + 1, -cpus, 0),
           iif(kind = 1, whole - head - (last - first - 1) * cpus * 36000000, 0),
           iif(kind = 1 AND last > first + 1, -cpus, 0), 0, 0
    FROM span WHERE last > first
    UNION ALL
    SELECT first + 1, user, project, queue, 0, 0, 0, 0, iif(kind = 0, cpus, 0), 0, iif(kind = 1, cpus, 0), 0, 0
    FROM span WHERE last > first + 1)
GROUP BY hour, user, project, queue;

-- The last week of them, minute by minute.
INSERT INTO minutes
SELECT minute, sum(started), sum(complete), sum(failed), sum(cancelled), sum(wait_us), sum(run_us)
FROM (
    SELECT start / 60000000 AS minute, 1 AS started, 0 AS complete, 0 AS failed, 0 AS cancelled, waited AS wait_us,
           0 AS run_us
    FROM ended WHERE start > 0
    UNION ALL
    SELECT over / 60000000, 0, 0, 0, 0, 0, max(0, over - start) FROM ended WHERE start > 0
    UNION ALL
    SELECT CAST(ended_at AS INTEGER) / 60, 0, state = 12, state = 13, state = 14, 0, 0
    FROM jobs WHERE state >= 12 AND ended_at IS NOT NULL)
WHERE minute >= (SELECT max(over) FROM ended) / 60000000 - 10080
GROUP BY minute;

DROP TABLE span;
DROP TABLE ended;
DROP TABLE terms;
