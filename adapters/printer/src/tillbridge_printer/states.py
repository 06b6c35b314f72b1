"""How a printer is, whatever language it says it in."""

from dataclasses import dataclass

from tillbridge.adapter.texts import _


@dataclass(frozen=True, slots=True)
class PrinterState:
    """What a printer tells of itself. `error` is what else is wrong, in words."""

    offline: bool = False
    paper_out: bool = False
    paper_low: bool = False
    cover_open: bool = False
    error: str = ""

    @property
    def prints(self) -> bool:
        """Whether a ticket sent now would come out."""
        return not (self.offline or self.paper_out or self.cover_open or self.error)

    @property
    def text(self) -> str:
        """What a person is told: why it does not print, or that it soon will not; else ""."""
        return self._advice[0]

    @property
    def fix(self) -> str:
        """What to do about it, "" for nothing."""
        return self._advice[1]

    @property
    def _advice(self) -> tuple[str, str]:
        if self.cover_open:
            return _("The printer's cover is open."), _("Close the printer's cover.")
        if self.paper_out:
            return _("The printer is out of paper."), _("Put a new roll into the printer.")
        if self.error:
            return (
                _("The printer reports {error}.").format(error=self.error),
                _("Switch the printer off and on, and look inside."),
            )
        if self.offline:
            return (
                _("The printer is offline."),
                _("Press the printer's feed button, or switch it off and on."),
            )
        return (_("The printer's paper is nearly at its end."), "") if self.paper_low else ("", "")
