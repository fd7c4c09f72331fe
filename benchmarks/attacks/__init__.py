"""Hacks, hostile bytes and planted bugs: are they found?"""
