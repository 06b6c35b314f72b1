"""What the tables [alerts] and [alerts.*] must not say. Pure."""

from collections.abc import Iterator
from itertools import pairwise

from tillbridge.config import EmailSettings, Settings, is_loopback
from tillbridge.configfile.faults import Fault
from tillbridge.core.i18n import _


def alert_faults(settings: Settings) -> Iterator[Fault]:
    """Return a fault for each setting of alerts that another one contradicts."""
    alerts = settings.alerts
    for place, store in enumerate(alerts.stores):
        if store not in settings.stores:
            yield Fault(
                ("alerts", "stores", place),
                _("is no store of this file."),
                _("There are: {names}.").format(names=", ".join(settings.stores)),
            )
    if any(later <= earlier for earlier, later in pairwise(alerts.repeat_min)):
        yield Fault(
            ("alerts", "repeat_min"),
            _("must rise from one to the next."),
            _("Write for example [0, 5, 10]."),
        )
    if alerts.email is not None:
        yield from _email(alerts.email)


def _email(email: EmailSettings) -> Iterator[Fault]:
    if email.tls == "none" and not is_loopback(email.host):
        yield Fault(
            ("alerts", "email", "tls"),
            _('is "none": passwords and alerts could be read on the way.'),
            _('Use "starttls" (port 587) or "tls" (port 465), or a mail server on this machine.'),
        )
    if (email.username is None) != (email.password is None):
        missing = "password" if email.password is None else "username"
        yield Fault(
            ("alerts", "email", missing),
            _("is missing: username and password go together."),
            _("Name both, or none where the mail server asks for none."),
        )
