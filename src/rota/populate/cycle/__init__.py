"""One cycle: which keys go into which batches, and which batches are dead: no clock, no I/O, no random number."""
