"""The fields of a job: each declared once, with its parser, its bounds, where it travels and its help.

Flags, JSON input, checks on both sides, messages, views and pages of the documentation come from the declarations.
Nothing here reads files or the environment, which is the client's part, or decides about jobs.
"""
