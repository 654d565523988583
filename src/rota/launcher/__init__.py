"""The launcher: the only part that starts processes, opens files and changes directory on behalf of jobs, and
reaps them.

It starts what the runner tells it to and decides nothing: which job runs, when it must end and how it ended is up
to the runner. `base.py` is the interface. Standard library and msgspec only; nothing else of Rota is imported.
"""
