"""Looks at every link between the service and the till, and says in words what is wrong.

Nothing here changes anything: what is asked of the service and the POS only reads. Importing the
room is cheap; a bridge that nobody examines carries none of it.
"""
