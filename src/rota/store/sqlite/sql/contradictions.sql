-- Rows that contradict each other, for `rota doctor`. The name of each question is a sentence about what it finds:
-- {} is its first column. Numbers of states are those of `core.states.State`.

-- name: job {} is in a state that does not exist
SELECT id FROM jobs WHERE state NOT BETWEEN 1 AND 14;

-- name: job {} is leased, and no attempt of it is under way
SELECT id FROM jobs AS j WHERE state BETWEEN 5 AND 10
AND NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.job = j.id AND a.outcome IS NULL);

-- A job's row is not written when an attempt begins: the attempt says that it is leased.
-- name: an attempt of job {} is under way, and the job has ended
SELECT a.job FROM attempts AS a JOIN jobs AS j ON j.id = a.job WHERE a.outcome IS NULL AND j.state >= 12;

-- name: several attempts of job {} are under way
SELECT job FROM attempts WHERE outcome IS NULL GROUP BY job HAVING count(*) > 1;

-- name: job {} has an attempt with a number that it never gave
SELECT a.job FROM attempts AS a JOIN jobs AS j ON j.id = a.job
WHERE a.number < 1 OR a.number > j.attempt + (a.outcome IS NULL);

-- name: there are attempts of job {}, which is not there
SELECT job FROM attempts WHERE job NOT IN (SELECT id FROM jobs);

-- name: job {} has ended, and nobody knows when
SELECT id FROM jobs WHERE state BETWEEN 12 AND 14 AND ended_at IS NULL;

-- name: job {} has a specification that is not there
SELECT id FROM jobs WHERE spec NOT IN (SELECT id FROM specs);

-- name: job {} is in a group that is not there
SELECT id FROM jobs WHERE in_group NOT IN (SELECT n FROM groups);

-- name: job {} waits for others and is not there
SELECT child FROM edges WHERE child NOT IN (SELECT id FROM jobs);

-- name: of group {} another number of jobs has ended than is counted
SELECT grp FROM (
    SELECT grp, state, jobs AS n FROM tally
    UNION ALL
    SELECT g.grp, j.state, -1 FROM jobs AS j JOIN groups AS g ON g.n = j.in_group
)
WHERE state BETWEEN 12 AND 14 GROUP BY grp, state HAVING sum(n) != 0;
