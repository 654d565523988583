"""Accounts: what was asked for, given and used, by hour, user, project and queue.

Reports on them belong to `manager.accounts`; the policy of fair share belongs to `plan.policy`.
"""
