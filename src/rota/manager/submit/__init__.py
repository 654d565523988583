"""Submissions: checked, admitted by `core.admission`, and completed by what the store knows, to become events.

The engine decides which jobs are added; nothing here changes the world.
"""
