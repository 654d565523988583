"""The manager's process: start-up and recovery, the turns (decide, commit, act), clocks and threads.

`service` and `startup` are at the top and import every other package. `turns`, `readers`, `clock` and `deployment`
are at the bottom and may be imported from anywhere in the manager.
"""
