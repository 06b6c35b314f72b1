"""The checks, one file each: facts are gathered, and a pure function says what they mean."""
