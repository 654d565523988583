"""What is to be populated: the configuration as data, its reader, and the file that may change at any time."""
