-- Delegated pools: a runner is written down before the engine is asked for it, under a name that a survey of the engine
-- shows. Hashes only: neither a ticket's secret nor a runner's key is stored.
CREATE TABLE intents (
    name      TEXT NOT NULL PRIMARY KEY,
    pool      TEXT NOT NULL,
    need      TEXT NOT NULL,  -- JSON
    seconds   REAL NOT NULL,  -- allocation time
    ticket    TEXT NOT NULL,
    key       TEXT NOT NULL,  -- empty: the ticket was not used yet
    engine_id TEXT NOT NULL,  -- empty: not known
    state     INTEGER NOT NULL,  -- core/pools/records.py, RunnerState
    withdrawn INTEGER NOT NULL,
    runner    TEXT NOT NULL,  -- empty: none has joined
    asked_at  REAL NOT NULL
) WITHOUT ROWID;
