"""What ended attempts teach about the size and duration of the next job of the same program."""
