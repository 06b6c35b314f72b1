"""What runs in a child process: parsers of strangers' files, and the call that runs one.

A child imports these modules and little else, so that it begins within some 20 ms; nothing here
imports pydantic, asyncio or the rest of the program.
"""
