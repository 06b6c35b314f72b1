"""How the internet may reach the receiver: whole configurations for four ways, one path open."""

from tillbridge.diagnostics.reach.ways import WAYS, guidance

__all__ = ["WAYS", "guidance"]
