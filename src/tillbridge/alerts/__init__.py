"""Telling people of problems (floor 4): which alert is due when, and the ways it goes out.

Nothing here is imported where the configuration has no [alerts].
"""
