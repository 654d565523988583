"""How answers look: tables, colours, progress lines, the Gantt chart, errors.

Nothing here talks to the manager.
"""
