"""What clients ask for: questions, actions on jobs, watches, and control of the manager.

Each request becomes an event, an answer, or a watch. May import every other package of the manager. Connections
and the decoding of messages belong to `peers`.
"""
