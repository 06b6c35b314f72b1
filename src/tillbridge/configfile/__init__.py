"""Reads `bridge.toml`, and tells a person everything that is wrong with it at once.

Importing this room is cheap; the settings' models are imported when a file is loaded.
"""

from tillbridge.configfile.faults import ConfigFaults, Fault
from tillbridge.configfile.loaded import LoadedSettings, load

__all__ = ["ConfigFaults", "Fault", "LoadedSettings", "load"]
