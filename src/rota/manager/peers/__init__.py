"""Connections of clients and runners: accepting them, authentication, and decoding their messages.

Runners' messages become events here; clients' requests are handed to `requests`.
"""
