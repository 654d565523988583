"""Records about the output of attempts: location, checksums, file names, and why it is missing.

The bytes are written by `runner.output.capture` and read by `store` and `manager.output`.
"""
