-- What calls of functions left at the end of an attempt, as JSON: a result, or the exception that ended it. A table
-- of its own, because other jobs have none and listings do not read it.
CREATE TABLE returned (
    job      INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    returned TEXT NOT NULL,
    PRIMARY KEY (job, number)
);
