"""Which processes belong to a job, and how they are held together, stopped and counted: control groups and their
substitutes."""
