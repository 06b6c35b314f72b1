"""What the status listener asks of the rest of the bridge; the daemon hands it in."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """What the merchant's browser shows after consent: whether it worked, and one sentence."""

    ok: bool
    text: str
    fix: str = ""


# Takes the query of a request to redirect_uri (code and state, or error).
OnCallback = Callable[[Mapping[str, str]], Awaitable[CallbackAnswer]]


class TablesControl(Protocol):
    """What commands ask about a store's tables; as `Control`."""

    async def list(self, store: str) -> Answer:
        """Return `tables` (as accepted, each with `qr_url` and `code`), `title`, `held`, `told`."""
        ...

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now, as `FloorPlan.to_json()`; pushes nothing."""
        ...

    async def push(self, store: str) -> Answer:
        """Push the floor plan whole, whether it has changed or not."""
        ...

    async def approve(self, store: str) -> Answer:
        """Release the floor plan that is held."""
        ...

    async def printed(self, store: str, codes: Mapping[str, str]) -> Answer:
        """Take note that these codes (as `list` names them, by external id) are printed."""
        ...


class Trail(Protocol):
    """Where what people do is written down; who it was is known from `acting_as`."""

    async def note(
        self, action: str, *, store: str = "", target: str = "", ok: bool = True, **detail: object
    ) -> None:
        """Add an entry. Never raises: what was done is done, and the log tells a failure."""
        ...


class AuditControl(Protocol):
    """What is asked about the audit trail."""

    async def list(self, limit: int, *, before: int | None = None) -> Answer:
        """Return `entries`, newest first, each with `id`, `at`, `who`, `action`, ...; `more`."""
        ...

    async def verify(self) -> Answer:
        """Return `ok`, `text`, `entries`, `head`, and `broken` {entry, text} where it breaks."""
        ...


class DiagnosticsControl(Protocol):
    """What is asked about the bridge's own health."""

    async def begin(self) -> Answer:
        """Begin to examine every link, or join who has begun; return `run`."""
        ...

    async def result(self, run: str) -> Answer:
        """Return the report so far: `ok`, `level`, `text`, `counts`, `results`, `took_ms`.

        `done` is false while links are still looked at; `running` names them. A result has `name`,
        `store`, `level` (ok, warning, failed, skipped), `text`, `fix`, `took_ms`, `details`.
        """
        ...

    async def latest(self) -> Answer:
        """Return the last examination: `began_at`, and `report` as `result`; None before any.

        Also `versions` of what runs here, by name.
        """
        ...

    async def logs(
        self,
        *,
        level: str = "",
        event: str = "",
        text: str = "",
        store: str = "",
        order: str = "",
        limit: int = 200,
    ) -> Answer:
        """Return the last `lines` of the log that fit, the newest first; whether any are `kept`.

        A line has `at`, `level`, `event` and fields of its own; `exception` is a traceback.
        """
        ...

    async def bundle(self) -> Answer:
        """Begin to put a support bundle together, or join who has begun."""
        ...

    async def bundle_state(self) -> Answer:
        """Return `state` (none, making, ready, failed).

        Once it is ready also `name`, `made_at`, `size` and `files`, each with `name`, `size` and
        its `first` lines; where it failed, why as `text`.
        """
        ...

    async def bundle_file(self) -> Answer:
        """Return the bundle that is ready: `name`, and the zip as `base64`."""
        ...

    async def reach(self) -> Answer:
        """Return how the internet may reach the receiver.

        `public_url`, `receiver`, `path`, `cautions`, `fits` and `ways`; a way has `name`, `title`,
        `text`, `cautions`, `steps`, `installed` and `running`.
        """
        ...


class FleetControl(Protocol):
    """What is asked about the reports of this bridge."""

    async def key(self) -> Answer:
        """Return `name`, as it stands in the reports, and the public `key` of their signatures."""
        ...


class OrdersControl(Protocol):
    """What is asked about orders, and done about one."""

    async def list(
        self, *, text: str = "", state: str = "", store: str = "", page: int = 1
    ) -> Answer:
        """Return `orders` of a page, newest first, as `order_part`; `count`, `page`, `pages`.

        `text` is part of an id, a number or a ticket's reference; `state` is one of
        `order_search.STATES`, "" for all. `unseen` counts new orders that nobody has looked at,
        and `sound` tells whether they are to be heard.
        """
        ...

    async def show(self, order_id: str) -> Answer:
        """Return an order whole: also `life`, `delivery`, `ordered`, `order` and `may`."""
        ...

    async def seen(self) -> Answer:
        """Take note that somebody has looked at the new orders."""
        ...

    async def retry(self, order_id: str) -> Answer:
        """Try at once what still has to be done for an order."""
        ...

    async def cancel(self, order_id: str, *, reason_code: str) -> Answer:
        """Cancel an order with a reason code."""
        ...

    async def done(self, order_id: str, *, how: str) -> Answer:
        """Leave an order to a person, who has `typed` it into the till or `settled` it."""
        ...


class ItemsControl(Protocol):
    """What the kitchen asks about items, and does about one."""

    async def off(self, store: str) -> Answer:
        """Return `items` that are off sale, the latest first, and `ends` in ms.

        An item has `external_id`, `name`, `variant`, `how` (staff, order, till), `by`, `since`,
        `until`, `reached_at`, `reached_ms` (how long it took to reach the storefront). `ends` are
        `opening_ms` (the store's next day) and `hour_ms`.
        """
        ...

    async def find(self, store: str, text: str, *, limit: int = 40, offset: int = 0) -> Answer:
        """Return `items` and variants whose name, initials or id fit, best first; `count`."""
        ...

    async def take_off(
        self, store: str, external_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale, whatever the POS says."""
        ...

    async def restore(self, store: str, external_id: str) -> Answer:
        """Lift the staff's word on an item: what the POS says counts again."""
        ...


class MenuControl(Protocol):
    """What is asked about a store's menu, and done about it."""

    async def show(self, store: str) -> Answer:
        """Return how it stands.

        `export` {items, read_at}, `accepted`, `pending`, `last_synced_at`, `hold` (None, or
        `since`, `reasons`, `counts`, `categories`, `approved`, `dismissed`), `refused` and
        `refused_count`.
        """
        ...

    async def items(
        self, store: str, *, text: str = "", page: int = 1, at_ms: int | None = None
    ) -> Answer:
        """Return `items` that the storefront has, or had at `at_ms`; `count`, `page`, `pages`."""
        ...

    async def history(self, store: str, *, before: int | None = None) -> Answer:
        """Return `pushes` before the one with that id, newest first; whether there are `more`."""
        ...

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now; pushes nothing.

        As `PlanReport.to_json()`, and `lines`: each change as a line for people.
        """
        ...

    async def push(self, store: str, *, full: bool) -> Answer:
        """Push now: what differs, or everything."""
        ...

    async def approve(self, store: str) -> Answer:
        """Release the plan that is held."""
        ...

    async def dismiss(self, store: str) -> Answer:
        """Leave the menu as it is: the plan that is held is not offered again."""
        ...


class CommunitiesControl(Protocol):
    """What commands ask about a community, by its name in the configuration; as `Control`."""

    async def items(self, community: str) -> Answer:
        """Return `items`: each with `available` (both sides) and `own`, this bridge's word."""
        ...

    async def availability(self, community: str) -> Answer:
        """Return `items` off sale by this bridge's word, `waiting` (untold), `last_told_at`.

        An item has `item_id`, `name`, `at`, `until`, `by` and `told_at`.
        """
        ...

    async def sync(self, community: str, *, full: bool) -> Answer:
        """Read the catalogue now: what has changed in it, or all of it."""
        ...

    async def item_86(
        self, community: str, item_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale in the community."""
        ...

    async def item_restore(self, community: str, item_id: str, *, by: str) -> Answer:
        """Let the community sell an item again."""
        ...

    async def orders(self, community: str, limit: int) -> Answer:
        """Return `orders`, newest first, each with its `children`."""
        ...

    async def hours(self, community: str) -> Answer:
        """Return `stores`, each with its `hours`, and `pushed_at`: the community has these."""
        ...

    async def push_hours(self, community: str) -> Answer:
        """Push the hours of every store, changed or not; the answer is that of `hours`."""
        ...

    async def webhook_test(self, community: str) -> Answer:
        """Let the service send a test delivery, and tell whether it arrived."""
        ...

    async def webhook_deliveries(self, community: str) -> Answer:
        """Return `deliveries`, the attempts that the service remembers."""
        ...

    async def webhook_remake(self, community: str) -> Answer:
        """Make a new subscription, with a new secret."""
        ...


class IntegrationControl(Protocol):
    """What commands ask about a store's integration; as `Control`. Nothing shows a secret."""

    async def show(self, store: str) -> Answer:
        """Return `service` (as it is there) and `configured`, each a mapping, and `plan`.

        Also `secret` ("known", "unknown" or "none"), `secret_since`, `old_secret_until`,
        `open_orders` (how many are not over) and `removed_since`.
        """
        ...

    async def plan(self, store: str) -> Answer:
        """Return what differs, as `IntegrationPlan.to_json()`; changes nothing."""
        ...

    async def apply(self, store: str) -> Answer:
        """Do what the plan says."""
        ...

    async def rotate_secret(self, store: str) -> Answer:
        """Get a new webhook secret."""
        ...

    async def remove(self, store: str) -> Answer:
        """Take the store off this bridge."""
        ...

    async def reintegrate(self, store: str) -> Answer:
        """Remove the integration and make it anew."""
        ...


class StoreControl(Protocol):
    """What commands ask about a store itself; as `Control`.

    A standing is `status` (active, inactive), `paused_by` (person, somebody else, bridge,
    schedule; None), `by`, `reason`, and `since` and `until` in ISO 8601.
    """

    async def show(self, store: str) -> Answer:
        """Return the standing, `next_change_at` of the schedule, `settings` and `tax`."""
        ...

    async def plan(self, store: str, *, full: bool) -> Answer:
        """Return what of the store's settings would be sent: `body`, `lines`, `unsaid`, `notes`."""
        ...

    async def push(self, store: str, *, full: bool) -> Answer:
        """Send the settings that differ, or all; return `sent` and `unsaid` too."""
        ...

    async def pause(self, store: str, *, by: str, reason: str, until_ms: int | None) -> Answer:
        """Close the store in a person's name; return its standing too."""
        ...

    async def resume(self, store: str, *, by: str) -> Answer:
        """Open the store in a person's name; return its standing too."""
        ...

    async def tax(self, store: str) -> Answer:
        """Read the service's taxes now; return `checked_at`, `differences` and `config`."""
        ...


class ProblemsControl(Protocol):
    """What is asked about problems; as `Control`."""

    async def list(self) -> Answer:
        """Return `problems` as the status document has them, the worst first, and `verdict`."""
        ...

    async def show(self, code: str) -> Answer:
        """Return a kind of problem: its words, `ends`, `docs`, and what is `open` of it."""
        ...

    async def acknowledge(self, code: str, *, store: str | None, by: str) -> Answer:
        """Stop the alerts about what is open of this code: everywhere, or in one store."""
        ...


class AlertsControl(Protocol):
    """What is asked about alerts; as `Control`."""

    async def test(self) -> Answer:
        """Send a test by every way; return `ways`, each with `way`, `ok`, `text` and `fix`."""
        ...


class SetupControl(Protocol):
    """What the page asks about setting the bridge up, step by step. Nothing shows a secret."""

    async def show(self, adapter: str = "") -> Answer:
        """Return how far it is, and what the forms hold; `adapter` is one that is looked at.

        `steps`, each with `name` (service, sign_in, store, adapter, address, order), `state`
        (done, open, shut), `text` and `fix`; `next`, the one to take now, "" for none. `running`:
        a bridge runs already; `restarting`: it begins anew; `writable`: this user may
        write the file; `refused` {text, fix}: what was
        written could not be started with, and the file is as it was. For the forms `service`,
        `sign_in`, `choice`, `till` (with `preview`), `address`, and `storefront`, where a
        guest orders at the practice service; `written` {lines, faults, digest}
        is what would be written.
        """
        ...

    async def service(self, base_url: str) -> Answer:
        """Test whether the ordering service answers there."""
        ...

    async def sign_in(self, client_id: str, client_secret: str) -> Answer:
        """Test the app's id and secret; an empty secret stays as it is."""
        ...

    async def allow(self, email: str) -> Answer:
        """Begin the merchant's consent; return the `url` to open."""
        ...

    async def sign_up(self, form: Mapping[str, str]) -> Answer:
        """Make a merchant and a store; return the `url` to open. The form is that of `signup`."""
        ...

    async def choose(self, store: str, *, store_id: str, location_id: str, currency: str) -> Answer:
        """Say which of the merchant's stores this is; `store` is its local name."""
        ...

    async def till(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Try an adapter with the options of a form."""
        ...

    async def orders(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Let another adapter write the orders."""
        ...

    async def address(self, listen: str, public_url: str, *, anyway: bool) -> Answer:
        """Test whether the public address leads here; `anyway` goes on where nobody can tell."""
        ...

    async def write(self, digest: str) -> Answer:
        """Write the difference of that digest into the file, and begin anew with it."""
        ...

    async def text(self) -> Answer:
        """Return `file`, the whole `text` as it would be, `lines`, `faults` and its `digest`.

        For commands alone: the file may hold secrets of others.
        """
        ...

    async def written(self, digest: str) -> Answer:
        """Take note that a command has written the text of that digest, and begin anew with it."""
        ...

    async def forget(self) -> Answer:
        """Forget what was said and is not written."""
        ...

    async def order(self) -> Answer:
        """Place an order at the practice service."""
        ...


class Control(Protocol):
    """What commands ask of a running bridge. JSON out; failures are `BridgeError`s.

    Instants are ms since the epoch. Each answer of an action holds `text`, one sentence for the
    person who asked, and `ok` (false: it was not done, and the command fails).
    """

    @property
    def tables(self) -> TablesControl:
        """What is asked about tables."""
        ...

    @property
    def store(self) -> StoreControl:
        """What is asked about a store itself."""
        ...

    @property
    def audit(self) -> AuditControl:
        """What is asked about the audit trail."""
        ...

    @property
    def diagnostics(self) -> DiagnosticsControl:
        """What is asked about the bridge's own health."""
        ...

    @property
    def orders(self) -> OrdersControl:
        """What is asked about orders."""
        ...

    @property
    def items(self) -> ItemsControl:
        """What is asked about items."""
        ...

    @property
    def menu(self) -> MenuControl:
        """What is asked about menus."""
        ...

    @property
    def communities(self) -> CommunitiesControl:
        """What is asked about communities."""
        ...

    @property
    def problems(self) -> ProblemsControl:
        """What is asked about problems."""
        ...

    @property
    def fleet(self) -> FleetControl:
        """What is asked about the reports of this bridge."""
        ...

    @property
    def alerts(self) -> AlertsControl:
        """What is asked about alerts."""
        ...

    @property
    def setup(self) -> SetupControl:
        """What is asked about setting the bridge up."""
        ...

    @property
    def integration(self) -> IntegrationControl:
        """What is asked about integrations."""
        ...

    async def status(self) -> Answer:
        """Return the status document."""
        ...

    async def measures(self) -> Answer:
        """Return what `/metrics` is made of: `status`, `pushes`, `ledger_bytes`, ..."""
        ...

    async def overview(self) -> Answer:
        """Return the status document with `chain`, `waiting` and `day` (see `overview`)."""
        ...

    async def connect(
        self, store: str, *, reintegrate: bool, store_id: str = "", email: str = ""
    ) -> Answer:
        """Begin to connect a store; return `url`, which the merchant opens, and `state`.

        `store_id` says which of the merchant's stores it is, `email` who the merchant is.
        """
        ...

    async def connect_choose(self, store: str, *, store_id: str, reintegrate: bool) -> Answer:
        """Go on with one of the stores that `connect_result` told as `choose`; answers as it."""
        ...

    async def signup(self, store: str, *, form: Mapping[str, str], flow_type: str) -> Answer:
        """Begin to sign a merchant up; as `connect`, and `as_login` where the merchant exists.

        `form` has the fields of `tillbridge signup`, by their options.
        """
        ...

    async def connect_result(self, state: str) -> Answer:
        """Return `done`; once it is true also `ok`, `text`, `fix` and `webhook_url`."""
        ...

    async def reporting_token(self, scope: str) -> Answer:
        """Return `access_token` for the reporting API, with `expires_at`, `audience`, `scope`.

        It is minted only where none is cached; `scope` is space-separated.
        """
        ...
