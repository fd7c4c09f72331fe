"""Pages and tables of run folders, made from stored files only."""
