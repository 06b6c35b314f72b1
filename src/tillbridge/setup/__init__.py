"""Setting a bridge up, from nothing to the first order, each step tested before the next (floor 4).

Nothing of it is imported by a bridge whose set-up nobody looks at.
"""
