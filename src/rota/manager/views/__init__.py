"""Answers to questions: jobs, plans, Gantt charts, limits and nodes as clients see them. Nothing here decides."""
