"""The process that runs jobs: many seats, one loop, no dependency but msgspec.

Started as ``python -m rota.runner``. It outlives the manager: jobs go on while nobody listens.
"""
