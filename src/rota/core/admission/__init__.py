"""Admission: is a job taken in, and as what? Its fields are checked, and the rules of the site applied.

Pure: what only the machine knows, such as the Unix groups of a user, is passed in. The manager uses it for every
submission and modification, `rota rule test` for a trial; which jobs are added is decided in `core.submit`.
"""
