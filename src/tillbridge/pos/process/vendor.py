"""A vendor's folder of an adapter that is a program: `process.toml`, and what lies beside it.

`process.toml` says `name`, `summary`, `command` and, for the checks, `rig`. README.md, sample.toml,
quality.toml and tests/cases/ are as with every adapter.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tillbridge.adapter import Adapter, AdapterContext
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.loader import first_fault
from tillbridge.pos.process.adapter import ProcessAdapter, ProcessOptions, Word
from tillbridge.pos.process.program_rig import ProcessRig

FILE = "process.toml"


class VendorFile(BaseModel):
    """What process.toml says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"[a-z][a-z0-9_]*")]
    summary: Word
    command: Annotated[tuple[Word, ...], Field(min_length=1)]
    rig: tuple[Word, ...] = ()


class VendorOptions(ProcessOptions):
    """The same options; without `command` it is the one in process.toml."""

    command: tuple[Word, ...] = Field((), description="As in process.toml.")


@dataclass(frozen=True, slots=True)
class VendorOpening:
    """Opens the adapter of a vendor's folder."""

    command: tuple[str, ...]
    folder: Path

    def __call__(self, options: VendorOptions, context: AdapterContext) -> ProcessAdapter:
        """Start the program. Raises ValueError where it cannot be, or refuses."""
        if not options.command:
            options = options.model_copy(update={"command": self.command, "cwd": self.folder})
        return ProcessAdapter(options, context)


@dataclass(frozen=True, slots=True)
class VendorFolder:
    """An adapter in a folder, with its rig if it has one."""

    adapter: Adapter
    rig: type[ProcessRig] | None


def vendor_folder(folder: Path) -> VendorFolder:
    """Read a folder with process.toml. Raises ConfigError."""
    home = folder.resolve()
    path = home / FILE
    try:
        table = tomllib.loads(path.read_text("utf-8"))
        if strange := sorted(table.keys() - VendorFile.model_fields.keys()):
            raise ConfigError(
                _("{path}: {key} is no key of it.").format(path=path, key=strange[0]),
                fix=_("It has name, summary, command and rig."),
            )
        content = VendorFile.model_validate(table)
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise ConfigError(f"{path}: {failure}", fix=_("Correct the file.")) from failure
    except ValidationError as failure:
        raise ConfigError(
            f"{path}: {first_fault(failure)}", fix=_("It has name, summary, command and rig.")
        ) from failure
    adapter = Adapter(
        name=content.name,
        summary=content.summary,
        options=VendorOptions,
        open=VendorOpening(content.command, home),
    )
    if not content.rig:
        return VendorFolder(adapter, None)
    members: dict[str, Any] = {"adapter": adapter, "command": content.rig, "home": home}
    return VendorFolder(adapter, type("VendorRig", (ProcessRig,), members))
