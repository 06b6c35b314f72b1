"""The folder adapter is what its quality.toml says, by the suite that every vendor runs."""

from importlib import resources
from pathlib import Path

from tillbridge.adapter.conformance import conformance_tests, read_quality
from tillbridge.adapters.folder.rig import RIG

QUALITY = Path(str(resources.files("tillbridge.adapters.folder"))) / "quality.toml"

test_conformance = conformance_tests(RIG, read_quality(QUALITY))
