"""Answers as clients see them: jobs, plans, Gantt charts, limits, nodes. Read-only; nothing here decides."""
