"""The typed client of the ordering service, over one retry policy: the specification's table."""
