"""Conventions: rules that every file of the repository keeps."""
