"""A configuration file, loaded: its settings, where it stands, and the secrets it points at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.configfile.faults import ConfigFaults
from tillbridge.configfile.lines import Path as KeyPath
from tillbridge.configfile.lines import key_lines
from tillbridge.configfile.toml import data_dir_of, find_file, read_file

if TYPE_CHECKING:
    from pydantic import SecretStr

    from tillbridge.config import BridgeSettings, Settings
    from tillbridge.configfile.secrets import Kept


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings of a file. `bridge.data_dir` is absolute; other paths count from `base_dir`."""

    settings: "Settings"
    path: Path
    base_dir: Path
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    @property
    def bridge(self) -> "BridgeSettings":
        """The table [bridge]."""
        return self.settings.bridge

    @property
    def data_dir(self) -> Path:
        """The folder of the ledger, absolute."""
        return self.settings.bridge.data_dir

    def client_secret(self, kept: "Kept | None" = None) -> "SecretStr":
        """Return the app's secret, read now; `kept` looks into the vault.

        Raises ConfigError where it cannot be had.
        """
        from tillbridge.configfile.secrets import (  # noqa: PLC0415 -- brings pydantic
            resolve_secret,
        )

        return resolve_secret(
            self.settings.service.client_secret,
            key="service.client_secret",
            base_dir=self.base_dir,
            kept=kept,
        )

    def line_of(self, *path: str | int) -> int:
        """Return the line of a key, or of the nearest table around it; 0 where none is written."""
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return line
        return 0


def load(path: Path | None = None) -> LoadedSettings:
    """Load `path`, or the first file of the search order.

    Raises ConfigError: all that is wrong with the file at once, each with its line and remedy.
    """
    found = find_file(path)
    text, document = read_file(found)
    return loaded_from(found, text, document)


def loaded_from(path: Path, text: str, document: Mapping[str, Any]) -> LoadedSettings:
    """Return what a text says, as if it stood in the file `path`. Raises ConfigError, as `load`."""
    from pydantic import ValidationError  # noqa: PLC0415 -- brings pydantic

    from tillbridge.config import Settings  # noqa: PLC0415 -- brings pydantic
    from tillbridge.configfile.rules import contradictions  # noqa: PLC0415 -- brings pydantic
    from tillbridge.configfile.translate import faults_of  # noqa: PLC0415 -- brings pydantic

    lines = key_lines(text)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        faults = [fault.placed(lines) for fault in faults_of(error, document)]
        raise ConfigFaults(str(path), faults) from None
    if faults := [fault.placed(lines) for fault in contradictions(settings)]:
        raise ConfigFaults(str(path), faults)
    bridge = settings.bridge.model_copy(update={"data_dir": data_dir_of(path, document)})
    return LoadedSettings(
        settings=settings.model_copy(update={"bridge": bridge}),
        path=path.absolute(),
        base_dir=path.absolute().parent,
        lines=lines,
    )
