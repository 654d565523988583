"""Tables that fill themselves: one manager asks databases which keys are missing and hands them out in batches.

It never imports the code of tables: `source` asks a process of their interpreter, which runs what is in `inside`.
What goes into which batch is decided in `cycle`, without I/O; `transport` takes batches to workers.
"""
