"""Bars of the server: under load, with faults, and with a hostile client."""
