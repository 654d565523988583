"""Jobs: what one is, what it waits for, what people may do to it, and why it does not run."""
