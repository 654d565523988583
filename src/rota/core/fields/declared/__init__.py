"""The declarations of all fields of a job, in the order of the help.

To add a field: declare it in one of these modules, with the next free `number`, and run `make generated`.
"""
