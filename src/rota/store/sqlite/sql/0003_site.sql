-- What an administrator has said about the site: resources, hosts, queues and the like, each as JSON.

CREATE TABLE site_records (
    kind  TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- What the planner gave to an attempt: resources, cores, walltime, as JSON.
ALTER TABLE attempts ADD COLUMN given TEXT;
