"""Communities (hubs): their catalogue mirrored, our word on items, hours, orders, subscription.

Imported only where the configuration names a community. Specification: Community (hub) endpoints;
Community envelope.
"""
