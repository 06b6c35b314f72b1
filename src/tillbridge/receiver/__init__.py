"""The webhook endpoint: verify, commit, acknowledge. Nothing here decides what an order means."""
