"""The command line: one file a verb. It holds no logic that Python callers would miss."""
