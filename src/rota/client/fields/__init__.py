"""The fields of a job as users write them, in JSON, on the command line or in Python: parsed and checked."""
