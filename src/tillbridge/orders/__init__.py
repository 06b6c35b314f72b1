"""Orders: from a delivery to a ticket in the POS, and from the POS's news to the service."""
