"""A store at the service: consent, integration, open or paused."""
