"""How answers look in a terminal: tables, colours, progress, the Gantt chart, job output. Asks nobody anything."""
