"""Submissions: checked, judged by admission rules, and completed by what the store knows, until they are events.

The engine decides which jobs are added; nothing here changes the world.
"""
