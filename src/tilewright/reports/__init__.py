"""Pages and tables made from run folders; never from live objects."""
