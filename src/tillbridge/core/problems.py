"""The registry of problems: every state a person has to know of, with a stable code.

Problems follow from state: whoever changes a state reports what is `Found` in a `Scope`, and what
is open there and not found any more is closed (`ledger.problems.report` in the transaction that
changes the state, `ProblemTracker.report` for state that is in memory only). The texts come from
here; `docs/problems.md` explains each, and a test holds the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tillbridge.core.i18n import _


class Severity(StrEnum):
    """How bad a problem is: `down` stops orders or sync, `warning` needs a person soon."""

    DOWN = "down"
    WARNING = "warning"


class Ends(StrEnum):
    """When a problem is over."""

    CAUSE = "cause"  # its finder sees that the cause is gone
    DAY = "day"  # somebody has taken note of it; it goes after a day in any case
    HANDLED = "handled"  # somebody has seen to the order, and says so
    SETTLED = "settled"  # the order it is about is accepted, cancelled, completed or handled
    NOTE = "note"  # it has happened, and is over once somebody has taken note of it


_ENDS = {
    Ends.CAUSE: _("by itself, when its cause is gone."),
    Ends.DAY: _(
        "when somebody acknowledges it: tillbridge problems ack {code}; by itself after a day at "
        "the latest."
    ),
    Ends.HANDLED: _("when somebody has seen to the order and says so: tillbridge orders done"),
    Ends.SETTLED: _(
        "when the order is settled: the service takes the call after all, the order is cancelled "
        "or completed, or somebody has seen to it and says so: tillbridge orders done"
    ),
    Ends.NOTE: _("when somebody acknowledges it: tillbridge problems ack {code}"),
}


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem. `text` and `fix` may hold `{field}`s that the finder of it fills in."""

    code: str
    severity: Severity
    text: str
    fix: str
    ends: Ends = Ends.CAUSE
    one: str = ""  # the text where `count` or `days` is 1
    defaults: Mapping[str, str] = field(default_factory=dict)  # of fields that were not filled in

    @property
    def ends_when_seen(self) -> bool:
        """Whether it is over once somebody has acknowledged it."""
        return self.ends in {Ends.DAY, Ends.NOTE}

    @property
    def end(self) -> str:
        """When it ends, in words."""
        return _ENDS[self.ends].format(code=self.code)


@dataclass(frozen=True, slots=True)
class Found:
    """A problem that follows from the state as it is now.

    `subject` tells two of a kind apart; `detail` fills the fields of the kind's texts, and holds
    plain JSON values.
    """

    code: str
    subject: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one report answers for: these codes of one store ("": the bridge itself).

    With a `subject` it answers for that subject alone, with None for all of them.
    """

    store: str
    codes: frozenset[str]
    subject: str | None = None

    def covers(self, code: str, store: str, subject: str) -> bool:
        """Return whether a report of this scope says whether that problem is open."""
        return store == self.store and code in self.codes and self.subject in {None, subject}


_KINDS = (
    # -- the link to the service
    ProblemKind(
        "service.unreachable",
        Severity.WARNING,
        _("The ordering service cannot be reached."),
        _("{remedy} Orders that arrive are still written; the rest is told later."),
        defaults={"remedy": _("Check the internet connection.")},
    ),
    ProblemKind(
        "service.refused",
        Severity.WARNING,
        _("The ordering service refused the call {operation} for order {order}: {detail}"),
        _(
            "Settle what the message names, then try it again: tillbridge orders retry "
            "{id}; or cancel the order: tillbridge orders cancel {id} --reason "
            "OTHER; or see to it yourself and say so: tillbridge orders done {id}"
        ),
        Ends.SETTLED,
    ),
    ProblemKind(
        "service.bad_client",
        Severity.DOWN,
        _("The ordering service does not accept this app's client id and secret."),
        _(
            "Put the current client_secret from the service's console in place and "
            "restart the bridge."
        ),
    ),
    ProblemKind(
        "service.token_refused",
        Severity.WARNING,
        _("The ordering service refuses this bridge's access token, a fresh one too."),
        _(
            "Check that base_url and client_id are of the same environment; if it stays, consent "
            "again: tillbridge connect {store}"
        ),
    ),
    ProblemKind(
        "consent.missing",
        Severity.DOWN,
        _("The merchant has not yet allowed this bridge to work for the store."),
        _("Run: tillbridge connect {store}"),
    ),
    ProblemKind(
        "consent.expired",
        Severity.DOWN,
        _("The merchant's consent has ended (it lasts 7 days)."),
        _("Ask the merchant to consent again: tillbridge connect {store}"),
    ),
    ProblemKind(
        "consent.revoked",
        Severity.DOWN,
        _("The merchant has withdrawn the consent, or uninstalled the app."),
        _("Ask the merchant why, then consent again: tillbridge connect {store}"),
    ),
    ProblemKind(
        "consent.ending",
        Severity.WARNING,
        _("The merchant's consent ends in {left}."),
        _("Ask the merchant to consent again before then: tillbridge connect {store}"),
    ),
    ProblemKind(
        "integration.missing",
        Severity.DOWN,
        _("The store is not integrated with this bridge, so no orders can arrive."),
        _(
            "Find out who removed the integration, then make it anew: "
            "tillbridge integration reintegrate {store}"
        ),
    ),
    ProblemKind(
        "integration.disabled",
        Severity.DOWN,
        _("The ordering service has disabled the store's integration, so no orders can arrive."),
        _(
            "If the merchant uninstalled the app, the merchant must allow it again: tillbridge "
            "connect {store}. If not, ask the ordering service why it suspends the store; the "
            "bridge goes on by itself once it is active."
        ),
    ),
    ProblemKind(
        "integration.pending",
        Severity.DOWN,
        _("The ordering service has not yet made the store's integration active."),
        _("Wait; if it stays so, ask the ordering service. The bridge goes on by itself."),
    ),
    ProblemKind(
        "integration.removed",
        Severity.WARNING,
        _("The store was taken off this bridge: no orders arrive, and nothing is pushed."),
        _("Bring it back with: tillbridge connect {store}; or take it out of the configuration."),
    ),
    ProblemKind(
        "integration.secret_missing",
        Severity.DOWN,
        _("The store is integrated, but this bridge does not have its webhook secret."),
        _(
            "It cannot be read again, and orders are refused (401) until there is a new one: "
            "tillbridge integration rotate-secret {store}"
        ),
    ),
    ProblemKind(
        "integration.differs",
        Severity.WARNING,
        _("The ordering service has the integration otherwise than configured: {detail}"),
        _("Look at it, and apply it: tillbridge integration apply {store}"),
    ),
    ProblemKind(
        "integration.changed_elsewhere",
        Severity.WARNING,
        _("Somebody else has changed the store's integration: {detail}"),
        _(
            "Find out who: another bridge, or a person. The bridge changes it back once a day; at "
            "once with: tillbridge integration apply {store}"
        ),
    ),
    ProblemKind(
        "receiver.bad_signature",
        Severity.WARNING,
        _("{count} deliveries were refused, the last at {last}: their signature does not match."),
        _("If orders are missing, get a new one: tillbridge integration rotate-secret {store}"),
    ),
    ProblemKind(
        "receiver.crowded",
        Severity.WARNING,
        _("More connections come to the receiver than it serves at once."),
        _(
            "If this lasts, put a reverse proxy or a tunnel in front of the receiver, or block the "
            "senders in the firewall. Deliveries still get through, some of them later."
        ),
    ),
    ProblemKind(
        "receiver.all_refused",
        Severity.DOWN,
        _(
            "All of the last {count} deliveries were refused, the last at {last}: their signature "
            "does not match the webhook secret. New orders do not reach the till."
        ),
        _("Get a new secret: tillbridge integration rotate-secret {store}"),
    ),
    ProblemKind(
        "public_address.unreachable",
        Severity.DOWN,
        _("The public address does not lead to this bridge: {detail}"),
        "{remedy}",
    ),
    ProblemKind(
        "receiver.certificate_broken",
        Severity.WARNING,
        _("The receiver's new certificate cannot be used, so the old one is kept: {detail}."),
        _(
            "Put a sound pair into the files that tls_cert and tls_key name; it is then "
            "taken up at once."
        ),
    ),
    ProblemKind(
        "receiver.certificate_ending",
        Severity.WARNING,
        _("The receiver's certificate ends in {days} days."),
        _("Renew it: put the new pair into the files that tls_cert and tls_key name."),
        one=_("The receiver's certificate ends in a day."),
    ),
    ProblemKind(
        "receiver.certificate_expired",
        Severity.DOWN,
        _("The receiver's certificate has expired, so no orders can arrive."),
        _("Renew it: put the new pair into the files that tls_cert and tls_key name."),
    ),
    # -- the POS
    ProblemKind(
        "pos.offline",
        Severity.DOWN,
        _("The till takes no orders now: {detail}"),
        _("{remedy} Orders wait, and are written as soon as the till takes them."),
        defaults={"remedy": _("Check that the till is on and connected.")},
    ),
    ProblemKind(
        "pos.setup",
        Severity.WARNING,
        _("The till is set up in a way that spoils orders: {detail}"),
        _("{remedy}"),
    ),
    ProblemKind(
        "pos.tickets_missing",
        Severity.DOWN,
        _("The till has none of the {count} open orders that were written to it: {orders}"),
        _(
            "If the till's database or an option of its adapter was changed, put that back. If the "
            "orders are lost, cancel each: tillbridge orders cancel ORDER --reason OTHER"
        ),
    ),
    ProblemKind(
        "pos.update_unreadable",
        Severity.WARNING,
        _("The till wrote an order update that cannot be read: {detail}"),
        _("See the .error file beside it in the folder bad/."),
    ),
    ProblemKind(
        "pos.update_unknown",
        Severity.WARNING,
        _("The till told of an order that this bridge does not know: {order}"),
        _("Check that this till belongs to the store {store}."),
        Ends.DAY,
    ),
    ProblemKind(
        "adapter.failed",
        Severity.WARNING,
        _("The adapter {adapter} failed in a way it should not: {detail}"),
        _("Tell the adapter's vendor; the log has the details (event adapter.failed)."),
    ),
    ProblemKind(
        "adapter.hangs",
        Severity.WARNING,
        _("The till does not answer: {operation} of the adapter {adapter} hangs since {since}."),
        _(
            "Check that the till, its database or the network share of its files answers; the "
            "bridge goes on by itself as soon as it does. If it answers and this stays, restart "
            "the bridge: systemctl restart tillbridge"
        ),
    ),
    ProblemKind(
        "adapter.keeps_dying",
        Severity.DOWN,
        _("The program of the adapter {adapter} keeps ending: {detail}"),
        _(
            "Read what it says of itself in the log (event adapter.said), and mend or reinstall "
            "it. It is started again by itself."
        ),
    ),
    # -- the menu
    ProblemKind(
        "export.unreadable",
        Severity.WARNING,
        _("The {subject} export cannot be read: {detail}"),
        _("{remedy}"),
    ),
    ProblemKind(
        "export.bad_rows",
        Severity.WARNING,
        _("{count} rows of the export cannot be read; the first: {detail}"),
        _("{remedy}"),
        one=_("A row of the export cannot be read: {detail}"),
    ),
    ProblemKind(
        "export.warnings",
        Severity.WARNING,
        _("{count} things in the export need a look; the first: {detail}"),
        _("{remedy}"),
        one=_("Something in the export needs a look: {detail}"),
    ),
    ProblemKind(
        "menu.held",
        Severity.WARNING,
        _("A menu change waits for a person: {detail}"),
        _(
            "Look at it with: tillbridge menu plan {store}; release it with: "
            "tillbridge menu approve {store}"
        ),
    ),
    ProblemKind(
        "menu.mostly_sold_out",
        Severity.WARNING,
        _("The till says that {count} of {known} items are sold out: guests cannot order them."),
        _("If that is not so, put them on sale in the till and export again."),
    ),
    ProblemKind(
        "menu.items_refused",
        Severity.WARNING,
        _("The service refused {count} items; the first: {detail}"),
        _("Mend them in the till; they are sent again once they change."),
        one=_("The service refused an item: {detail}"),
    ),
    ProblemKind(
        "menu.taken_in_part",
        Severity.WARNING,
        _("The service took every item of the menu, but not everything about them: {detail}"),
        _("Mend what it names in the till, then run: tillbridge menu push {store} --full"),
    ),
    ProblemKind(
        "menu.push_failed",
        Severity.WARNING,
        _("The last menu push failed: {detail}"),
        _("It is tried again by itself; if it stays, mend what the message names."),
    ),
    ProblemKind(
        "menu.push_not_allowed",
        Severity.WARNING,
        _("The integration's menu_sync_direction does not let this bridge push menus."),
        _(
            "Set menu_sync_direction to pos_to_quiqqy or bidirectional, then run: "
            "tillbridge connect {store}"
        ),
    ),
    # -- tables
    ProblemKind(
        "tables.held",
        Severity.WARNING,
        _("A change of the floor plan waits for a person: {detail}"),
        _(
            "Look at it with: tillbridge tables plan {store}; release it with: "
            "tillbridge tables approve {store}"
        ),
    ),
    ProblemKind(
        "tables.push_failed",
        Severity.WARNING,
        _("The last push of the floor plan failed: {detail}"),
        _("It is tried again by itself; if it stays, mend what the message names."),
    ),
    ProblemKind(
        "tables.codes_changed",
        Severity.WARNING,
        _("The printed QR codes of these tables are dead: {tables}"),
        _("Print them again with: tillbridge tables qr {store}"),
    ),
    # -- orders
    ProblemKind(
        "order.unreadable",
        Severity.DOWN,
        _("An order arrived that cannot be read: {detail}"),
        _("Look at it with: tillbridge orders list; call the customer or the service."),
        Ends.DAY,
    ),
    ProblemKind(
        "order.set_aside",
        Severity.DOWN,
        _("Order {order} is set aside: {step} fails at it ({detail})."),
        _(
            "Handle this order by hand; the others go on. It is tried again by itself. Send a "
            "support bundle to the bridge's makers: tillbridge support-bundle"
        ),
        Ends.DAY,
    ),
    ProblemKind(
        "order.step_failed",
        Severity.DOWN,
        _("Orders of this store stand still: {step} fails ({detail})."),
        _(
            "It is tried again by itself, at the latest every 5 minutes; other stores go on. Send "
            "a support bundle to the bridge's makers: tillbridge support-bundle"
        ),
    ),
    ProblemKind(
        "order.unknown_item",
        Severity.WARNING,
        _("Order {order} names an item that this bridge does not know: {detail}"),
        _("Check the ticket with the customer's order; then look why the menu differs."),
        Ends.DAY,
    ),
    ProblemKind(
        "order.price_differs",
        Severity.WARNING,
        _("Order {order} has another price than the menu had: {detail}"),
        _("Check the menu of the till and of the storefront."),
        Ends.DAY,
    ),
    ProblemKind(
        "order.other_currency",
        Severity.WARNING,
        _(
            "{count} orders are in {theirs}, but the store is set up in {ours} ({orders}): none of "
            "their prices can be checked."
        ),
        _(
            'If the storefront sells in {theirs}, set currency = "{theirs}" for the store '
            "{store} in the configuration; if not, ask the ordering service."
        ),
        Ends.DAY,
        one=_(
            "Order {orders} is in {theirs}, but the store is set up in {ours}: none of its prices "
            "can be checked."
        ),
    ),
    ProblemKind(
        "order.quantity_unclear",
        Severity.WARNING,
        _("Order {order} does not say how many are wanted of: {detail}"),
        _("Ask the guest, and tell the kitchen: the ticket shows a question mark."),
        Ends.DAY,
    ),
    ProblemKind(
        "order.not_written",
        Severity.DOWN,
        _("Order {order} could not be written to the till: {detail}"),
        _("Write it by hand, or try again: tillbridge orders retry {id}"),
    ),
    ProblemKind(
        "order.held",
        Severity.DOWN,
        _("Order {order} was not printed: {detail}"),
        _(
            "If it is still wanted, print it: tillbridge orders retry {id}; if not: "
            "tillbridge orders cancel {id} --reason OTHER"
        ),
    ),
    ProblemKind(
        "order.not_in_till",
        Severity.DOWN,
        _("Order {order} was printed, and is not in the till: {why}"),
        _(
            "Type it into the till from the paper, then run: tillbridge orders done {id} "
            "--how typed"
        ),
        Ends.HANDLED,
    ),
    ProblemKind(
        "fallback.offline",
        Severity.WARNING,
        _("The printer that stands in for the till would not print now: {detail}"),
        _("Mend it before it is needed: it is the last way for an order into the kitchen."),
    ),
    ProblemKind(
        "order.not_withdrawn",
        Severity.WARNING,
        _("Order {order} is cancelled, but the till may still have its ticket{why}."),
        _("Tell the kitchen not to make it. {remedy}"),
        Ends.DAY,
        defaults={"why": "", "remedy": _("Cancel the ticket in the till.")},
    ),
    ProblemKind(
        "order.duplicate",
        Severity.DOWN,
        _("Order {order} is in the till {count} times: {tickets}. {detail}"),
        _("Tell the kitchen to make it once, and cancel the younger one in the till: {younger}"),
    ),
    ProblemKind(
        "order.ticket_taken_back",
        Severity.WARNING,
        _(
            "The till had a ticket too many of order {order} and the bridge cancelled it: "
            "{ticket}; {why}."
        ),
        _("Tell the kitchen, in case it has been sent there. Nothing else is to be done."),
        Ends.NOTE,
    ),
    ProblemKind(
        "order.untold",
        Severity.WARNING,
        _("{count} orders wait to be told to the service."),
        _(
            "Nothing to do while the service or the consent is the problem: they are "
            "told when it is back."
        ),
        one=_("An order waits to be told to the service."),
    ),
    ProblemKind(
        "order.closed_by_service",
        Severity.WARNING,
        _("The service says that order {order} is already finished or cancelled."),
        _("Tell the kitchen; check the order on the merchant's dashboard."),
        Ends.DAY,
    ),
    ProblemKind(
        "order.cancelled",
        Severity.WARNING,
        _("{count} orders were cancelled since {since} because {why} ({orders}{amount})."),
        _(
            "The guests get their money back. See to the cause, call whom you want to keep, then "
            "say that you have seen it: tillbridge problems ack order.cancelled"
        ),
        Ends.NOTE,
        one=_("Order {orders} was cancelled at {since} because {why}{worth}."),
    ),
    ProblemKind(
        "store.paused",
        Severity.WARNING,
        _("The bridge has paused the store: {detail}."),
        _(
            "It is resumed by itself when the till is back and stays; a person opens it sooner "
            "with: tillbridge store resume {store}"
        ),
    ),
    ProblemKind(
        "store.closed_in_till",
        Severity.WARNING,
        _("The store takes no orders because the till takes none: {detail}"),
        _(
            "Open the till for orders, as at the beginning of a day; the store opens then by "
            "itself."
        ),
    ),
    # -- the store
    ProblemKind(
        "store.paused_by_staff",
        Severity.WARNING,
        _("The store takes no orders: {by} paused it{reason}."),
        _("Open it again with: tillbridge store resume {store}"),
    ),
    ProblemKind(
        "store.paused_elsewhere",
        Severity.WARNING,
        _("The store takes no orders: somebody else closed it at the ordering service."),
        _("Open it there, or with: tillbridge store resume {store}"),
    ),
    ProblemKind(
        "store.step_failed",
        Severity.WARNING,
        _("A part of the bridge fails in a way it should not: {step} ({detail})."),
        _(
            "It is tried again by itself, at the latest every 5 minutes; everything else goes on. "
            "If a file or setting has just changed, undo that. Send a support bundle to the "
            "bridge's makers: tillbridge support-bundle"
        ),
    ),
    ProblemKind(
        "store.file_unreadable",
        Severity.WARNING,
        _("What the restaurant wrote cannot be used, and nothing of it was sent: {detail}"),
        _(
            "Mend the file and save it: it is read again at once. Until then what it said before "
            "counts."
        ),
    ),
    ProblemKind(
        "store.settings_not_sent",
        Severity.WARNING,
        _("The store's settings could not be sent: {detail}"),
        _("Mend what the message names, then run: tillbridge store push {store}"),
    ),
    ProblemKind(
        "tax.differs",
        Severity.WARNING,
        _("The taxes of the till and of the ordering service differ: {detail}"),
        _(
            "Ask your accountant which is right and correct the other one, then run: "
            "tillbridge store tax {store}"
        ),
    ),
    # -- communities
    ProblemKind(
        "community.unavailable",
        Severity.WARNING,
        _("The community {community} cannot be kept in step: {detail}"),
        _("{remedy}"),
    ),
    ProblemKind(
        "community.deliveries_failing",
        Severity.WARNING,
        _("Events of the community {community} do not arrive here: {detail}"),
        _("{remedy}"),
    ),
    ProblemKind(
        "community.bad_signature",
        Severity.WARNING,
        _("Events of a community arrive whose signature does not match its secret."),
        _("If it stays, make a new subscription: tillbridge community webhook remake {community}"),
    ),
    ProblemKind(
        "community.order_missing",
        Severity.DOWN,
        _("Order {order}, a part of the community order {parent}, has not arrived here."),
        _(
            "Call the customer or the service, and write it by hand. If it still comes, it is "
            "written and this goes away."
        ),
    ),
    ProblemKind(
        "community.hours_not_pushed",
        Severity.WARNING,
        _("The opening hours of {member} are not those of the community {community}: {detail}"),
        _("{remedy}"),
    ),
    # -- the machine
    ProblemKind(
        "ledger.unwritable",
        Severity.DOWN,
        _(
            "The ledger in {path} cannot be written ({detail}); until it can, new orders are "
            "refused."
        ),
        _(
            "Free space on the disk of {path}, or mend it; where it is readonly, let the bridge's "
            "user write to {path} and the files in it, and restart the bridge. Refused deliveries "
            "come again for about nine hours."
        ),
        defaults={"path": "data_dir"},
    ),
    ProblemKind(
        "disk.low",
        Severity.WARNING,
        _("Only {mib} MiB are left on the disk of {path}."),
        _("Free some space before it is full: without any, new orders are refused."),
    ),
    ProblemKind(
        "disk.not_writable",
        Severity.WARNING,
        "{detail}",
        "{remedy}",
    ),
    ProblemKind(
        "clock.wrong",
        Severity.WARNING,
        _("This machine's clock is {off} the ordering service's."),
        _("{effect} Let this machine set its clock by itself (NTP): timedatectl set-ntp true"),
        defaults={"effect": _("Times on the page are wrong.")},
    ),
    ProblemKind(
        "ledger.rebuilt",
        Severity.WARNING,
        _("The ledger was damaged and has been set aside as {detail}; a new one was begun."),
        _(
            "Keep the file for support; orders are compared with the till before any is written. "
            "Then say that you have seen it: tillbridge problems ack ledger.rebuilt"
        ),
        Ends.NOTE,
    ),
    ProblemKind(
        "config.unusable",
        Severity.WARNING,
        _(
            "The configuration has changed and cannot be used, so the one from before counts: "
            "{detail}"
        ),
        _("{remedy} See all of it with: tillbridge config check"),
    ),
    ProblemKind(
        "config.restart_needed",
        Severity.WARNING,
        _("The configuration has changed, and this counts after a restart only: {keys}"),
        _("Restart the bridge: systemctl restart tillbridge. Orders that come meanwhile wait."),
    ),
    ProblemKind(
        "disk.over_budget",
        Severity.WARNING,
        _("The bridge's data takes {used} MiB, more than the {budget} MiB it may."),
        _("Lower keep_history_days in [bridge], or raise disk_budget_mib where the disk has room."),
    ),
    ProblemKind(
        "alerts.not_sent",
        Severity.WARNING,
        _("Alerts by {way} do not go out: {detail}"),
        _("{remedy}"),
    ),
    ProblemKind(
        "bridge.not_set_up",
        Severity.DOWN,
        _("Nothing is set up yet, so no orders can arrive."),
        _("Set it up on the page, under Set-up; docs/setup.md tells how."),
    ),
    ProblemKind(
        "bridge.not_started",
        Severity.DOWN,
        _("The bridge did not start at {at}, so no orders can arrive: {detail}"),
        "{remedy}",
        defaults={"remedy": _("Start it in a terminal and read what it says: tillbridge run")},
    ),
    ProblemKind(
        "bridge.stopped",
        Severity.DOWN,
        _("The bridge is not running, so no orders can arrive."),
        _("Start it: systemctl start tillbridge, or tillbridge run"),
    ),
)

PROBLEMS: dict[str, ProblemKind] = {kind.code: kind for kind in _KINDS}


def anchor(code: str) -> str:
    """Return the end of an address that leads to a code's section in docs/problems.md."""
    return code.replace(".", "")


class _Fields(dict[str, Any]):
    """Fields of a text; one that the problem's finder did not give is shown as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """An open problem. `store` is "" for the bridge itself; `subject` tells two of a kind apart.

    `since` is ms since the epoch; `detail` holds the fields of the kind's text.
    """

    code: str
    store: str
    subject: str
    since: int
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> ProblemKind:
        """What kind it is. KeyError for a code that this version does not know."""
        return PROBLEMS[self.code]

    @property
    def text(self) -> str:
        """The problem as a plain sentence."""
        fields = self._fields()
        single = self.kind.one and 1 in (fields.get("count"), fields.get("days"))
        return (self.kind.one if single else self.kind.text).format_map(fields)

    @property
    def fix(self) -> str:
        """What to do about it."""
        return self.kind.fix.format_map(self._fields())

    def _fields(self) -> _Fields:
        own = {"store": self.store, "subject": self.subject}
        return _Fields({**self.kind.defaults, **own, **self.detail})
