"""Data structures over time: free resources, amounts that change in steps, the holes where a job might fit.

No policy and no jobs: whoever uses them says what they stand for.
"""
