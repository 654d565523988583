"""The command line: one file per noun. Imported lazily, so that short commands stay short."""
