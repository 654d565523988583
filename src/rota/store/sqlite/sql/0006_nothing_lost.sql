-- What is known of the output of an attempt beside where it lies, as JSON: checksums, where its middle was left out,
-- why it is missing. NULL: it printed nothing, or an older version kept it.
ALTER TABLE attempts ADD COLUMN kept TEXT;

-- Segments that were removed because of their age or the space they took.
CREATE TABLE pruned (
    segment TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Replacement: the job that took this one's place, 0 where its input has no such line any more, null for nearly all;
-- and which input an add came from (a path, or a name that was given), null for those that have none.
ALTER TABLE jobs ADD COLUMN replaced_by INTEGER;
CREATE INDEX jobs_replaced ON jobs (id) WHERE replaced_by IS NOT NULL;
ALTER TABLE submissions ADD COLUMN input TEXT;
CREATE INDEX submissions_of_input ON submissions (user, input) WHERE input IS NOT NULL;
