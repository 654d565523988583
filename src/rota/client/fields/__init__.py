"""The fields of a job as people give them, in JSON, on the command line or in Python: checked once."""
