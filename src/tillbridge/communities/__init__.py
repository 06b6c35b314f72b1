"""Communities (hubs): mirrored catalogue, availability overrides, hours, orders, subscription.

Imported only where the configuration names a community. Specification: Community (hub) endpoints;
Community envelope.
"""
