"""What is wrong with a configuration file, and the error that tells all of it at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tillbridge.config.lines import Path, dotted
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, ngettext


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where (an empty path is the file), words, remedy, line (0: none)."""

    path: Path
    text: str
    fix: str
    line: int = 0

    @property
    def key(self) -> str:
        """The dotted key, as it is written in the file."""
        return dotted(self.path)

    def placed(self, lines: Mapping[Path, int]) -> "Fault":
        """Return the fault with its line, or that of the table it is missing from."""
        for length in range(len(self.path), 0, -1):
            if line := lines.get(self.path[:length]):
                return replace(self, line=line)
        return self

    def told(self, file: str) -> str:
        """Return the fault as one line for a person."""
        place = f"{file}, line {self.line}: " if self.line else f"{file}: "
        subject = f"{self.key} " if self.key else ""
        return f"{place}{subject}{self.text} {self.fix}".strip()


class ConfigFaults(ConfigError):
    """Everything that is wrong with a configuration file; `faults` in the order of their lines."""

    def __init__(self, file: str, faults: Iterable[Fault]) -> None:
        self.file = file
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.line, fault.key)))
        told = [fault.told(file) for fault in self.faults]
        if len(told) > 1:
            count = len(told)
            head = ngettext("{count} thing is wrong", "{count} things are wrong", count)
            told = [head.format(count=count) + ":", *(f"  {line}" for line in told)]
        super().__init__(
            "\n".join(told), fix=_("Mend them and try again.") if len(told) > 1 else ""
        )
