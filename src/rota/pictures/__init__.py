"""Pictures of schedules as SVG, PNG and HTML.

`schedule` holds what is drawn and where, one module for each format draws it, `rendering` chooses the format.
Imports nothing of `plan`: callers say which job has which rows.
"""
