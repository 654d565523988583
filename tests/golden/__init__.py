"""What earlier releases wrote, and the tests that today's code still reads and continues it. See README.md."""
