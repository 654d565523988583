"""Expected starts and ends: the one answer that every command, page and program shows."""
