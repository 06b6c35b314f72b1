"""The technician's page, its JSON and metrics, and the way commands reach a running bridge."""
