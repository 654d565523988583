-- Who waits or waited for whom, for those who look: of all jobs that were added with dependencies, ended ones as
-- well. What re-opens jobs is in `edges`. A parent without a type: 12 is a job, '12' a group.
CREATE TABLE children (
    parent,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;

INSERT OR IGNORE INTO children
SELECT p.value ->> 0, j.id FROM jobs AS j CROSS JOIN json_each(j.after) AS p WHERE j.after IS NOT NULL;
