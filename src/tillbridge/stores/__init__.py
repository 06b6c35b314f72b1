"""A store's standing with the service: consent, integration, open or paused."""
