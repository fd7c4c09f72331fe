"""Bars of attacks: hacks, hostile bytes and planted bugs."""
