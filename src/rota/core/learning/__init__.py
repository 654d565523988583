"""Learning: the size and duration of the next job of a program, from attempts that ended.

`model` and what it imports are pure functions of observations; `estimate` connects them with the world.
"""
