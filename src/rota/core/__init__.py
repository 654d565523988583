"""The pure engine: events go in, changes and effects come out.

No clock, socket, file, randomness or thread: times and random numbers are arguments. May import `plan`, `errors`,
`settings` and `units` only. Anything that talks to the outside belongs to `manager`, `runner` or `store`.
"""
