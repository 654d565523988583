-- The history of machines: what each is from some moment on (microseconds since 1970), in three words
-- (core/machines/machine_states.py). The last row of a machine is open. It takes the place of `host_states`, which had
-- one word.
CREATE TABLE machine_history (
    host      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    condition TEXT NOT NULL,
    usage     TEXT NOT NULL,
    state     TEXT NOT NULL,
    PRIMARY KEY (host, at)
) WITHOUT ROWID;

INSERT INTO machine_history (host, at, condition, usage, state)
SELECT host, at,
       iif(state = 'gone', 'removed', 'automated'),
       iif(state IN ('busy', 'draining'), 'running', 'idle'),
       CASE state WHEN 'busy' THEN 'alive' WHEN 'idle' THEN 'alive' WHEN 'draining' THEN 'drained'
                  WHEN 'unseen' THEN 'unknown' WHEN 'gone' THEN 'unknown' ELSE state END
FROM host_states;

DROP TABLE host_states;
