-- Arrays, learning, limits and dependency groups. Columns that are new are null in rows of the first schema.

ALTER TABLE jobs ADD COLUMN input_bytes INTEGER;
ALTER TABLE jobs ADD COLUMN array_id INTEGER;
ALTER TABLE jobs ADD COLUMN array_index INTEGER;
-- JSON of a Size: what failures proved too small.
ALTER TABLE jobs ADD COLUMN floor TEXT;
CREATE INDEX jobs_of_array ON jobs (array_id, array_index) WHERE array_id IS NOT NULL;

-- The specification at the time, JSON of the size where it was another, JSON of what behaviours did.
ALTER TABLE attempts ADD COLUMN spec INTEGER;
ALTER TABLE attempts ADD COLUMN size TEXT;
ALTER TABLE attempts ADD COLUMN behaviours TEXT;

-- Dependents that a group can re-open. A parent without a type: 12 is a job, '12' a group.
CREATE TABLE edges (
    parent,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX edges_of_child ON edges (child);

-- Every dependency group that ever had a member.
CREATE TABLE dep_groups (
    name     TEXT PRIMARY KEY,
    complete INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE limits (
    name        TEXT PRIMARY KEY,
    declaration TEXT NOT NULL
) WITHOUT ROWID;

-- What attempts taught, in the order of n; of each learning group only the newest are kept.
CREATE TABLE observations (
    n            INTEGER PRIMARY KEY,
    grp          TEXT NOT NULL,
    place        INTEGER NOT NULL,
    at           REAL NOT NULL,
    mem          INTEGER,
    disk         INTEGER,
    time_s       REAL,
    outcome      TEXT,
    input_bytes  INTEGER,
    asked_mem    INTEGER,
    asked_disk   INTEGER,
    asked_time_s REAL
);
CREATE INDEX observations_of_group ON observations (grp);
