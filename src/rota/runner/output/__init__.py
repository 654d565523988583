"""What jobs print: read from pipes, captured, stored in segments, shipped to the manager, followed live.

Nothing here starts, ends or judges a job.
"""
