-- The element that a job of a pipeline is for: its name goes on with it. NULL for all other jobs.
ALTER TABLE jobs ADD COLUMN pipeline_element TEXT;
