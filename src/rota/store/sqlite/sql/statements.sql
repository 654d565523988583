-- All statements, each with a name and a description. A statement that writes a batch takes a list of rows (or of ids, or
-- of names) as JSON; `MATERIALIZED` makes SQLite render each row once and not once for each of its columns.

-- name: undo_jobs
-- Jobs of uploads that were refused: their ids are given out again.
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: pass_inputs
-- Adds that name an input: those before them do so no more. Only the last one counts.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE submissions SET input = NULL FROM r
WHERE submissions.user = v ->> 1 AND submissions.input = v ->> 5 AND submissions.id <> v ->> 0;

-- name: upsert_submissions
-- Adds that were accepted, or uploads that began (answer null). A sealed one stays sealed.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO submissions (id, user, at, count, answer, input)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5
FROM r WHERE true
ON CONFLICT (id) DO UPDATE SET user = excluded.user, at = excluded.at, count = excluded.count,
    answer = coalesce(excluded.answer, answer), input = coalesce(excluded.input, input);

-- name: insert_envs
-- Environments, each stored once.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO envs (id, digest, data)
SELECT v ->> 0, v ->> 1, v ->> 2
FROM r;

-- name: insert_specs
-- What many jobs have in common, as JSON.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO specs (id, spec)
SELECT v ->> 0, v ->> 1
FROM r;

-- name: insert_groups
-- (group, user) pairs that jobs of this batch are in; those known already stay.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT OR IGNORE INTO groups (grp, user)
SELECT v ->> 0, v ->> 1
FROM r;

-- name: widen_submissions
-- (id, lowest, highest job): the span of ids in which a submission's jobs lie.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE submissions SET
    low = min(coalesce(low, v ->> 1), v ->> 1),
    high = max(coalesce(high, 0), v ->> 2)
FROM r
WHERE submissions.id = v ->> 0;

-- name: insert_jobs
-- New jobs. What many of them have in common comes once, in the second list: (submission, spec, group,
-- user, state, submitted_at, ready_at, reason code, reason message, after); the first list is (id, key,
-- cmd, position in the second). Where a shared row ends in a 1, its jobs are (…, input_bytes, array, index):
-- nearly all have none of these, and three more cells to look for would cost all of them a tenth. Where it ends in a 2,
-- they go on with pipeline_element.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?1)),
shared AS MATERIALIZED (
    SELECT key AS position,
           (SELECT n FROM submissions WHERE submissions.id = value ->> 0) AS in_submission,
           value ->> 1 AS spec,
           (SELECT n FROM groups WHERE grp = value ->> 2 AND user = value ->> 3) AS in_group,
           value ->> 4 AS state, value ->> 5 AS submitted_at, value ->> 6 AS ready_at,
           value ->> 7 AS reason_code, value ->> 8 AS reason_message, value ->> 9 AS after,
           value ->> 10 AS more
    FROM json_each(?2))
INSERT INTO jobs (id, key, cmd, in_submission, spec, in_group, state, submitted_at, ready_at,
                  reason_code, reason_message, after, input_bytes, array_id, array_index, pipeline_element)
SELECT v ->> 0, v ->> 1, v ->> 2, in_submission, spec, in_group, state, submitted_at, ready_at,
       reason_code, reason_message, after,
       iif(more, v ->> 4, NULL), iif(more, v ->> 5, NULL), iif(more, v ->> 6, NULL), iif(more > 1, v ->> 7, NULL)
FROM r CROSS JOIN shared ON position = v ->> 3;

-- name: respecify_jobs
-- Jobs that were modified: another specification, perhaps another group.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE jobs SET
    spec = v ->> 1, in_group = (SELECT n FROM groups WHERE grp = v ->> 2 AND user = v ->> 3), input_bytes = v ->> 4
FROM r
WHERE jobs.id = v ->> 0;

-- name: rekey_jobs
-- (id, key, cmd, former key): jobs with another command or directory. `keys.py` finds them by their new keys.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE jobs SET key = v ->> 1, cmd = v ->> 2 FROM r WHERE jobs.id = v ->> 0;

-- name: reattach_jobs
-- (id, after): jobs that wait for something else from now on.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE jobs SET after = v ->> 1 FROM r WHERE jobs.id = v ->> 0;

-- name: replace_jobs
-- (id, the job that took its place or 0).
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE jobs SET replaced_by = v ->> 1 FROM r WHERE jobs.id = v ->> 0;

-- name: insert_edges
-- (parent, dependent): edges that a group can re-open.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT OR IGNORE INTO edges (parent, child)
SELECT v ->> 0, v ->> 1
FROM r;

-- name: insert_children
-- (parent, dependent): all of them.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT OR IGNORE INTO children (parent, child)
SELECT v ->> 0, v ->> 1
FROM r;

-- name: add_dep_groups
-- How many complete members more a dependency group has; it is known from then on.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO dep_groups (name, complete)
SELECT v ->> 0, v ->> 1
FROM r WHERE true
ON CONFLICT (name) DO UPDATE SET complete = complete + excluded.complete;

-- name: upsert_limits
-- Limits that were declared, or declared anew.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO limits (name, declaration)
SELECT v ->> 0, v ->> 1
FROM r WHERE true
ON CONFLICT (name) DO UPDATE SET declaration = excluded.declaration;

-- name: remove_limits
-- Limits that were withdrawn.
DELETE FROM limits WHERE name IN (SELECT value FROM json_each(?));

-- name: upsert_intents
-- Runners that delegated pools were asked for: new, or changed.
INSERT INTO intents (name, pool, need, seconds, ticket, key, engine_id, state, withdrawn, runner, asked_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
       value ->> 8, value ->> 9, value ->> 10
FROM json_each(?) WHERE true
ON CONFLICT (name) DO UPDATE
SET key = excluded.key, engine_id = excluded.engine_id, state = excluded.state, withdrawn = excluded.withdrawn,
    runner = excluded.runner;

-- name: remove_intents
-- Runners of delegated pools of which nothing is left.
DELETE FROM intents WHERE name IN (SELECT value FROM json_each(?));

-- name: upsert_site
-- Records of the site that are new, or have another value.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO site_records (kind, name, value)
SELECT v ->> 0, v ->> 1, v ->> 2
FROM r WHERE true
ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value;

-- name: remove_site
-- Records of the site that are gone.
DELETE FROM site_records WHERE (kind, name) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?));

-- name: forget_observations
-- Learning groups that begin anew. Runs before the observations of the same batch are written.
DELETE FROM observations WHERE grp IN (SELECT value FROM json_each(?));

-- name: insert_observations
-- What attempts taught.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO observations (grp, place, at, mem, disk, time_s, outcome, input_bytes, given_mem, given_disk,
                          given_time_s, job, asked_mem, asked_disk, asked_time_s)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6, v ->> 7, v ->> 8, v ->> 9, v ->> 10, v ->> 11,
       v ->> 12, v ->> 13, v ->> 14
FROM r;

-- name: cut_observations
-- Of these learning groups all but the newest observations, whose number comes second.
DELETE FROM observations WHERE n IN (
    SELECT o.n FROM json_each(?1) AS g CROSS JOIN observations AS o
    WHERE o.grp = g.value AND o.n <= (
        SELECT n FROM observations WHERE grp = g.value ORDER BY n DESC LIMIT 1 OFFSET ?2));

-- name: upsert_runners
-- Runners as they join.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO runners (id, host, boot_id, pid, start_time, joined_at)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5
FROM r WHERE true
ON CONFLICT (id) DO UPDATE SET host = excluded.host, boot_id = excluded.boot_id, pid = excluded.pid,
    start_time = excluded.start_time, joined_at = excluded.joined_at;

-- name: insert_attempts
-- Leases, written before they are sent.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO attempts (job, number, token, runner, host, leased_at, spec, size, given)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6, v ->> 7, v ->> 8
FROM r;

-- name: start_attempts
-- scheduled → running: the runner says when, as which process and in which seat.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE attempts SET started_at = v ->> 2, pid = v ->> 3, seat = v ->> 4
FROM r
WHERE job = v ->> 0 AND number = v ->> 1;

-- name: move_jobs
-- The clock was wrong: the times of jobs that have not ended, by so many seconds.
UPDATE jobs SET submitted_at = submitted_at + ?1, ready_at = ready_at + ?1, due_at = due_at + ?1 WHERE state < 12;

-- name: move_attempts
-- The same of attempts without an outcome.
UPDATE attempts SET leased_at = leased_at + ?1, started_at = started_at + ?1 WHERE outcome IS NULL;

-- name: end_attempts
-- running → complete, failed, cancelled or lost, with what was measured. A start that was recorded
-- earlier is kept if the end does not know it.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE attempts SET
    outcome = v ->> 2, exit_code = v ->> 3, signal = v ->> 4, reason_code = v ->> 5, reason_message = v ->> 6,
    started_at = coalesce(v ->> 7, started_at), ended_at = v ->> 8,
    cpu_s = v ->> 9, peak_mem = v ->> 10, peak_disk = v ->> 11,
    segment = v ->> 12, offset = v ->> 13, out_len = v ->> 14, err_len = v ->> 15,
    out_total = v ->> 16, err_total = v ->> 17, behaviours = v ->> 18,
    kept = v ->> 19
FROM r
WHERE job = v ->> 0 AND number = v ->> 1;

-- name: keep_returned
-- What calls of functions left at the end of their attempts.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT OR REPLACE INTO returned (job, number, returned) SELECT v ->> 0, v ->> 1, v ->> 2 FROM r;

-- name: returned_by
-- What each of these jobs left last: job, attempt, as JSON.
SELECT job, max(number), returned FROM returned WHERE job IN (SELECT value FROM json_each(?)) GROUP BY job;

-- name: regive_attempts
-- What attempts have been given by now.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE attempts SET given = v ->> 2
FROM r
WHERE job = v ->> 0 AND number = v ->> 1;

-- name: insert_pruned
-- Segments that are removed because of their age or for space.
INSERT OR IGNORE INTO pruned SELECT value FROM json_each(?);

-- name: void_attempts
-- Leases that were never executed.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE attempts SET outcome = 'void'
FROM r
WHERE job = v ->> 0 AND number = v ->> 1;

-- name: update_jobs
-- The last word of the batch about each job.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
UPDATE jobs SET
    state = v ->> 1, attempt = v ->> 2, tries = v ->> 3, due_at = v ->> 4, ready_at = v ->> 5, ended_at = v ->> 6,
    reason_code = v ->> 7, reason_message = v ->> 8, floor = v ->> 9
FROM r
WHERE jobs.id = v ->> 0;

-- name: insert_events
-- The story of jobs, for what is not routine.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO events (at, job, attempt, kind, text)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4
FROM r;

-- name: add_tally
-- How many finished jobs more, by group and state.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO tally (grp, state, jobs)
SELECT v ->> 0, v ->> 1, v ->> 2
FROM r WHERE true
ON CONFLICT (grp, state) DO UPDATE SET jobs = jobs + excluded.jobs;

-- name: add_accounts
-- What attempts that ended add to the sums of their hours.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO accounts (hour, user, project, queue, attempts, jobs, failed, used_us, used_step, given_us, given_step,
                      cpu_us, wait_us, asked_us, asked_step, unasked)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6, v ->> 7, v ->> 8, v ->> 9, v ->> 10, v ->> 11,
       v ->> 12, v ->> 13, v ->> 14, v ->> 15
FROM r WHERE true
ON CONFLICT (hour, user, project, queue) DO UPDATE SET
    attempts = attempts + excluded.attempts, jobs = jobs + excluded.jobs, failed = failed + excluded.failed,
    used_us = used_us + excluded.used_us, used_step = used_step + excluded.used_step,
    given_us = given_us + excluded.given_us, given_step = given_step + excluded.given_step,
    cpu_us = cpu_us + excluded.cpu_us, wait_us = wait_us + excluded.wait_us,
    asked_us = asked_us + excluded.asked_us, asked_step = asked_step + excluded.asked_step,
    unasked = unasked + excluded.unasked;

-- name: add_account
-- The same for one hour.
INSERT INTO accounts (hour, user, project, queue, attempts, jobs, failed, used_us, used_step, given_us, given_step,
                      cpu_us, wait_us, asked_us, asked_step, unasked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hour, user, project, queue) DO UPDATE SET
    attempts = attempts + excluded.attempts, jobs = jobs + excluded.jobs, failed = failed + excluded.failed,
    used_us = used_us + excluded.used_us, used_step = used_step + excluded.used_step,
    given_us = given_us + excluded.given_us, given_step = given_step + excluded.given_step,
    cpu_us = cpu_us + excluded.cpu_us, wait_us = wait_us + excluded.wait_us,
    asked_us = asked_us + excluded.asked_us, asked_step = asked_step + excluded.asked_step,
    unasked = unasked + excluded.unasked;

-- name: add_minutes
-- What happened in a minute.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO minutes (minute, started, complete, failed, cancelled, wait_us, run_us)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, v ->> 5, v ->> 6
FROM r WHERE true
ON CONFLICT (minute) DO UPDATE SET
    started = started + excluded.started, complete = complete + excluded.complete, failed = failed + excluded.failed,
    cancelled = cancelled + excluded.cancelled, wait_us = wait_us + excluded.wait_us, run_us = run_us + excluded.run_us;

-- name: add_minute
-- The same for one minute.
INSERT INTO minutes (minute, started, complete, failed, cancelled, wait_us, run_us) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (minute) DO UPDATE SET
    started = started + excluded.started, complete = complete + excluded.complete, failed = failed + excluded.failed,
    cancelled = cancelled + excluded.cancelled, wait_us = wait_us + excluded.wait_us, run_us = run_us + excluded.run_us;

-- name: cut_minutes
-- Minutes that are too long ago.
DELETE FROM minutes WHERE minute < ?;

-- name: insert_machine_rows
-- What machines are from some moment on.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT OR REPLACE INTO machine_history (host, at, condition, usage, state)
SELECT v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4 FROM r;

-- name: upsert_meta
-- Small facts about the deployment.
WITH r(v) AS MATERIALIZED (SELECT value FROM json_each(?))
INSERT INTO meta (key, value)
SELECT v ->> 0, v ->> 1
FROM r WHERE true
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: remove_meta
-- Facts that are not known any more.
DELETE FROM meta WHERE key IN (SELECT value FROM json_each(?));

-- name: keep_highest_job
-- Before jobs are removed: their ids are never given out again.
INSERT INTO used (kind, id) SELECT 'job', max(id) FROM jobs HAVING max(id) IS NOT NULL
ON CONFLICT (kind) DO UPDATE SET id = max(id, excluded.id);

-- name: remove_children
-- Child edges of these jobs. Runs before their rows change or go, because those name the parents.
DELETE FROM children WHERE (parent, child) IN (
    SELECT p.value ->> 0, j.id
    FROM json_each(?) AS r CROSS JOIN jobs AS j ON j.id = r.value CROSS JOIN json_each(j.after) AS p);

-- name: remove_jobs
-- Jobs that are forgotten.
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: remove_attempts
-- Attempts of jobs that are forgotten.
DELETE FROM attempts WHERE job IN (SELECT value FROM json_each(?));

-- name: remove_returned
-- What calls of functions left whose jobs are forgotten.
DELETE FROM returned WHERE job IN (SELECT value FROM json_each(?));

-- name: remove_events
-- The story of jobs that are forgotten.
DELETE FROM events WHERE job IN (SELECT value FROM json_each(?));

-- name: remove_edges
-- What jobs that are forgotten waited for.
DELETE FROM edges WHERE child IN (SELECT value FROM json_each(?));

-- name: remove_submissions
-- Uploads that will never be finished, unless they were begun again in the same batch.
DELETE FROM submissions
WHERE id IN (SELECT value FROM json_each(?)) AND answer IS NULL AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.id BETWEEN submissions.low AND submissions.high
    AND jobs.in_submission = submissions.n);

-- name: remove_open_attempts
-- When a manager starts: attempts of jobs of uploads that were never finished.
DELETE FROM attempts WHERE job IN (
    SELECT jobs.id FROM submissions AS s CROSS JOIN jobs
    WHERE s.answer IS NULL AND jobs.id BETWEEN s.low AND s.high AND jobs.in_submission = s.n);

-- name: remove_open_events
-- When a manager starts: the story of jobs of uploads that were never finished.
DELETE FROM events WHERE job IN (
    SELECT jobs.id FROM submissions AS s CROSS JOIN jobs
    WHERE s.answer IS NULL AND jobs.id BETWEEN s.low AND s.high AND jobs.in_submission = s.n);

-- name: remove_open_edges
-- When a manager starts: what jobs of uploads that were never finished waited for.
DELETE FROM edges WHERE child IN (
    SELECT jobs.id FROM submissions AS s CROSS JOIN jobs
    WHERE s.answer IS NULL AND jobs.id BETWEEN s.low AND s.high AND jobs.in_submission = s.n);

-- name: remove_open_children
-- When a manager starts: that jobs of uploads that were never finished waited for others.
DELETE FROM children WHERE (parent, child) IN (
    SELECT p.value ->> 0, jobs.id FROM submissions AS s CROSS JOIN jobs CROSS JOIN json_each(jobs.after) AS p
    WHERE s.answer IS NULL AND jobs.id BETWEEN s.low AND s.high AND jobs.in_submission = s.n);

-- name: remove_open_jobs
-- When a manager starts: jobs of uploads that were never finished.
DELETE FROM jobs WHERE id IN (
    SELECT jobs.id FROM submissions AS s CROSS JOIN jobs
    WHERE s.answer IS NULL AND jobs.id BETWEEN s.low AND s.high AND jobs.in_submission = s.n);

-- name: remove_open_submissions
-- When a manager starts: the uploads themselves.
DELETE FROM submissions WHERE answer IS NULL;

-- name: open_submissions
-- Uploads in progress: their jobs must not be seen.
SELECT n FROM submissions WHERE answer IS NULL;

-- name: all_specs
-- For the snapshot.
SELECT id, spec FROM specs;

-- name: all_envs
-- For the snapshot.
SELECT digest, id FROM envs;

-- name: all_groups
-- For the snapshot: what the numbers in jobs.in_group mean.
SELECT n, grp, user FROM groups;

-- name: live_submissions
-- For the snapshot: what the numbers in jobs.in_submission mean, for jobs that are not terminal.
SELECT n, id FROM submissions WHERE n IN (SELECT in_submission FROM jobs WHERE state < 12);

-- name: live_jobs
-- For the snapshot: every job that is not terminal. What few of them have is one cell, as JSON.
SELECT id, key, in_submission, spec, in_group, cmd, state, attempt, tries, submitted_at, ready_at, due_at,
       ended_at, reason_code, reason_message, after,
       iif(coalesce(floor, input_bytes, array_id) IS NULL, NULL,
           json_array(floor, input_bytes, array_id, array_index))
FROM jobs WHERE state < 12 ORDER BY id;

-- name: state_block
-- For the snapshot: the states of a span of ids as one string, a letter each, without a step per row.
SELECT count(*), min(id), max(id), group_concat(char(64 + state), '')
FROM (SELECT id, state FROM jobs WHERE id BETWEEN ? AND ? ORDER BY id);

-- name: state_rows
-- For the snapshot: the same span where ids are missing in it.
SELECT id, state FROM jobs WHERE id BETWEEN ? AND ?;

-- name: open_attempts
-- For the snapshot: attempts without an outcome.
SELECT * FROM attempts WHERE outcome IS NULL ORDER BY job, number;

-- name: open_runners
-- For the snapshot: runners that hold open attempts.
SELECT id, host, boot_id, pid, start_time, joined_at FROM runners
WHERE id IN (SELECT runner FROM attempts WHERE outcome IS NULL) ORDER BY id;

-- name: all_tally
-- For the snapshot: finished jobs by group and state.
SELECT grp, state, jobs FROM tally;

-- name: all_meta
-- For the snapshot.
SELECT key, value FROM meta;

-- name: all_limits
-- For the snapshot.
SELECT name, declaration FROM limits;

-- name: all_intents
-- Runners that delegated pools were asked for.
SELECT name, pool, need, seconds, ticket, key, engine_id, state, withdrawn, runner, asked_at FROM intents ORDER BY name;

-- name: all_site
-- For the snapshot.
SELECT kind, name, value FROM site_records;

-- name: last_machine_rows
-- For the snapshot: the open row of each machine that is not gone.
SELECT h.host, h.at, h.condition, h.usage, h.state
FROM (SELECT host, max(at) AS at FROM machine_history GROUP BY host) AS l
CROSS JOIN machine_history AS h ON h.host = l.host AND h.at = l.at
WHERE NOT (h.condition = 'removed' AND h.state = 'unknown');

-- name: accounts_between
-- The sums of the hours from the first up to the second, all in one JSON value. What began earlier and goes on is
-- a step at the first hour.
WITH w(first, up_to) AS (SELECT ?, ?)
SELECT json_group_array(json_array(hour, user, project, queue, json_array(
    attempts, jobs, failed, used_us, used_step, given_us, given_step, cpu_us, wait_us, asked_us, asked_step, unasked)))
FROM (
    SELECT first AS hour, user, project, queue, 0 AS attempts, 0 AS jobs, 0 AS failed, 0 AS used_us,
           sum(used_step) AS used_step, 0 AS given_us, sum(given_step) AS given_step, 0 AS cpu_us, 0 AS wait_us,
           0 AS asked_us, sum(asked_step) AS asked_step, 0 AS unasked
    FROM w CROSS JOIN accounts WHERE accounts.hour < first
    GROUP BY user, project, queue
    HAVING sum(used_step) <> 0 OR sum(given_step) <> 0 OR sum(asked_step) <> 0
    UNION ALL
    SELECT hour, user, project, queue, attempts, jobs, failed, used_us, used_step, given_us, given_step, cpu_us,
           wait_us, asked_us, asked_step, unasked
    FROM w CROSS JOIN accounts WHERE accounts.hour >= first AND accounts.hour < up_to
    ORDER BY 1, 2, 3, 4);

-- name: asked_since
-- The first hour of which it is known what was asked for: an earlier version wrote down only what was given.
SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = 'asked_since';

-- name: running_attempts
-- What runs now: specification, size and what was given (JSON), and since when; one JSON value, times as text.
SELECT json_group_array(json_array(coalesce(a.spec, j.spec), a.size, a.given, printf('%!.18g', a.started_at)))
FROM attempts AS a CROSS JOIN jobs AS j ON j.id = a.job
WHERE a.outcome IS NULL AND a.started_at IS NOT NULL;

-- name: minutes_since
-- What happened from this minute on, all in one JSON value.
SELECT json_group_array(json_array(minute, json_array(started, complete, failed, cancelled, wait_us, run_us)))
FROM (SELECT * FROM minutes WHERE minute >= ? ORDER BY minute);

-- name: machine_hosts
-- Every machine with a history, as one JSON value: from name to name by the index, without reading the rows between.
WITH RECURSIVE found(host) AS (
    SELECT min(host) FROM machine_history
    UNION ALL
    SELECT (SELECT min(host) FROM machine_history WHERE host > found.host) FROM found WHERE found.host IS NOT NULL)
SELECT json_group_array(host) FROM found WHERE host IS NOT NULL;

-- name: machine_rows_of_host
-- The same as `machine_rows_between` for one machine, by the index.
WITH w(name, since, until) AS (SELECT ?, ?, ?)
SELECT json_group_array(json_array(host, at, condition, usage, state)) FROM (
    SELECT host, at, condition, usage, state FROM w CROSS JOIN machine_history
    WHERE host = name AND at < until
      AND at >= ifnull((SELECT max(at) FROM machine_history WHERE host = name AND at <= since), since)
    ORDER BY at);

-- name: machine_rows_between
-- What machines (an empty name: all) were in a span of time, each beginning with its row before; one JSON value.
WITH w(name, since, until) AS (SELECT ?, ?, ?)
SELECT json_group_array(json_array(host, at, condition, usage, state)) FROM (
    SELECT host, at, condition, usage, state FROM w CROSS JOIN machine_history
    WHERE (name = '' OR host = name) AND at > since AND at < until
    UNION ALL
    SELECT h.host, h.at, h.condition, h.usage, h.state
    FROM (SELECT host, max(at) AS at FROM w CROSS JOIN machine_history
          WHERE (name = '' OR host = name) AND at <= since GROUP BY host) AS l
    CROSS JOIN machine_history AS h ON h.host = l.host AND h.at = l.at
    ORDER BY 1, 2);

-- name: points
-- What the newest attempts of a learning group asked for, were given and used, newest first, as one JSON value.
SELECT json_group_array(json_array(
    job, printf('%!.18g', at), input_bytes, given_mem, mem, printf('%!.18g', given_time_s), printf('%!.18g', time_s),
    outcome = 'complete', asked_mem, iif(asked_time_s IS NULL, NULL, printf('%!.18g', asked_time_s))))
FROM (SELECT * FROM observations WHERE grp = ? ORDER BY n DESC LIMIT ?);

-- name: all_dep_groups
-- For the snapshot.
SELECT name, complete FROM dep_groups;

-- name: all_edges
-- For the snapshot: dependents with their specification.
SELECT parent, child, spec FROM edges CROSS JOIN jobs ON jobs.id = child ORDER BY parent, child;

-- name: gone_wrong
-- For the snapshot: failed and cancelled jobs of these specifications that were not replaced.
SELECT id, spec FROM jobs
WHERE state > 12 AND spec IN (SELECT value FROM json_each(?)) AND replaced_by IS NULL ORDER BY id;

-- name: all_replaced
-- For the snapshot: jobs whose place another took, all in one JSON value.
SELECT json_group_array(id) FROM jobs WHERE replaced_by IS NOT NULL;

-- name: newest_observations
-- For the snapshot: so many of each learning group, in the order in which they were made.
SELECT grp, place, at, mem, disk, time_s, outcome, input_bytes, given_mem, given_disk, given_time_s FROM (
    SELECT *, row_number() OVER (PARTITION BY grp ORDER BY n DESC) AS age FROM observations)
WHERE age <= ? ORDER BY n;

-- name: count_observations
-- How many of each learning group are stored.
SELECT grp, count(*) FROM observations GROUP BY grp;

-- name: next_ids
-- For the snapshot: the ids to give out next.
SELECT max(ifnull((SELECT max(id) FROM jobs), 0), ifnull((SELECT id FROM used WHERE kind = 'job'), 0)) + 1,
       ifnull((SELECT max(id) FROM specs), 0) + 1,
       ifnull((SELECT max(id) FROM envs), 0) + 1;

-- name: submission
-- An add by its id.
SELECT id, user, at, count, answer, input FROM submissions WHERE id = ?;

-- name: last_of_input
-- The newest finished add of an input of a user.
SELECT id, user, at, count, answer, input FROM submissions
WHERE user = ? AND input = ? AND answer IS NOT NULL;

-- name: last_submission
-- The newest finished add of a user.
SELECT id, user, at, count, answer, input FROM submissions
WHERE user = ? AND answer IS NOT NULL ORDER BY at DESC, n DESC LIMIT 1;

-- name: attempts_of
-- All attempts of a job.
SELECT * FROM attempts WHERE job = ? ORDER BY number;

-- name: events_of
-- The story of a job.
SELECT at, job, attempt, kind, text FROM events WHERE job = ? ORDER BY n;

-- name: dependents
-- Jobs that wait for any of these jobs and groups, all in one JSON value.
SELECT json_group_array(child) FROM (
    SELECT DISTINCT child FROM edges WHERE parent IN (SELECT value FROM json_each(?)) ORDER BY child);

-- name: children
-- The first so many jobs that wait or waited for a job or a group, as one JSON value.
SELECT json_group_array(child) FROM (SELECT child FROM children WHERE parent = ? ORDER BY child LIMIT ?);

-- name: followers
-- Jobs that wait or waited for any of these jobs, all in one JSON value.
SELECT json_group_array(child) FROM (
    SELECT DISTINCT child FROM children WHERE parent IN (SELECT value FROM json_each(?)) ORDER BY child);

-- name: briefs
-- What of these jobs an add must know, all in one JSON value.
SELECT json_group_array(json_array(key, id, state, spec, after)) FROM (
    SELECT j.key, j.id, j.state, j.spec, j.after FROM json_each(?) AS n CROSS JOIN jobs AS j
    WHERE j.id = n.value AND j.replaced_by IS NULL/* also */ ORDER BY j.id);

-- name: namesakes
-- All jobs with these keys in these runs that were not replaced, as above.
SELECT json_group_array(json_array(key, id, state, spec, after)) FROM (
    SELECT DISTINCT j.key, j.id, j.state, j.spec, j.after
    FROM json_each(?) AS k CROSS JOIN json_each(?) AS r CROSS JOIN keys AS i CROSS JOIN jobs AS j
    WHERE i.run = r.value AND i.tail = substr(k.value, -8) AND j.id = i.job AND j.key = k.value
      AND j.replaced_by IS NULL/* also */);

-- name: count_children
-- How many jobs wait or waited for a job or a group.
SELECT count(*) FROM children WHERE parent = ?;

-- name: env
-- A stored environment, base64.
SELECT data FROM envs WHERE id = ?;

-- name: segments
-- Names of the output segments that are referred to.
SELECT DISTINCT segment FROM attempts WHERE segment > '';

-- name: outputs
-- Where the output of attempts lies, from behind one on.
SELECT job, number, coalesce(segment, ''), coalesce(offset, 0), coalesce(out_len, 0), coalesce(err_len, 0),
       coalesce(out_total, 0), coalesce(err_total, 0), kept
FROM attempts
WHERE (job, number) > (?, ?) AND (segment > '' OR kept IS NOT NULL)
ORDER BY job, number LIMIT ?;

-- name: pruned
-- The pruned ones among these segments.
SELECT segment FROM pruned WHERE segment IN (SELECT value FROM json_each(?));

-- name: span_of_submission
-- Where the jobs of a submission lie.
SELECT n, low, high FROM submissions WHERE id = ? AND answer IS NOT NULL AND low IS NOT NULL;

-- name: groups_named
-- The numbers of groups with this name, with this prefix, of this user, or all of that; what is empty says nothing. Of
-- jobs in several groups the names are joined by line feeds.
SELECT n FROM groups
WHERE (:grp = '' OR grp = :grp OR instr(char(10) || grp || char(10), char(10) || :grp || char(10)))
  AND (:prefix = '' OR instr(char(10) || grp, char(10) || :prefix))
  AND (:user = '' OR user = :user);

-- name: known_keys
-- The newest job with each of these keys in these runs, all in one JSON value.
SELECT json_group_array(json_array(key, id, state)) FROM (
    SELECT j.key, max(j.id) AS id, j.state
    FROM json_each(?) AS k CROSS JOIN json_each(?) AS r CROSS JOIN keys AS i CROSS JOIN jobs AS j
    WHERE i.run = r.value AND i.tail = substr(k.value, -8) AND j.id = i.job AND j.key = k.value
      AND j.replaced_by IS NULL/* also */
    GROUP BY j.key);

-- name: known_jobs
-- Keys and states of these jobs, all in one JSON value.
SELECT json_group_array(json_array(key, id, state)) FROM (
    SELECT j.key, j.id, j.state FROM json_each(?) AS n CROSS JOIN jobs AS j
    WHERE j.id = n.value AND j.replaced_by IS NULL/* also */);

-- name: known_newest_keys
-- The newest job with each of these keys among those in no run: a scan, for the rare case.
SELECT json_group_array(json_array(key, id, state)) FROM (
    SELECT j.key, max(j.id) AS id, j.state FROM jobs AS j
    WHERE j.key IN (SELECT value FROM json_each(?1)) AND j.id >= ?2 AND j.replaced_by IS NULL/* also */
    GROUP BY j.key);

-- name: keys_below
-- Jobs with a lower id have their keys in runs.
SELECT coalesce(max(id), 0) FROM used WHERE kind = 'keys';

-- name: newest_keys
-- Keys of the jobs that are in no run, oldest first.
SELECT key, id FROM jobs WHERE id >= ? ORDER BY id;

-- name: insert_keys
-- Keys of jobs whose run was written before them.
INSERT OR IGNORE INTO keys (run, tail, job) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?);

-- name: write_run
-- The keys of a span of ids, in order.
INSERT OR IGNORE INTO keys (run, tail, job)
SELECT ?1, substr(key, -8), id FROM jobs WHERE id BETWEEN ?2 AND ?3 ORDER BY 2, 3;

-- name: move_keys_below
-- Another run is written.
INSERT INTO used (kind, id) VALUES ('keys', ?) ON CONFLICT (kind) DO UPDATE SET id = excluded.id;

-- name: jobs_with_newest
-- Jobs by id, each with its newest attempt, all in one JSON value. Times as text: a number in
-- SQLite's JSON has only 15 digits. An empty text stands for null.
SELECT json_group_array(json_array(
    id, key, submission, spec, grp, user, cmd, state, attempt, tries,
    iif(submitted_at IS NULL, '', printf('%!.18g', submitted_at)),
    iif(ready_at IS NULL, '', printf('%!.18g', ready_at)),
    iif(due_at IS NULL, '', printf('%!.18g', due_at)),
    iif(ended_at IS NULL, '', printf('%!.18g', ended_at)),
    reason_code, reason_message, after, floor, input_bytes, array_id, array_index, replaced_by, pipeline_element,
    iif(job IS NULL, NULL, json_array(
        job, number, token, runner, host,
        iif(leased_at IS NULL, '', printf('%!.18g', leased_at)),
        iif(started_at IS NULL, '', printf('%!.18g', started_at)),
        pid, seat, outcome, exit_code, signal, its_code, its_message,
        iif(its_end IS NULL, '', printf('%!.18g', its_end)),
        iif(cpu_s IS NULL, '', printf('%!.18g', cpu_s)),
        peak_mem, peak_disk, segment, offset, out_len, err_len, out_total, err_total,
        its_spec, size, behaviours, given, kept))))
FROM (
    SELECT j.id, j.key, s.id AS submission, j.spec, g.grp, g.user, j.cmd, j.state, j.attempt, j.tries,
           j.submitted_at, j.ready_at, j.due_at, j.ended_at, j.reason_code, j.reason_message, j.after,
           j.floor, j.input_bytes, j.array_id, j.array_index, j.replaced_by, j.pipeline_element,
           a.job, a.number, a.token, a.runner, a.host, a.leased_at, a.started_at, a.pid, a.seat, a.outcome,
           a.exit_code, a.signal, a.reason_code AS its_code, a.reason_message AS its_message,
           a.ended_at AS its_end, a.cpu_s, a.peak_mem, a.peak_disk, a.segment, a.offset, a.out_len, a.err_len,
           a.out_total, a.err_total, a.spec AS its_spec, a.size, a.behaviours, a.given, a.kept
    FROM json_each(?) AS w
    CROSS JOIN jobs AS j ON j.id = w.value
    CROSS JOIN submissions AS s ON s.n = j.in_submission
    CROSS JOIN groups AS g ON g.n = j.in_group
    LEFT JOIN attempts AS a ON a.job = j.id AND a.number = j.attempt
    WHERE s.answer IS NOT NULL
    ORDER BY j.id);

-- name: insert_ended_in
-- Where attempts of an hour are to be found.
INSERT OR IGNORE INTO ended_in (span, hour, block) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?);

-- name: blocks_of_hours
-- The blocks of job ids in which attempts of these spans ended within these hours, as one JSON value.
SELECT json_group_array(block) FROM (
    SELECT DISTINCT e.block FROM json_each(?) AS r CROSS JOIN ended_in AS e
    WHERE e.span = r.value ->> 0 AND e.hour BETWEEN r.value ->> 1 AND r.value ->> 2);

-- name: past_hosts
-- How many attempts, at most so many, have a part within a window, in these ranges of job ids, and their hosts; one JSON value.
SELECT json_array(count(*), json_group_array(DISTINCT host)) FROM (
    SELECT a.host FROM json_each(?3) AS r CROSS JOIN attempts AS a ON a.job BETWEEN r.value ->> 0 AND r.value ->> 1
    WHERE a.ended_at > ?1 AND a.started_at < ?2 AND a.outcome <> 'void'
    LIMIT ?4);

-- name: past
-- The same attempts after a job and number; one JSON value.
SELECT json_group_array(json_array(job, number, host, printf('%!.18g', started_at), printf('%!.18g', ended_at), outcome,
                                   spec, grp, size, given, pipeline_element))
FROM (
    SELECT a.job, a.number, a.host, a.started_at, a.ended_at, a.outcome, coalesce(a.spec, j.spec) AS spec, g.grp, a.size,
           a.given, j.pipeline_element
    FROM json_each(?3) AS r
    CROSS JOIN attempts AS a ON a.job BETWEEN max(r.value ->> 0, ?5) AND r.value ->> 1
    CROSS JOIN jobs AS j ON j.id = a.job
    CROSS JOIN groups AS g ON g.n = j.in_group
    WHERE a.ended_at > ?1 AND a.started_at < ?2 AND a.outcome <> 'void' AND (a.job > ?5 OR a.number > ?6)
    LIMIT ?4);

-- name: past_sums
-- The same attempts of one range of job ids, summed up by place and by the slices of the window in which they begin and
-- end. What an attempt was suspended for is left out at its beginning, as it is in the accounts. With a limit, even if it
-- is none, SQLite works out the columns of an inner select once and not wherever they are used. The key is one number, and
-- few functions are called for a row that was given nothing by a plan: both halve the time. Rounding may make a slice one too
-- many; ?3 + 1 stands for an end after the window.
SELECT json_group_array(json_array(place, min(key / (?3 + 2) % (?3 + 2), ?3 - 1), min(key % (?3 + 2), ?3 - 1),
                                   key / ((?3 + 2) * (?3 + 2)), attempts, failed, cpus, begin_s, end_s,
                                   iif(key % (?3 + 2) > ?3, 0, attempts)))
FROM (
    SELECT place,
           (spec * (?3 + 2) + CAST(x * ?3 / (?2 - ?1) AS INTEGER)) * (?3 + 2)
           + iif(ended, CAST(y * ?3 / (?2 - ?1) AS INTEGER), ?3 + 1) AS key,
           count(*) AS attempts, count(*) FILTER (WHERE failed) AS failed, sum(c) AS cpus, sum(c * x) AS begin_s,
           sum(c * y) AS end_s
    FROM (
        SELECT CASE WHEN given IS NOT NULL
                        THEN min(min(ended_at, ?2), max(started_at + coalesce(given ->> '$[8][3]', 0), ?1)) - ?1
                    WHEN started_at <= ?1 THEN 0.0
                    WHEN started_at > ended_at THEN ended_at - ?1
                    ELSE started_at - ?1 END AS x,
               iif(ended_at < ?2, ended_at, ?2) - ?1 AS y,
               ended_at < ?2 AS ended,
               iif(given IS NULL OR json_array_length(given, '$[3]') = 0
                   OR json_array_length(given, '$[3]') = 1 AND NOT coalesce(given ->> '$[7]', 0),
                   host, given -> '$[3]') AS place,
               -- What tells its cores: its size, what it was given of one host, or its hosts.
               CASE WHEN given IS NULL OR json_array_length(given, '$[3]') = 0 THEN iif(size IS NULL, 1, size ->> 0)
                    WHEN json_array_length(given, '$[3]') = 1 AND NOT coalesce(given ->> '$[7]', 0)
                        THEN given ->> '$[0][0]'
                    ELSE 1 END AS c,
               iif(size IS NULL AND (given IS NULL OR json_array_length(given, '$[3]') = 0),
                   coalesce(spec, (SELECT j.spec FROM jobs AS j WHERE j.id = job)), 0) AS spec,
               outcome = 'failed' AS failed
        FROM attempts
        WHERE job BETWEEN ?4 AND ?5 AND ended_at > ?1 AND started_at < ?2 AND outcome <> 'void'
        LIMIT -1)
    GROUP BY place, key);

-- name: ended_between
-- How many attempts ended from the first moment on and before the second, of jobs that are still there.
SELECT count(*) FROM json_each(?3) AS r CROSS JOIN attempts AS a ON a.job BETWEEN r.value ->> 0 AND r.value ->> 1
WHERE a.ended_at >= ?1 AND a.ended_at < ?2 AND a.outcome <> 'void';
