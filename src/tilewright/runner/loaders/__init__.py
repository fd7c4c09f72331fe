"""How each kind of candidate is loaded, inside the contestant."""
