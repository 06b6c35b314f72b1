"""What an adapter may tell of by itself."""

from enum import StrEnum


class Change(StrEnum):
    """What there is to read anew."""

    CATALOGUE = "catalogue"
    AVAILABILITY = "availability"
    TABLES = "tables"
    UPDATES = "updates"
    HEALTH = "health"
