"""Why a job waits, and what if: questions about a plan, answered in copies of it.

Nothing here changes a plan that is carried out.
"""
