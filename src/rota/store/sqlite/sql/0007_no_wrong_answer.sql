-- What the answers about the past need.

-- Where to look for the attempts that ended in an hour (since 1970): blocks of 4096 job ids. Span n: they lasted less
-- than 2^n hours. See store/past.py.
CREATE TABLE ended_in (
    span  INTEGER NOT NULL,
    hour  INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (span, hour, block)
) WITHOUT ROWID;

INSERT OR IGNORE INTO ended_in
SELECT DISTINCT
       CASE WHEN lasted < 1 THEN 0 WHEN lasted < 2 THEN 1 WHEN lasted < 4 THEN 2 WHEN lasted < 8 THEN 3
            WHEN lasted < 32 THEN 5 WHEN lasted < 256 THEN 8 WHEN lasted < 4096 THEN 12 ELSE 20 END,
       hour, block
FROM (SELECT coalesce((ended_at - started_at) / 3600, 0) AS lasted, CAST(ended_at AS INTEGER) / 3600 AS hour, job >> 12 AS block
      FROM attempts WHERE outcome IS NOT NULL AND outcome <> 'void' AND ended_at > 0);
-- Accounting: what the columns asked_* held is what attempts were given (a walltime, or what learning expected). What
-- was asked for has columns of its own from now on; of the hours before that it is not known.
ALTER TABLE accounts RENAME COLUMN asked_us TO given_us;
ALTER TABLE accounts RENAME COLUMN asked_step TO given_step;
ALTER TABLE accounts ADD COLUMN asked_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN asked_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN unasked INTEGER NOT NULL DEFAULT 0;
INSERT INTO meta (key, value) SELECT 'asked_since', n FROM (SELECT max(hour) + 1 AS n FROM accounts) WHERE n IS NOT NULL;

-- Learning: the same. Null: nothing was asked for, or an earlier version wrote the row.
ALTER TABLE observations RENAME COLUMN asked_mem TO given_mem;
ALTER TABLE observations RENAME COLUMN asked_disk TO given_disk;
ALTER TABLE observations RENAME COLUMN asked_time_s TO given_time_s;
ALTER TABLE observations ADD COLUMN asked_mem INTEGER;
ALTER TABLE observations ADD COLUMN asked_disk INTEGER;
ALTER TABLE observations ADD COLUMN asked_time_s REAL;
