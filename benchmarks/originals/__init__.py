"""Published search systems, driven with scripted proposals: the golden traces of our tests."""
