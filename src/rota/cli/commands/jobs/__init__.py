"""Commands about jobs: submit them, look at them, act on them."""
