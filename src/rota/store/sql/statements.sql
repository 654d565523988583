-- name: upsert_submissions
-- Adds that were accepted, or uploads that began (answer null). A sealed one stays sealed.
INSERT INTO submissions (id, user, at, count, answer)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]')
FROM json_each(?) WHERE true
ON CONFLICT (id) DO UPDATE SET user = excluded.user, at = excluded.at, count = excluded.count,
    answer = coalesce(excluded.answer, answer);

-- name: insert_envs
-- Environments, each stored once.
INSERT INTO envs (id, digest, data)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(?);

-- name: insert_specs
-- What many jobs have in common, as JSON.
INSERT INTO specs (id, spec)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
FROM json_each(?);

-- name: insert_groups
-- (group, user) pairs that jobs of this batch are in; those known already stay.
INSERT OR IGNORE INTO groups (grp, user)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
FROM json_each(?);

-- name: widen_submissions
-- (id, lowest, highest job): the span of ids in which a submission's jobs lie.
UPDATE submissions SET
    low = min(coalesce(low, json_extract(value, '$[1]')), json_extract(value, '$[1]')),
    high = max(coalesce(high, 0), json_extract(value, '$[2]'))
FROM json_each(?)
WHERE submissions.id = json_extract(value, '$[0]');

-- name: insert_jobs
-- New jobs. Their submission and group rows are there already.
INSERT INTO jobs (id, key, in_submission, spec, in_group, cmd, state, submitted_at, ready_at,
                  reason_code, reason_message, after)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),
       (SELECT n FROM submissions WHERE submissions.id = json_extract(value, '$[2]')),
       json_extract(value, '$[3]'),
       (SELECT n FROM groups WHERE grp = json_extract(value, '$[4]') AND user = json_extract(value, '$[5]')),
       json_extract(value, '$[6]'), json_extract(value, '$[7]'), json_extract(value, '$[8]'),
       json_extract(value, '$[9]'), json_extract(value, '$[10]'), json_extract(value, '$[11]'),
       json_extract(value, '$[12]')
FROM json_each(?);

-- name: upsert_runners
-- Runners as they join.
INSERT INTO runners (id, host, boot_id, pid, start_time, joined_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
FROM json_each(?) WHERE true
ON CONFLICT (id) DO UPDATE SET host = excluded.host, boot_id = excluded.boot_id, pid = excluded.pid,
    start_time = excluded.start_time, joined_at = excluded.joined_at;

-- name: insert_attempts
-- Leases, written before they are sent.
INSERT INTO attempts (job, number, token, runner, host, leased_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
FROM json_each(?);

-- name: start_attempts
-- scheduled → running: the runner says when, as which process and in which seat.
UPDATE attempts SET started_at = json_extract(value, '$[2]'), pid = json_extract(value, '$[3]'),
    seat = json_extract(value, '$[4]')
FROM json_each(?)
WHERE job = json_extract(value, '$[0]') AND number = json_extract(value, '$[1]');

-- name: end_attempts
-- running → complete, failed, cancelled or lost, with what was measured. A start that was recorded
-- earlier is kept if the end does not know it.
UPDATE attempts SET outcome = json_extract(value, '$[2]'), exit_code = json_extract(value, '$[3]'),
    signal = json_extract(value, '$[4]'), reason_code = json_extract(value, '$[5]'),
    reason_message = json_extract(value, '$[6]'),
    started_at = coalesce(json_extract(value, '$[7]'), started_at),
    ended_at = json_extract(value, '$[8]'), cpu_s = json_extract(value, '$[9]'),
    peak_mem = json_extract(value, '$[10]'), peak_disk = json_extract(value, '$[11]'),
    segment = json_extract(value, '$[12]'), offset = json_extract(value, '$[13]'),
    out_len = json_extract(value, '$[14]'), err_len = json_extract(value, '$[15]'),
    out_total = json_extract(value, '$[16]'), err_total = json_extract(value, '$[17]')
FROM json_each(?)
WHERE job = json_extract(value, '$[0]') AND number = json_extract(value, '$[1]');

-- name: void_attempts
-- Leases that were never executed.
UPDATE attempts SET outcome = 'void'
FROM json_each(?)
WHERE job = json_extract(value, '$[0]') AND number = json_extract(value, '$[1]');

-- name: update_jobs
-- The last word of the batch about each job.
UPDATE jobs SET state = json_extract(value, '$[1]'), attempt = json_extract(value, '$[2]'),
    tries = json_extract(value, '$[3]'), due_at = json_extract(value, '$[4]'),
    ready_at = json_extract(value, '$[5]'), ended_at = json_extract(value, '$[6]'),
    reason_code = json_extract(value, '$[7]'), reason_message = json_extract(value, '$[8]')
FROM json_each(?)
WHERE jobs.id = json_extract(value, '$[0]');

-- name: insert_events
-- The story of jobs, for what is not routine.
INSERT INTO events (at, job, attempt, kind, text)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]')
FROM json_each(?);

-- name: add_tally
-- How many finished jobs more, by group and state.
INSERT INTO tally (grp, state, jobs)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(?) WHERE true
ON CONFLICT (grp, state) DO UPDATE SET jobs = jobs + excluded.jobs;

-- name: upsert_meta
-- Small facts about the deployment.
INSERT INTO meta (key, value)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
FROM json_each(?) WHERE true
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: keep_highest_job
-- Before jobs are removed: their ids are never given out again.
INSERT INTO used (kind, id) SELECT 'job', max(id) FROM jobs HAVING max(id) IS NOT NULL
ON CONFLICT (kind) DO UPDATE SET id = max(id, excluded.id);

-- name: remove_jobs
-- Jobs that are forgotten.
DELETE FROM jobs WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?));

-- name: remove_attempts
-- Attempts of jobs that are forgotten.
DELETE FROM attempts WHERE job IN (SELECT json_extract(value, '$[0]') FROM json_each(?));

-- name: remove_events
-- The story of jobs that are forgotten.
DELETE FROM events WHERE job IN (SELECT json_extract(value, '$[0]') FROM json_each(?));

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
-- For the snapshot: every job that is not terminal.
SELECT id, key, in_submission, spec, in_group, cmd, state, attempt, tries, submitted_at, ready_at, due_at,
       ended_at, reason_code, reason_message, after
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

-- name: next_ids
-- For the snapshot: the ids to give out next.
SELECT max(ifnull((SELECT max(id) FROM jobs), 0), ifnull((SELECT id FROM used WHERE kind = 'job'), 0)) + 1,
       ifnull((SELECT max(id) FROM specs), 0) + 1,
       ifnull((SELECT max(id) FROM envs), 0) + 1;

-- name: submission
-- An add by its id.
SELECT id, user, at, count, answer FROM submissions WHERE id = ?;

-- name: last_submission
-- The newest finished add of a user.
SELECT id, user, at, count, answer FROM submissions
WHERE user = ? AND answer IS NOT NULL ORDER BY at DESC, n DESC LIMIT 1;

-- name: attempts_of
-- All attempts of a job.
SELECT * FROM attempts WHERE job = ? ORDER BY number;

-- name: events_of
-- The story of a job.
SELECT at, job, attempt, kind, text FROM events WHERE job = ? ORDER BY n;

-- name: env
-- A stored environment, base64.
SELECT data FROM envs WHERE id = ?;

-- name: segments
-- Names of the output segments that are referred to.
SELECT DISTINCT segment FROM attempts WHERE segment > '';
