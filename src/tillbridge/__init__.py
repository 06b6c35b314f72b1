"""tillbridge: the bridge between a restaurant's till and its online orders."""

__version__ = "0.1.0"
