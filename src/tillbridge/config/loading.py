"""Finds, reads and validates `bridge.toml`; a file without stores is one that is not set up yet."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from tillbridge.config.bridge import BridgeSettings, StatusPageSettings
from tillbridge.config.faults import ConfigFaults, Fault
from tillbridge.config.lines import Path as KeyPath
from tillbridge.config.lines import key_lines
from tillbridge.config.rules import contradictions, page_faults
from tillbridge.config.secrets import Kept, resolve_secret
from tillbridge.config.settings import Settings
from tillbridge.config.toml import read_file
from tillbridge.config.translate import faults_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.own_files import claim_folder

SEARCHED = (Path("bridge.toml"), Path("/etc/tillbridge/bridge.toml"))
DEFAULT_DATA_DIR = Path("/var/lib/tillbridge")
DATA_DIR_VARIABLE = "TILLBRIDGE_DATA_DIR"


def find_file(path: Path | None = None) -> Path:
    """Return the configuration file: `path`, or the first that exists of those searched.

    Raises ConfigError where there is none.
    """
    if path is not None:
        if not path.is_file():
            raise ConfigError(
                _("There is no configuration file {path}.").format(path=path),
                fix=_("Check what --config names."),
            )
        return path
    for candidate in SEARCHED:
        if candidate.is_file():
            return candidate
    raise ConfigError(
        _("There is no configuration file: looked for {places}.").format(
            places=", ".join(str(candidate) for candidate in SEARCHED)
        ),
        fix=_(
            "Name it with --config FILE, or begin with the sample config/bridge.toml, or with an "
            "empty file and the page Set-up (docs/setup.md)."
        ),
    )


def data_dir_of(path: Path, document: Mapping[str, Any]) -> Path:
    """Return the absolute data folder a file means; TILLBRIDGE_DATA_DIR overrides it.

    A relative one counts from the file's folder, that of the variable from the current folder.
    """
    if override := os.environ.get(DATA_DIR_VARIABLE):
        return Path(override).expanduser().absolute()
    bridge = document.get("bridge")
    named = bridge.get("data_dir") if isinstance(bridge, dict) else None
    folder = Path(named) if isinstance(named, str) else DEFAULT_DATA_DIR
    return path.absolute().parent / folder.expanduser()


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings of a file. `bridge.data_dir` is absolute; other paths count from `base_dir`."""

    settings: Settings
    path: Path
    base_dir: Path
    lines: Mapping[KeyPath, int] = field(default_factory=dict, repr=False)

    @property
    def bridge(self) -> BridgeSettings:
        """The table [bridge]."""
        return self.settings.bridge

    @property
    def data_dir(self) -> Path:
        """The folder of the ledger, absolute."""
        return self.settings.bridge.data_dir

    def client_secret(self, kept: Kept | None = None) -> SecretStr:
        """Return the app's secret, read now; `kept` looks into the vault.

        Raises ConfigError where it cannot be had.
        """
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
    lines = key_lines(text)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        faults = [fault.placed(lines) for fault in faults_of(error, document)]
        raise ConfigFaults(str(path), faults) from None
    if faults := [fault.placed(lines) for fault in contradictions(settings)]:
        raise ConfigFaults(str(path), faults)
    bridge = settings.bridge.model_copy(update={"data_dir": data_dir_of(path, document)})
    claim_folder(bridge.data_dir)
    return LoadedSettings(
        settings=settings.model_copy(update={"bridge": bridge}),
        path=path.absolute(),
        base_dir=path.absolute().parent,
        lines=lines,
    )


@dataclass(frozen=True, slots=True)
class UnconfiguredSettings:
    """What a file without stores says; `bridge.data_dir` is absolute."""

    bridge: BridgeSettings
    status_page: StatusPageSettings
    path: Path
    base_dir: Path

    @property
    def data_dir(self) -> Path:
        """The folder of the ledger, absolute."""
        return self.bridge.data_dir


def load_to_run(path: Path | None = None) -> LoadedSettings | UnconfiguredSettings:
    """Load what `tillbridge run` is given: a whole file, or one without stores yet.

    Raises ConfigError, as `load`; what is only missing because nothing is set up is no fault.
    """
    found = find_file(path)
    text, document = read_file(found)
    if not is_fresh(document):
        return load(found)

    lines = key_lines(text)
    faults: list[Fault] = []
    try:
        Settings.model_validate(document)
    except ValidationError as error:
        faults = [each for each in faults_of(error, document) if not _is_to_come(each, document)]
    if faults:
        raise ConfigFaults(str(found), [fault.placed(lines) for fault in faults])
    page = StatusPageSettings.model_validate(document.get("status_page", {}))
    if faults := list(page_faults(page)):
        raise ConfigFaults(str(found), [fault.placed(lines) for fault in faults])
    bridge = BridgeSettings.model_validate(document.get("bridge", {}))
    return UnconfiguredSettings(
        bridge.model_copy(update={"data_dir": data_dir_of(found, document)}),
        page,
        found.absolute(),
        found.absolute().parent,
    )


def is_fresh(document: Mapping[str, Any]) -> bool:
    """Whether a file has neither stores nor communities."""
    return not document.get("stores") and not document.get("communities")


def _is_to_come(fault: Fault, document: Mapping[str, Any]) -> bool:
    """Whether a fault is only that something is not set up yet."""
    if fault.path == ("stores",):
        return document.get("stores") in (None, {})
    if not fault.path or fault.path[0] not in {"service", "receiver"}:
        return False
    value: Any = document
    for part in fault.path:
        if not isinstance(value, Mapping) or part not in value:
            return True
        value = value[part]
    return False
