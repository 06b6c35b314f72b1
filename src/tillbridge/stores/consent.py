"""The merchant's consent, from the link shown to the tokens stored.

Specification: Authentication, rules 2 and 4. Each store has at most one consent in progress; its
state is valid once, for ten minutes, and compared in constant time.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from tillbridge.config.values import origin_of
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.vault import Vault
from tillbridge.service.client import ServiceLink
from tillbridge.service.oauth import (
    SignupAddress,
    SignupRequest,
    authorize_url,
    new_state,
    same_state,
)
from tillbridge.service.tokens import (
    Access,
    AppTokenStore,
    StoredToken,
    StoreTokens,
    TokenStore,
)
from tillbridge.service.types import Tokens, read

STATE_LIFETIME_S = 600.0
SIGNUP_LIFETIME_S = 3600.0

log = get_logger()


class ConsentRefused(BridgeError):
    """The redirect brought no consent: a foreign or old state, or the merchant refused."""


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """What is shown to the merchant; the URL contains the state.

    `as_login`: the merchant already exists, and signs in instead of signing up.
    """

    store: str
    url: str
    state: str = field(repr=False)
    as_login: bool = False


@dataclass(frozen=True, slots=True)
class _Pending:
    state: str
    until: float  # monotonic


class ConsentFlow:
    """Starts and finishes consents, both in the daemon and in `connect`."""

    def __init__(
        self,
        link: ServiceLink,
        tokens: Callable[[str], StoreTokens],
        ledger: Ledger,
        *,
        clock: Clock,
    ) -> None:
        self._link = link
        self._tokens = tokens
        self._ledger = ledger
        self._clock = clock
        self._pending: dict[str, _Pending] = {}
        # Begins each state: where several bridges share a ledger, it says whose it is.
        self.state_prefix = ""

    def begin(self, store: str, *, email: str | None = None) -> ConsentRequest:
        """Return the link for the merchant. An earlier link for the store becomes invalid."""
        state = self._open(store, STATE_LIFETIME_S)
        url = authorize_url(
            self._link.base_url,
            client_id=self._link.identity.client_id,
            redirect_uri=self._link.identity.redirect_uri,
            state=state,
            email=email,
        )
        return ConsentRequest(store, url, state)

    async def sign_up(self, store: str, wanted: SignupRequest) -> ConsentRequest:
        """Create a merchant at the service, and return the link to continue with.

        Filling in a form takes longer than a click, so the link is valid for an hour. Raises as
        `Signup.url`.
        """
        state = self._open(store, SIGNUP_LIFETIME_S)
        begun = await self._link.signup().url(wanted, state)
        log.info("signup.begun", store=store, as_login=begun.as_login)
        return ConsentRequest(store, begun.url, state, as_login=begun.as_login)

    def _open(self, store: str, lifetime_s: float) -> str:
        state = self.state_prefix + new_state()
        self._pending[store] = _Pending(state, self._clock.monotonic() + lifetime_s)
        return state

    async def returned(self, query: Mapping[str, str]) -> str:
        """Finish a consent with the query of the redirect; return the store that consented.

        Raises BridgeError, for whatever a stranger sent, too.
        """
        state, code = query.get("state", ""), query.get("code", "")
        if code:
            return await self.finish(code=code, state=state)
        raise self.decline(error=query.get("error", ""), state=state)

    async def finish(self, *, code: str, state: str) -> str:
        """Exchange the code, store the tokens, and return the store that consented.

        Raises ConsentRefused for a state that is not ours, ServiceError if the code is not
        accepted, LedgerUnwritable if the tokens cannot be stored.
        """
        store = self._redeem(state)
        tokens = await self._link.oauth.exchange(code)
        await self._tokens(store).adopt(tokens)
        await note_consent(self._ledger, store, tokens, at_ms=self._clock.now_ms())
        log.info("consent.given", store=store, expires_at=tokens.consent_expires_at_ms)
        return store

    def decline(self, *, error: str, state: str) -> ConsentRefused:
        """Return the failure for a redirect with an error; raise it for a foreign state."""
        store = self._redeem(state)
        log.info("consent.declined", store=store)
        text = (
            _("The sign-in was declined.")
            if error == "access_denied"
            else _("The ordering service did not ask for consent.")
        )
        return ConsentRefused(
            text, fix=_("Start again: tillbridge connect {store}").format(store=store)
        )

    def waits_for(self, request: ConsentRequest) -> bool:
        """Return whether the merchant can still use this request."""
        pending = self._pending.get(request.store)
        return (
            pending is not None
            and same_state(pending.state, request.state)
            and pending.until > self._clock.monotonic()
        )

    def _redeem(self, state: str) -> str:
        """Return the store whose consent has this state, once. Raises ConsentRefused."""
        now, found = self._clock.monotonic(), None
        for store, pending in self._pending.items():
            if same_state(pending.state, state):  # no early exit: all of them are compared
                found = store
        if found is None:
            raise ConsentRefused(
                _("This sign-in was not started here, or is finished already."),
                fix=_("Start again: tillbridge connect STORE"),
            )
        if self._pending.pop(found).until <= now:
            raise ConsentRefused(
                _("The sign-in took too long."),
                fix=_("Start again: tillbridge connect {store}").format(store=found),
            )
        return found


async def note_consent(ledger: Ledger, store: str, tokens: Tokens, *, at_ms: int) -> None:
    """Record for the status page until when the consent is valid."""
    fact = {"expires_at": tokens.consent_expires_at_ms, "obtained_at": tokens.consented_at_ms}
    try:
        await ledger.put_fact(store, "consent", fact, at=at_ms)
    except LedgerError:
        # The tokens are stored, and give the same answer at the next start.
        log.warning("consent.not_noted", store=store)


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """What the merchant's browser shows after consent: whether it worked, and one sentence.

    `to` is the path of the bridge's own page to continue with, "" if there is none.
    """

    ok: bool
    text: str
    fix: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class CallbackPlace:
    """Where the redirect arrives: an address on this machine."""

    host: str
    port: int
    path: str


def callback_place(redirect_uri: str) -> CallbackPlace:
    """Return where to listen for `redirect_uri`; BridgeError unless it is http on loopback."""
    parts = urlsplit(redirect_uri)
    host = parts.hostname or ""
    if parts.scheme != "http" or not _is_loopback(host):
        raise BridgeError(
            _("redirect_uri {uri} is not an address of this machine.").format(uri=redirect_uri),
            fix=_("Use http://127.0.0.1:PORT/oauth/callback, and register it with the service."),
        )
    return CallbackPlace(host, parts.port or 80, parts.path or "/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


# -- storing tokens


class VaultTokenStore(TokenStore):
    """Stores one store's tokens in the vault, under `{store}/tokens`, for one service.

    Tokens of another service are ignored: sending them here would disclose them.
    """

    def __init__(self, vault: Vault, store: str, base_url: str) -> None:
        super().__init__()
        self._vault = vault
        self._name = f"{store}/tokens"
        self._origin = origin_of(base_url)

    def load(self) -> Tokens | None:
        """Return the tokens; None if there are none for this service, or none readable."""
        stored = self._vault.get(self._name)
        if stored is None:
            return None
        try:
            record = json.loads(stored)
            # Versions before 0.2 did not store which service they belong to.
            origin = record.pop("origin", self._origin)
            return read(Tokens, record, "tokens.load") if origin == self._origin else None
        except (AttributeError, ValueError, Refused):
            return None

    def save(self, tokens: Tokens) -> None:
        """Store the tokens; on return they are on disk. Raises LedgerUnwritable."""
        self._vault.put(self._name, json.dumps({**asdict(tokens), "origin": self._origin}))


# As with facts, the bridge's own secrets are stored under the store "".
_APP_TOKENS = "/app_tokens"


@dataclass(frozen=True, slots=True)
class _AppTokens:
    """What is stored: which app and service, and the tokens by audience and scope."""

    owner: list[str] = field(default_factory=list)
    tokens: dict[str, StoredToken] = field(default_factory=dict)


class VaultAppTokens(AppTokenStore):
    """Stores the tokens of one app at one service: others would refuse them."""

    def __init__(self, vault: Vault, *, base_url: str, client_id: str) -> None:
        super().__init__()
        self._vault = vault
        self._owner = [base_url, client_id]
        self._lock = threading.Lock()

    def load(self, access: Access) -> StoredToken | None:
        """Return the stored token; None if there is none, or another version wrote it."""
        return self._stored().get(_key_of(access))

    def save(self, access: Access, token: StoredToken) -> None:
        """Store the token, and delete expired ones. Raises LedgerUnwritable."""
        with self._lock:
            before, now_ms = self._stored().items(), token.minted_at_ms
            tokens = {key: each for key, each in before if each.expires_at_ms > now_ms}
            stored = _AppTokens(self._owner, tokens | {_key_of(access): token})
            self._vault.put(_APP_TOKENS, json.dumps(asdict(stored)))

    def _stored(self) -> dict[str, StoredToken]:
        try:
            stored = TypeAdapter(_AppTokens).validate_json(self._vault.get(_APP_TOKENS) or "{}")
        except ValidationError:  # written by another version: costs one call for a new token
            return {}
        return stored.tokens if stored.owner == self._owner else {}


def _key_of(access: Access) -> str:
    return json.dumps([access.audience, access.scope])


# -- what a person enters to sign up, checked before anything is sent: each field is named after its
# option on the command line

_EMAIL = re.compile(r"[^@\s,;<>]+@[^@\s,;<>.]+(\.[^@\s,;<>.]+)+")
_PHONE = re.compile(r"\+[1-9]\d{6,14}")
_LOCALE = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|\d{3}))?", re.IGNORECASE)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class FormFault:
    """What is wrong with a field (an option's name), and what to enter instead."""

    field: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"--{self.field}: {self.text} {self.fix}"


@dataclass(frozen=True, slots=True)
class FormField:
    """A field: its option, its label, and whether it is required."""

    name: str
    question: str
    required: bool = False


FIELDS = (
    FormField("store-name", _("Name of the store, as guests know it"), required=True),
    FormField("email", _("E-mail that the owner will sign in with"), required=True),
    FormField("first-name", _("First name")),
    FormField("last-name", _("Last name")),
    FormField("phone", _("Business phone, with the country's code (+39 02 1234567)")),
    FormField("street", _("Street and number")),
    FormField("city", _("City")),
    FormField("state", _("State or province")),
    FormField("zip", _("Postal code")),
    FormField("country", _("Country")),
    FormField("locale", _("Language and region (en-US, it-IT)")),
)


def missing(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the required fields that are empty."""
    return tuple(
        each.name for each in FIELDS if each.required and not values.get(each.name, "").strip()
    )


def fault_of(name: str, value: str) -> FormFault | None:
    """Return what is wrong with a field; None if it is correct or empty."""
    text = " ".join(value.split())
    if not text:
        return None
    if len(text) > _LONGEST or not text.isprintable():
        return FormFault(
            name,
            _("is too long, or contains characters that are not allowed."),
            _("Write it on one line."),
        )
    if name == "email" and not _EMAIL.fullmatch(text):
        return FormFault(name, _("is not an e-mail address."), _("Write it as name@example.com."))
    if name == "phone" and not _PHONE.fullmatch(_digits(text)):
        return FormFault(
            name,
            _("is not a phone number in international format."),
            _("Begin with + and the country's code: +39 02 1234567."),
        )
    if name == "locale" and not _LOCALE.fullmatch(text.replace("_", "-")):
        return FormFault(name, _("is not a language and region."), _("Write for example en-US."))
    return None


def faults_of(values: Mapping[str, str]) -> tuple[FormFault, ...]:
    """Return everything that is wrong, in the order of the fields."""
    found = (fault_of(each.name, values.get(each.name, "")) for each in FIELDS)
    return tuple(fault for fault in found if fault is not None)


def refuse_missing(values: Mapping[str, str]) -> None:
    """Raise ConfigError, which names the options of a command that are needed and not given."""
    if left_out := missing(values):
        raise ConfigError(
            _("A signup needs {fields}.").format(
                fields=", ".join(f"--{name}" for name in left_out)
            ),
            fix=_("Give these options, or run it in a terminal, where it asks."),
        )


def request_of(values: Mapping[str, str], *, location_id: str, flow_type: str) -> SignupRequest:
    """Return the request for a form without faults."""

    def value(name: str) -> str:
        return " ".join(values.get(name, "").split())

    return SignupRequest(
        email=value("email"),
        store_name=value("store-name"),
        location_id=location_id,
        first_name=value("first-name"),
        last_name=value("last-name"),
        business_phone=_digits(value("phone")),
        address=SignupAddress(
            street_address=value("street"),
            city=value("city"),
            state=value("state"),
            country=value("country"),
            zip=value("zip"),
        ),
        locale=_locale(value("locale")),
        flow_type=flow_type,
    )


def _digits(phone: str) -> str:
    """Return a phone number without the separators between its digits."""
    bare = re.sub(r"[\s().\-/]", "", phone)
    return f"+{bare[2:]}" if bare.startswith("00") else bare


def _locale(text: str) -> str:
    found = _LOCALE.fullmatch(text.replace("_", "-"))
    if found is None:
        return ""
    language, script, region = found.groups()
    parts = (language.lower(), script.title() if script else "", (region or "").upper())
    return "-".join(part for part in parts if part)
