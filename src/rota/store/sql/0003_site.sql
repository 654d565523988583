-- What an administrator has said about the site: resources, hosts, queues and the like, each as JSON.

CREATE TABLE site_records (
    kind  TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
