-- What is known of the output of an attempt beside where it lies, as JSON: checksums, where its middle was left out,
-- why it is missing. NULL: it printed nothing, or an older version kept it.
ALTER TABLE attempts ADD COLUMN kept TEXT;

-- Segments that were removed because of their age or the space they took.
CREATE TABLE pruned (
    segment TEXT PRIMARY KEY
) WITHOUT ROWID;
