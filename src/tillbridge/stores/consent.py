"""The merchant's consent, from the link that is shown to the tokens that are kept.

Specification: Authentication, rules 2 and 4. One consent is in flight per store; its state is good
once and for ten minutes, and compared in constant time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.service.link import ServiceLink
from tillbridge.service.oauth import authorize_url, new_state, same_state
from tillbridge.service.tokens import TokenKeeper
from tillbridge.service.types import Tokens

if TYPE_CHECKING:
    from tillbridge.service.signup import SignupRequest

STATE_LIFETIME_S = 600.0
SIGNUP_LIFETIME_S = 3600.0

log = get_logger()


class ConsentRefused(BridgeError):
    """The redirect brought no consent: a foreign or old state, or the merchant said no."""


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """What is shown to the merchant; the URL holds the state.

    `as_login`: the merchant exists already, and signs in instead of signing up.
    """

    store: str
    url: str
    state: str = field(repr=False)
    as_login: bool = False


@dataclass(frozen=True, slots=True)
class _Pending:
    state: str
    until: float  # monotonic


class ConsentDesk:
    """Begins and finishes consents, in the daemon and in `connect` alike."""

    def __init__(
        self, link: ServiceLink, keepers: Mapping[str, TokenKeeper], ledger: Ledger, *, clock: Clock
    ) -> None:
        self._link = link
        self._keepers = keepers
        self._ledger = ledger
        self._clock = clock
        self._pending: dict[str, _Pending] = {}

    def begin(self, store: str, *, email: str | None = None) -> ConsentRequest:
        """Return the link for the merchant. An earlier one for the store is void from now on."""
        state = self._open(store, STATE_LIFETIME_S)
        url = authorize_url(
            self._link.base_url,
            client_id=self._link.identity.client_id,
            redirect_uri=self._link.identity.redirect_uri,
            state=state,
            email=email,
        )
        return ConsentRequest(store, url, state)

    async def sign_up(self, store: str, wanted: "SignupRequest") -> ConsentRequest:
        """Provision a merchant at the service, and return the link on which they go on.

        Filling in a form takes longer than a click: the link is good for an hour. Raises as
        `Signup.url`.
        """
        state = self._open(store, SIGNUP_LIFETIME_S)
        told = await self._link.signup().url(wanted, state)
        log.info("signup.begun", store=store, as_login=told.as_login)
        return ConsentRequest(store, told.url, state, as_login=told.as_login)

    def _open(self, store: str, lifetime_s: float) -> str:
        state = new_state()
        self._pending[store] = _Pending(state, self._clock.monotonic() + lifetime_s)
        return state

    async def finish(self, *, code: str, state: str) -> str:
        """Exchange the code, keep the tokens, and return the store that consented.

        Raises ConsentRefused for a state that is not ours, ServiceError where the code is not
        taken, LedgerUnwritable where the tokens cannot be kept.
        """
        store = self._take(state)
        tokens = await self._link.oauth.exchange(code)
        await self._keepers[store].adopt(tokens)
        await note_consent(self._ledger, store, tokens, at_ms=self._clock.now_ms())
        log.info("consent.given", store=store, expires_at=tokens.consent_expires_at_ms)
        return store

    def decline(self, *, error: str, state: str) -> ConsentRefused:
        """Return what to tell when the redirect brought an error; raises it for a foreign state."""
        store = self._take(state)
        log.info("consent.declined", store=store)
        said = (
            _("The merchant did not consent.")
            if error == "access_denied"
            else _("The ordering service did not ask the merchant for consent.")
        )
        return ConsentRefused(
            said, fix=_("Begin again: tillbridge connect {store}").format(store=store)
        )

    def awaits(self, state: str) -> bool:
        """Whether a consent with this state is under way."""
        return self._store_of(state) is not None

    def _store_of(self, state: str) -> str | None:
        found = None
        for store, pending in self._pending.items():
            if same_state(pending.state, state):  # no early end: each is compared
                found = store
        return found

    def _take(self, state: str) -> str:
        now = self._clock.monotonic()
        found = self._store_of(state)
        if found is None:
            raise ConsentRefused(
                _("This answer belongs to no consent that is under way here."),
                fix=_("Begin again with: tillbridge connect STORE"),
            )
        if self._pending.pop(found).until <= now:
            raise ConsentRefused(
                _("The consent took too long."),
                fix=_("Begin again: tillbridge connect {store}").format(store=found),
            )
        return found


async def note_consent(ledger: Ledger, store: str, tokens: Tokens, *, at_ms: int) -> None:
    """Write down for the status page until when the consent lasts."""
    fact = {"expires_at": tokens.consent_expires_at_ms, "obtained_at": tokens.consented_at_ms}
    try:
        await ledger.write(lambda db: put_fact(db, store, "consent", fact, at=at_ms))
    except LedgerError:
        # The tokens are kept, and they tell the same at the next start.
        log.warning("consent.not_noted", store=store)
