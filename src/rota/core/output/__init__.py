"""What is recorded about the output of attempts: where it lies, its checksums, its names, and when it goes.

The bytes themselves are written by `runner.output.capture` and read by `store` and `manager.output`.
"""
