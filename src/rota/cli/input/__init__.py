"""What commands read: options of jobs, selectors, time spans, numbers, files; and shell completion.

Nothing is printed here.
"""
