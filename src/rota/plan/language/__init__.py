"""What people write about jobs and hosts: requests, property expressions, types, host lists, weekly hours.

Text in, checked values out. Only syntax: whether a property or a host exists is known to `plan.site`.
Imports no other package of `plan`.
"""
