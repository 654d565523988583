"""Files that people write, as trees whose nodes know their places: YAML, with the line and column of each error.

What a document means is said elsewhere: by `pipeline` and by `populate`.
"""
