"""Sign-in while nothing runs yet: the merchant's consent, and the stores it opens."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from pydantic import SecretStr, TypeAdapter, ValidationError

from tillbridge.config import AssumptionSettings, Secret, SecretSource, origin_of
from tillbridge.config.secrets import resolve_secret
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import learn_secret
from tillbridge.daemon.setup_place import SetupPlace
from tillbridge.ledger.vault import StoredClientSecret
from tillbridge.service.link import App, ServiceLink, StoreLink
from tillbridge.service.types import Store
from tillbridge.setup.draft import Draft
from tillbridge.stores.callback import answer_callback
from tillbridge.stores.consent import ConsentDesk, ConsentRequest
from tillbridge.stores.signup_form import faults_of, missing, request_of
from tillbridge.stores.vaulted import VaultTokenStore
from tillbridge.web.ports import CallbackAnswer

ASSUMED = AssumptionSettings()


class SignIn:
    """One consent at a time, with the app and service of the answers so far."""

    def __init__(self, place: SetupPlace) -> None:
        self._place = place
        self._link: ServiceLink | None = None
        self._access: StoreLink | None = None
        self._desk: ConsentDesk | None = None
        self._of: tuple[str, ...] = ()

    def app(self, draft: Draft) -> App:
        """Return the app; its secret is read from the vault when it is sent."""
        secret = partial(self._secret, draft.base_url)
        return App(draft.client_id, secret, draft.redirect_uri, ASSUMED.scope_field)

    def has_secret(self, base_url: str) -> bool:
        """Whether the app's secret for this service is known: in the vault, or by the file."""
        try:
            return bool(self._secret(base_url))
        except ConfigError:
            return False

    def stored_secret(self) -> StoredClientSecret:
        """Return the app's secret in the vault, to be put back."""
        return StoredClientSecret.of(self._place.ledger.vault)

    def keep_secret(self, secret: str, base_url: str) -> None:
        """Put the app's secret for this service into the vault. Raises LedgerError."""
        learn_secret(secret)
        self.restore_secret(StoredClientSecret(secret, origin_of(base_url)))

    def restore_secret(self, stored: StoredClientSecret) -> None:
        """Put back what `stored_secret` returned. Raises LedgerError."""
        stored.put(self._place.ledger.vault)

    async def begin(self, draft: Draft, email: str) -> ConsentRequest:
        """Return the address for the merchant."""
        await self._open(draft)
        return self._consents().begin(draft.store, email=email or None)

    async def sign_up(self, draft: Draft, form: Mapping[str, str]) -> ConsentRequest:
        """Make a merchant and a store, and return the address to go on. Raises BridgeError."""
        if left_out := missing(form):
            raise ConfigError(
                _("A signup needs {fields}.").format(fields=", ".join(left_out)),
                fix=_("Fill them in."),
            )
        if faults := faults_of(form):
            raise ConfigError(f"{faults[0].field}: {faults[0].text}", fix=faults[0].fix)
        await self._open(draft)
        location = draft.location_id or draft.store
        return await self._consents().sign_up(
            draft.store, request_of(form, location_id=location, flow_type="")
        )

    async def returned(self, query: Mapping[str, str]) -> CallbackAnswer:
        """Take the merchant's return; the tokens are then in the vault."""
        if self._desk is None:
            return CallbackAnswer(
                ok=False,
                text=_("Nobody was asked to allow anything here."),
                fix=_("Begin on the page Set-up."),
            )
        told = await answer_callback(self._desk, query)
        if told.store is None:
            failure = told.failure or BridgeError(_("That did not work."))
            return CallbackAnswer(ok=False, text=failure.text, fix=_("Begin on the page Set-up."))
        draft = await self._place.draft()
        text = _("The merchant allows this bridge to work for them.")
        await self._place.keep(draft.passed("sign_in", text))
        return CallbackAnswer(ok=True, text=_("Thank you! Go on in the page Set-up."))

    async def stores(self, draft: Draft) -> list[Store]:
        """Return the merchant's stores. Raises BridgeError."""
        await self._open(draft)
        if self._access is None:  # for the type checker: `_open` has made it
            return []
        return await self._access.client.stores()

    def rename(self, before: str, now: str, base_url: str) -> None:
        """Let the tokens belong to the store's new local name. Raises LedgerError."""
        if before == now:
            return
        vault = self._place.ledger.vault
        tokens = VaultTokenStore(vault, before, base_url).load()
        if tokens is not None:
            VaultTokenStore(vault, now, base_url).save(tokens)
            vault.drop(f"{before}/tokens")
        self._of = ()

    async def close(self) -> None:
        """Let go of the service."""
        if self._link is not None:
            await self._link.close()
        self._link = self._access = self._desk = None
        self._of = ()

    async def _open(self, draft: Draft) -> None:
        """Use the service and app of the draft; a consent under way goes on where they stay."""
        of = (draft.base_url, draft.client_id, draft.redirect_uri, draft.store)
        if of == self._of:
            return
        with suppress(BridgeError):
            await self.close()
        place = self._place
        link = ServiceLink(draft.base_url, self.app(draft), clock=place.clock)
        access = link.store(VaultTokenStore(place.ledger.vault, draft.store, draft.base_url))
        keepers = {draft.store: access.tokens}
        self._link, self._access = link, access
        self._desk = ConsentDesk(link, keepers, place.ledger, clock=place.clock)
        self._of = of

    def _consents(self) -> ConsentDesk:
        if self._desk is None:
            raise BridgeError(_("There is nothing to sign in to yet."), fix=_("Begin anew."))
        return self._desk

    def _secret(self, base_url: str) -> str:
        """Return the app's secret, where it is for the service at `base_url`. Raises ConfigError.

        A secret that is stored here goes to no other address: whoever may type one on the page
        could have it sent to a machine of theirs.
        """
        _text, document = self._place.document()
        service = document.get("service", {})
        configured = origin_of(str(service.get("base_url") or base_url))
        stored = self.stored_secret()
        said = service.get("client_secret")
        origin = (stored.origin if stored.secret is not None else None) or configured
        if (stored.secret is None and said is None) or origin != origin_of(base_url):
            raise ConfigError(
                _("The app's secret for this service is not known here."),
                fix=_("Enter it under Sign-in."),
            )
        if stored.secret is not None:
            return stored.secret
        try:
            source = TypeAdapter[SecretStr | SecretSource](Secret).validate_python(said)
        except ValidationError:
            raise ConfigError(
                _("client_secret in the file is not right."), fix=_("Enter it under Sign-in.")
            ) from None
        found = resolve_secret(
            source, key="service.client_secret", base_dir=self._place.base_dir, kept=lambda: None
        )
        learn_secret(found.get_secret_value())
        return found.get_secret_value()
