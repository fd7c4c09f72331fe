"""Who writes: a model behind a server, one in this process, a script, or a recording."""
