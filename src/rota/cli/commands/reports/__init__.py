"""Reports about the past and the future: accounting, usage, learned amounts, the Gantt chart."""
