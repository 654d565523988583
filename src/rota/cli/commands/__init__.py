"""The commands, one file per noun. Each is imported when it is called."""
