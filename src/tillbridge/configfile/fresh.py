"""A configuration that is not written yet: without stores there is nothing to run but the page.

`tillbridge run` then starts the set-up page alone; docs/setup.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.configfile.faults import ConfigFaults, Fault
from tillbridge.configfile.lines import key_lines
from tillbridge.configfile.loaded import LoadedSettings, load
from tillbridge.configfile.toml import data_dir_of, find_file, read_file

if TYPE_CHECKING:
    from tillbridge.config import BridgeSettings, StatusPageSettings


@dataclass(frozen=True, slots=True)
class FreshSettings:
    """What a file without stores says; `bridge.data_dir` is absolute."""

    bridge: "BridgeSettings"
    status_page: "StatusPageSettings"
    path: Path
    base_dir: Path

    @property
    def data_dir(self) -> Path:
        """The folder of the ledger, absolute."""
        return self.bridge.data_dir


def load_to_run(path: Path | None = None) -> LoadedSettings | FreshSettings:
    """Load what `tillbridge run` is given: a whole file, or one without stores yet.

    Raises ConfigError, as `load`; what is only missing because nothing is set up is no fault.
    """
    found = find_file(path)
    text, document = read_file(found)
    if not is_fresh(document):
        return load(found)
    from pydantic import ValidationError  # noqa: PLC0415 -- brings pydantic

    from tillbridge.config import (  # noqa: PLC0415 -- brings pydantic
        BridgeSettings,
        Settings,
        StatusPageSettings,
    )
    from tillbridge.configfile.rules import page_faults  # noqa: PLC0415 -- brings pydantic
    from tillbridge.configfile.translate import faults_of  # noqa: PLC0415 -- brings pydantic

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
    return FreshSettings(
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
