"""The options of the process adapter: the keys of its table beside `adapter = "process"`."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tillbridge.adapter import AdapterOptions
from tillbridge.adapter.registration import FILE_ONLY
from tillbridge.pos.process.wire import Capability

Word = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class ProcessOptions(AdapterOptions):
    """Which program, where it runs, what it is told, and for how long it is waited for."""

    command: tuple[Word, ...] = Field(
        min_length=1,
        json_schema_extra={FILE_ONLY: True},
        description='The program and its arguments: command = ["dotnet", "MyTill.dll"]. No shell.',
    )
    cwd: Path = Field(
        Path(),
        json_schema_extra={FILE_ONLY: True},
        description="The folder it runs in; relative ones count from bridge.toml.",
    )
    env: tuple[Word, ...] = Field(
        (),
        json_schema_extra={FILE_ONLY: True},
        description=(
            "Names of environment variables that are handed on; of the others it gets only PATH, "
            "HOME, the language and the time zone."
        ),
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="What the program is told at its start; its own affair."
    )
    capabilities: tuple[Capability, ...] = Field(
        ("catalogue", "tickets", "health"),
        description=(
            "What to expect of a program that cannot say so itself when the bridge starts."
        ),
    )
    start_s: Seconds = Field(10, description="It must have said hello by then.")
    answer_s: Seconds = Field(
        10, description="It must have answered by then about orders and health, or it is ended."
    )
    read_s: Seconds = Field(60, description="The same for reading menus, availability and tables.")
    restart_cap_s: Seconds = Field(60, description="The longest wait before it is started again.")
    steady_s: Seconds = Field(60, description="After running so long it counts as well again.")
