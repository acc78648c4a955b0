"""One running session: its record, its mounts, its sandbox; what happens before and after a cell."""
