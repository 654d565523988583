"""What commands read: options of jobs, selectors, files, signals, terminals; and the submission of jobs."""
