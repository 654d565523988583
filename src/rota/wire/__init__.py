"""The protocol between processes: messages, their encoding, TLS, tokens and permissions.

It may import `core` and below. Nothing here knows who sends a message or what happens because of it.
"""
