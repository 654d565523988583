-- The first schema. Small columns that change come first in a row, long text last, so that a scan
-- for states and an update of them stay away from the text.

-- One row for each `add`. answer IS NULL: still being uploaded, its jobs are invisible.
-- low and high bound the ids of its jobs, which stands in for an index over all jobs.
CREATE TABLE submissions (
    n      INTEGER PRIMARY KEY,
    id     TEXT NOT NULL UNIQUE,
    user   TEXT NOT NULL,
    at     REAL NOT NULL,
    count  INTEGER NOT NULL,
    low    INTEGER,
    high   INTEGER,
    answer TEXT
);
CREATE INDEX submissions_of_user ON submissions (user, at) WHERE answer IS NOT NULL;
CREATE INDEX submissions_open ON submissions (n) WHERE answer IS NULL;

CREATE TABLE envs (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    data   TEXT NOT NULL
);

CREATE TABLE specs (
    id   INTEGER PRIMARY KEY,
    spec TEXT NOT NULL
);

-- A group of one user. Jobs refer to it by number: the index over it stays tiny.
CREATE TABLE groups (
    n    INTEGER PRIMARY KEY,
    grp  TEXT NOT NULL,
    user TEXT NOT NULL,
    UNIQUE (grp, user)
);

CREATE TABLE jobs (
    id             INTEGER PRIMARY KEY,
    state          INTEGER NOT NULL,
    attempt        INTEGER NOT NULL DEFAULT 0,
    tries          INTEGER NOT NULL DEFAULT 0,
    in_group       INTEGER NOT NULL,
    in_submission  INTEGER NOT NULL,
    spec           INTEGER NOT NULL,
    submitted_at   REAL NOT NULL,
    ready_at       REAL,
    due_at         REAL,
    ended_at       REAL,
    key            TEXT NOT NULL,
    reason_code    TEXT,
    reason_message TEXT,
    after          TEXT,
    cmd            TEXT NOT NULL
);
CREATE INDEX jobs_by_group ON jobs (in_group);
CREATE INDEX jobs_gone_wrong ON jobs (state, in_group) WHERE state > 12;

-- Keys of jobs in runs of ids, each written once and in order (see keys.py). The last characters of a
-- hash find the row.
CREATE TABLE keys (
    run  INTEGER NOT NULL,
    tail TEXT NOT NULL,
    job  INTEGER NOT NULL,
    PRIMARY KEY (run, tail, job)
) WITHOUT ROWID;

CREATE TABLE attempts (
    job            INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    token          INTEGER NOT NULL,
    runner         TEXT NOT NULL,
    host           TEXT NOT NULL,
    leased_at      REAL NOT NULL,
    started_at     REAL,
    pid            INTEGER,
    seat           INTEGER,
    outcome        TEXT,
    exit_code      INTEGER,
    signal         INTEGER,
    reason_code    TEXT,
    reason_message TEXT,
    ended_at       REAL,
    cpu_s          REAL,
    peak_mem       INTEGER,
    peak_disk      INTEGER,
    segment        TEXT,
    offset         INTEGER,
    out_len        INTEGER,
    err_len        INTEGER,
    out_total      INTEGER,
    err_total      INTEGER,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;
CREATE INDEX attempts_open ON attempts (job) WHERE outcome IS NULL;

CREATE TABLE events (
    n       INTEGER PRIMARY KEY,
    job     INTEGER NOT NULL,
    at      REAL NOT NULL,
    attempt INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL
);
CREATE INDEX events_of_job ON events (job);

-- Columns without a type keep whatever a runner says of itself.
CREATE TABLE runners (
    id         TEXT PRIMARY KEY,
    host,
    boot_id,
    pid,
    start_time,
    joined_at
) WITHOUT ROWID;

CREATE TABLE tally (
    grp   TEXT NOT NULL,
    state INTEGER NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (grp, state)
) WITHOUT ROWID;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The highest id of a kind that was ever given out, where rows of it have been removed since.
CREATE TABLE used (
    kind TEXT PRIMARY KEY,
    id   INTEGER NOT NULL
) WITHOUT ROWID;
