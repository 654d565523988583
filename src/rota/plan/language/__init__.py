"""What people write about jobs and hosts: requests, property expressions, types, host lists, weekly hours.

Text in, checked values out. It knows syntax only: whether a property or a host exists is `plan.site`'s business.
Imports nothing else of `plan`.
"""
