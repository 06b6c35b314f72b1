"""TLS: whose certificate is shown, is it trusted, how long, and does anybody open it on the way?"""

import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from tillbridge.core.i18n import _
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import (
    Finding,
    Role,
    Subject,
    detailed,
    failed,
    ok,
    skipped,
    warning,
)
from tillbridge.diagnostics.network import (
    Trust,
    connect,
    is_local_name,
    is_loopback,
    look_up,
    no_trust,
    port_of,
    trouble_of,
)

_DAY_MS = 86_400_000
_SOON_DAYS = 14

# Firewalls, virus scanners and proxies that sign what they open with a name of their own.
_OPENERS = re.compile(
    r"forti(?:gate|net)|sophos|zscaler|netskope|kaspersky|avast|\bavg\b|\beset\b|bitdefender|"
    r"palo ?alto|umbrella|watchguard|sonicwall|blue ?coat|symantec web|check ?point|barracuda|"
    r"untangle|arista edge|pfsense|opnsense|squid|mitmproxy|charles proxy|fiddler|burp|portswigger|"
    r"mcafee|skyhigh|norton|smoothwall|securly|forcepoint|websense|trend ?micro|f-secure|"
    r"dr\.? ?web|withsecure|cloudflare gateway|gateway ca|lightspeed|"
    r"iboss|contentkeeper|cyberoam|stormshield|"
    r"endian|clavister|gfi |web filter|ssl inspection|ssl proxy|deep inspection",
    re.IGNORECASE,
)
# Organisations that sign certificates of the public internet, as their certificates write them.
_PUBLIC = re.compile(
    r"let's encrypt|internet security research|digicert|geotrust|rapidssl|thawte|sectigo|comodo|"
    r"usertrust|zerossl|ssl\.com|ssl corporation|globalsign|google trust|amazon|microsoft|"
    r"cloudflare|godaddy|starfield|entrust|identrust|quovadis|swisssign|certum|asseco|buypass|"
    r"actalis|harica|hellenic academic|telia|d-trust|bundesdruckerei|deutsche telekom|t-systems|"
    r"trustwave|certigna|certsign|izenpe|firmaprofesional|camerfirma|e-szigno|microsec|netlock|"
    r"secom|cybertrust|japan registry|twca|taiwan-ca|chunghwa|wosign|trustasia|cfca|gdca|e-tugra|"
    r"emudhra|disig|network solutions|gandi|apple|atos|oiste|wisekey|certinomis|naver|telekom",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Handshake:
    """What was seen. `trusted` by this machine's store; `issuer` as organisation and name.

    `trouble` is why no handshake came about at all, `refusal` why the certificate is not trusted.
    """

    host: str
    scheme: str = "https"
    trouble: str = ""
    trusted: bool = False
    refusal: str = ""
    issuer: Sequence[str] = ()
    self_signed: bool = False
    from_ms: int = 0
    ends_ms: int = 0
    version: str = ""


async def check_tls(subject: Subject, role: Role) -> Finding:
    """Look at the certificate under base_url, or under public_url."""
    parts = subject.address(role)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return verdict(Handshake(host, "http"), role, subject.clock.now_ms())
    found = await in_thread(lambda: look_up(host, subject.names))
    if found.trouble:
        seen = Handshake(host, trouble=found.detail)
    else:
        at = found.addresses, port_of(parts)
        seen = await in_thread(lambda: handshake(host, *at, subject.trust))
    return verdict(seen, role, subject.clock.now_ms())


def handshake(
    host: str, addresses: tuple[str, ...], port: int, trust: Trust, timeout_s: float = 6.0
) -> Handshake:
    """Shake hands as calls to the service do; where that fails, only to see the certificate."""
    refusal = ""
    for context in (trust, no_trust):
        try:
            with connect(addresses, port, timeout_s) as line:
                line.settimeout(timeout_s)
                with context().wrap_socket(line, server_hostname=host) as secure:
                    return _seen(host, secure, refusal)
        except ssl.SSLError as failure:
            refusal = getattr(failure, "verify_message", "") or failure.reason or str(failure)
        except OSError as failure:
            return Handshake(host, trouble=failure.strerror or trouble_of(failure))
    return Handshake(host, trouble=refusal)


def _seen(host: str, secure: ssl.SSLSocket | socket.socket, refusal: str) -> Handshake:
    from cryptography import x509  # noqa: PLC0415 -- only where a certificate is looked at

    shown = secure.getpeercert(binary_form=True) if isinstance(secure, ssl.SSLSocket) else None
    if not shown:
        return Handshake(host, trouble="no certificate")
    certificate = x509.load_der_x509_certificate(shown)
    names = (x509.NameOID.ORGANIZATION_NAME, x509.NameOID.COMMON_NAME)
    issuer = [
        str(each.value) for oid in names for each in certificate.issuer.get_attributes_for_oid(oid)
    ]
    return Handshake(
        host,
        trusted=not refusal,
        refusal=refusal,
        issuer=issuer,
        self_signed=certificate.issuer == certificate.subject,
        from_ms=int(certificate.not_valid_before_utc.timestamp() * 1000),
        ends_ms=int(certificate.not_valid_after_utc.timestamp() * 1000),
        version=(secure.version() or "") if isinstance(secure, ssl.SSLSocket) else "",
    )


def verdict(seen: Handshake, role: Role, now_ms: int) -> Finding:
    """Return what a handshake means."""
    if seen.scheme == "http":
        return _plain(seen, role)
    if seen.trouble:
        text = _("No encrypted connection to {host} could be made ({detail}).")
        return failed(
            text.format(host=seen.host, detail=seen.trouble),
            _("Check the internet connection, the firewall, and the port in the address."),
        )
    product = _OPENERS.search(_issuer(seen))
    return detailed(
        _certificate(seen, role, now_ms, is_opened=product is not None),
        host=seen.host,
        issuer=list(seen.issuer),
        trusted=seen.trusted,
        self_signed=seen.self_signed,
        ends_ms=seen.ends_ms,
        version=seen.version,
        opened_by=product[0] if product else None,
    )


def _issuer(seen: Handshake) -> str:
    return ", ".join(seen.issuer) or _("an unnamed authority")


def _certificate(seen: Handshake, role: Role, now_ms: int, *, is_opened: bool) -> Finding:
    issuer = _issuer(seen)
    if is_opened:
        finding = warning if seen.trusted else failed
        text = _(
            "A firewall or virus scanner intercepts the connection to {host}: its certificate "
            "is signed by {issuer}."
        )
        return finding(text.format(host=seen.host, issuer=issuer), _exception(seen.host, role))
    if seen.trusted:
        return _trusted(seen, issuer, (seen.ends_ms - now_ms) // _DAY_MS)
    if seen.ends_ms < now_ms or seen.from_ms > now_ms:
        return failed(
            _("The certificate of {host} is not valid today.").format(host=seen.host),
            _("Check this machine's date and time. If they are right, renew the certificate."),
        )
    if role == "service" and not is_local_name(seen.host):
        return failed(
            _(
                "The certificate of {host} is not trusted ({detail}); it is signed by "
                "{issuer}. A firewall or virus scanner probably intercepts the connection."
            ).format(host=seen.host, detail=seen.refusal, issuer=issuer),
            _exception(seen.host, role),
        )
    text = _("The certificate of {host} is not trusted ({detail}); it is signed by {issuer}.")
    return failed(
        text.format(host=seen.host, detail=seen.refusal, issuer=issuer),
        _("Use a certificate of a public authority, or a tunnel with one: tillbridge reach")
        if role == "public"
        else _("Add the authority to this machine's store of trusted certificates."),
    )


def _trusted(seen: Handshake, issuer: str, days: int) -> Finding:
    if days < _SOON_DAYS:
        text = _("The certificate of {host} expires in {days} days.")
        fix = _("The operator of {host} has to renew it; usually that is automatic.")
        return warning(text.format(host=seen.host, days=days), fix.format(host=seen.host))
    if not _PUBLIC.search(issuer) and not is_local_name(seen.host):
        return warning(
            _(
                "The certificate of {host} is signed by {issuer}, not by a known public "
                "authority: a firewall or virus scanner may intercept the connection."
            ).format(host=seen.host, issuer=issuer),
            _(
                "If that is not intended, add an exception for {host} to the firewall or virus "
                "scanner."
            ).format(host=seen.host),
        )
    text = _("The certificate of {host} is valid for {days} days ({issuer}).")
    return ok(text.format(host=seen.host, issuer=issuer, days=days))


def _exception(host: str, role: Role) -> str:
    if role == "service":
        return _("Add an exception for {host} to the firewall or virus scanner.").format(host=host)
    return _(
        "It may look different from outside. Add an exception for {host} to the firewall or "
        "virus scanner, so that it can be checked from here."
    ).format(host=host)


def _plain(seen: Handshake, role: Role) -> Finding:
    if is_loopback(seen.host):
        return ok(
            _("{host} is this machine and needs no encryption.").format(host=seen.host), plain=True
        )
    if role == "public":
        return warning(
            _("public_url uses http: others on the way can read the orders."),
            _("Use a tunnel or proxy with https. For the steps: tillbridge reach"),
            plain=True,
        )
    return skipped(_("base_url uses http: the connection is not encrypted."), plain=True)
