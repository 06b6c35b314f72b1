"""The demo: a service, a till, a bridge and orders, on one machine."""
