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
        if self.cover_open:
            return _("The printer's cover is open: close it.")
        if self.paper_out:
            return _("The printer is out of paper: put in a new roll.")
        if self.error:
            return _("The printer reports {error}: switch it off and on, and look inside.").format(
                error=self.error
            )
        if self.offline:
            return _("The printer is offline: press its feed button, or switch it off and on.")
        return _("The printer's paper is nearly at its end.") if self.paper_low else ""
