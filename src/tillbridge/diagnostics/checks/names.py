"""DNS: do the service's name and ours lead anywhere?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from tillbridge.core.i18n import _
from tillbridge.diagnostics.addresses import any_public, is_literal, is_local_name, is_public
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.line import Trouble, look_up
from tillbridge.diagnostics.result import Finding, failed, ok, warning
from tillbridge.diagnostics.subject import Subject

Role = Literal["service", "public"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a look-up gave."""

    host: str
    addresses: Sequence[str]
    trouble: Trouble = ""
    detail: str = ""


async def check_names(subject: Subject, role: Role) -> Finding:
    """Look up the host of base_url, or of public_url."""
    settings = subject.settings
    url = settings.service.base_url if role == "service" else settings.receiver.public_url
    host = urlsplit(url).hostname or ""
    addresses, trouble, detail = await apart(lambda: look_up(host, subject.names))
    return verdict(Lookup(host, addresses, trouble, detail), role)


def verdict(found: Lookup, role: Role) -> Finding:
    """Return what a look-up means."""
    host, setting = found.host, "base_url" if role == "service" else "public_url"
    details = {"host": host, "addresses": list(found.addresses)}
    if found.trouble == "no_name":
        return failed(
            _("The name {host} is not known in the DNS ({detail}).").format(
                host=host, detail=found.detail
            ),
            _("Check the spelling of {setting}, and the name's entry at its provider.").format(
                setting=setting
            ),
            **details,
        )
    if found.trouble:
        return failed(
            _("The name {host} cannot be looked up: no DNS server answers ({detail}).").format(
                host=host, detail=found.detail
            ),
            _("Check the internet connection, and the DNS servers this machine asks."),
            **details,
        )
    if is_literal(host):
        return ok(_("{host} is an address; nothing has to be looked up.").format(host=host))
    shown = ", ".join(found.addresses[:4])
    if not any_public(found.addresses) and not is_local_name(host):
        text = _("{host} is {addresses} here: an address of this network (split DNS).").format(
            host=host, addresses=shown
        )
        if role == "service":
            fix = _("If that is not meant, something answers in the service's stead: check the DNS")
            return warning(text, f"{fix}.", **details)
        return warning(
            text,
            _(
                "From here the way of the internet cannot be seen. Check from outside that the "
                "name has its public address there."
            ),
            **details,
        )
    mixed = any(not is_public(each) for each in found.addresses) and any_public(found.addresses)
    return ok(
        _("{host} is {addresses}.").format(host=host, addresses=shown), **details, mixed=mixed
    )
