"""Commands that look back or ahead: accounting, usage, learning, the Gantt chart."""
