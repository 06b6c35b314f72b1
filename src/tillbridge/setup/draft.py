"""The steps of setting up, and what was said and tested there and is not written yet. Pure.

It holds no secret: the app's goes to the vault when it is given. It is kept in the ledger, so that
a person goes on where they were after a restart.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from tillbridge.config import OrderSettings, PosSettings
from tillbridge.config.toml import KeyPath
from tillbridge.core.i18n import _, ngettext

State = Literal["done", "open", "shut"]

# In this order; each is tested before the next one opens.
STEPS = ("service", "sign_in", "store", "adapter", "address", "order")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one step: whether it is done, in words, and what to do where it is not."""

    done: bool
    text: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it is shown. Only one that is `open` or `done` can be taken (again)."""

    name: str
    state: State
    text: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        return {"name": self.name, "state": self.state, "text": self.text, "fix": self.fix}


def steps_of(findings: Mapping[str, Finding]) -> tuple[Step, ...]:
    """Return all steps: those done, the first that is not, and those that wait for it.

    A step that was done once and comes after one that is not stays done, so that a person sees
    what is still good; what depends on the other is the caller's to say.
    """
    found: list[Step] = []
    is_open = True
    for name in STEPS:
        finding = findings.get(name, Finding(done=False))
        state: State = "done" if finding.done else "open" if is_open else "shut"
        is_open = is_open and finding.done
        found.append(Step(name, state, finding.text, finding.fix))
    return tuple(found)


def next_step(steps: tuple[Step, ...]) -> str:
    """Return the name of the step to take now; "" where all are done."""
    return next((step.name for step in steps if step.state != "done"), "")


# Keys of [stores.NAME.pos] and [stores.NAME.orders] that are the bridge's own, not an adapter's.
_OWN_POS = frozenset(PosSettings.model_fields)
_OWN_ORDERS = frozenset(OrderSettings.model_fields)
# What has to be found out again once a step is taken anew.
_AFTER: Mapping[str, tuple[str, ...]] = {
    "service": ("app", "sign_in", "store"),
    "app": ("sign_in", "store"),
    "sign_in": ("store",),
    "menu": ("adapter",),
}


@dataclass(frozen=True, slots=True)
class Draft:
    """The answers so far; "" and {} where nothing was said.

    `pos` and `orders` are an adapter and its options as they are to stand in the file; without
    `orders` the till's own adapter writes them. `found` says by step what its test found; beside
    the steps there are `app`, whose id and secret the service knows, and `menu`, which the till's
    adapter reads while another one still has to be found for its orders.
    `written` is the digest of the file that these answers were written into.
    """

    base_url: str = ""
    client_id: str = ""
    secret_given: bool = False
    redirect_uri: str = ""
    store: str = "main"
    store_id: str = ""
    store_name: str = ""
    location_id: str = ""
    currency: str = ""
    pos: Mapping[str, Any] = field(default_factory=dict)
    orders: Mapping[str, Any] = field(default_factory=dict)
    listen: str = ""
    public_url: str = ""
    found: Mapping[str, str] = field(default_factory=dict)
    written: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as the ledger keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: object) -> "Draft | None":
        """Return what the ledger kept; None for nothing, or what another version wrote."""
        if not isinstance(kept, Mapping):
            return None
        known = {each.name: kept[each.name] for each in fields(cls) if each.name in kept}
        blank = cls()
        if any(type(value) is not type(getattr(blank, name)) for name, value in known.items()):
            return None
        return cls(**known)

    def passed(self, step: str, text: str, **said: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has succeeded; what depends on it is open again."""
        found = {
            name: told for name, told in self.found.items() if name not in _AFTER.get(step, ())
        }
        return replace(self, found={**found, step: text}, **said)

    def failed(self, step: str, **said: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has failed: what was typed stays in its form."""
        again = self.passed(step, "", **said)
        found = {name: told for name, told in again.found.items() if name != step}
        return replace(again, found=found)

    def findings(self) -> dict[str, Finding]:
        """Return a finding for each step that has been tested."""
        return {name: Finding(done=True, text=text) for name, text in self.found.items()}


def draft_of(document: Mapping[str, Any]) -> Draft:
    """Return what a file says already, of its first store."""
    service, receiver = _table(document, "service"), _table(document, "receiver")
    stores = _table(document, "stores")
    name = next(iter(stores), "main")
    store = _table(stores, name)
    return Draft(
        base_url=_text(service, "base_url"),
        client_id=_text(service, "client_id"),
        redirect_uri=_text(service, "redirect_uri"),
        store=name,
        store_id=_text(store, "store_id"),
        location_id=_text(store, "location_id"),
        currency=_text(store, "currency"),
        pos=_adapter_part(_table(store, "pos"), _OWN_POS),
        orders=_adapter_part(_table(store, "orders"), _OWN_ORDERS),
        listen=_text(receiver, "listen"),
        public_url=_text(receiver, "public_url"),
    )


def changes_of(draft: Draft, document: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return what the draft changes in a file: only what was said, and differs."""
    pos: KeyPath = ("stores", draft.store, "pos")
    orders: KeyPath = ("stores", draft.store, "orders")
    wanted: dict[KeyPath, Any] = {}
    texts = {
        ("service", "base_url"): draft.base_url,
        ("service", "client_id"): draft.client_id,
        ("service", "redirect_uri"): draft.redirect_uri,
        ("receiver", "listen"): draft.listen,
        ("receiver", "public_url"): draft.public_url,
        ("stores", draft.store, "store_id"): draft.store_id,
        ("stores", draft.store, "location_id"): draft.location_id,
        ("stores", draft.store, "currency"): draft.currency,
    }
    wanted |= {path: text for path, text in texts.items() if text}
    if draft.secret_given:
        wanted["service", "client_secret"] = {"vault": True}
    if draft.pos and not _table(document, *pos):
        # Nobody has seen yet what this till's export comes to.
        wanted["stores", draft.store, "menu", "approve_first"] = True
    for path, said, own in ((pos, draft.pos, _OWN_POS), (orders, draft.orders, _OWN_ORDERS)):
        if said:
            there = _table(document, *path)
            wanted |= {(*path, key): None for key in there if key not in own and key not in said}
            wanted |= {(*path, key): value for key, value in said.items()}
    return {path: value for path, value in wanted.items() if _at(document, path) != value}


def _table(document: Mapping[str, Any], *path: str | int) -> Mapping[str, Any]:
    found = _at(document, path)
    return found if isinstance(found, Mapping) else {}


def _at(document: Mapping[str, Any], path: KeyPath) -> Any:  # noqa: ANN401 -- any TOML value
    value: Any = document
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _adapter_part(table: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return an adapter and its options, of a table that also holds settings of the bridge's."""
    if "adapter" not in table:
        return {}
    return {key: value for key, value in table.items() if key == "adapter" or key not in own}


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""


_Part = Mapping[str, Any]

_STARTING_S = 15


def findings_of(
    overview: _Part, store: str, *, base_url: str, delivered: bool = False
) -> dict[str, Finding]:
    """Return a finding for each step, for the store of that name.

    `overview` is the status document with its chain (docs/page.md); `delivered`: a signed delivery
    has arrived, of whatever kind.
    """
    part = overview["stores"][store]
    links = {link["key"]: link for link in overview["chain"][store]}
    return {
        "service": _service(links["service"], base_url, overview["bridge"]["uptime_s"]),
        "sign_in": _sign_in(part["service"], store),
        "store": _store(part["service"], store),
        "adapter": _adapter(part, store),
        "address": _address(links["address"], part["service"]),
        "order": _order(part["orders"], delivered=delivered),
    }


def _service(link: _Part, base_url: str, uptime_s: int | None) -> Finding:
    if link["at"] is not None:
        return Finding(done=True, text=_("The service answers at {url}.").format(url=base_url))
    if uptime_s is not None and uptime_s < _STARTING_S:
        return Finding(
            done=False,
            text=_("The bridge is starting. It asks the service at {url}.").format(url=base_url),
        )
    return Finding(
        done=False,
        text=_("The service has not answered at {url} yet.").format(url=base_url),
        fix=_("Look whether this machine is on the internet, and whether base_url is right."),
    )


def _sign_in(service: _Part, store: str) -> Finding:
    left = service["consent_days_left"]
    if left and service["consent"] in {"ok", "ending"}:
        days = ngettext("{n} day", "{n} days", int(left)).format(n=left)
        return Finding(
            done=True, text=_("The merchant allows it, for another {days}.").format(days=days)
        )
    return Finding(
        done=False,
        text=_("The merchant has not allowed this bridge to work for {store}.").format(store=store),
        fix=_("Let the merchant allow it."),
    )


def _store(service: _Part, store: str) -> Finding:
    if service["integrated"]:
        name = service["store_name"] or service["store_id"] or "?"
        text = _("{store} is {name} at the service, and is connected.")
        return Finding(done=True, text=text.format(store=store, name=name))
    return Finding(
        done=False,
        text=_("{store} is not connected at the service.").format(store=store),
        fix=_("Connect it."),
    )


def _adapter(part: _Part, store: str) -> Finding:
    adapter, items = part["pos"]["adapter"], part["menu"]["acknowledged_items"]
    if part["pos"]["online"] is False:
        return Finding(
            done=False,
            text=_("The till is away: {detail}").format(detail=part["pos"]["detail"] or adapter),
            fix=_("Look whether it runs and writes its export, and try its settings below."),
        )
    if items:
        on_sale = ngettext("{n} item", "{n} items", items).format(n=items)
        text = _("{adapter} is read, and the storefront has {items}.")
        return Finding(done=True, text=text.format(adapter=adapter, items=on_sale))
    if part["menu"]["held"]:
        return Finding(
            done=False,
            text=_("The first menu of {store} waits for you: guests have not seen it yet.").format(
                store=store
            ),
            fix=_("Review it on the page Menu, and release it."),
        )
    return Finding(
        done=False,
        text=_("The storefront has no menu of {store} yet.").format(store=store),
        fix=_("See the page Menu for what holds it up."),
    )


def _address(link: _Part, service: _Part) -> Finding:
    if link["state"] == "down":
        return Finding(
            done=False,
            text=_("The public address does not lead here."),
            fix=_("See what is wrong on the overview; tillbridge doctor looks at every link."),
        )
    if link["at"] is not None and service["webhook_url"]:
        text = _("Deliveries reach this bridge at {url}.")
        return Finding(done=True, text=text.format(url=service["webhook_url"]))
    return Finding(
        done=False,
        text=_("Nothing has come through the public address yet."),
        fix=_("Test it, or place an order."),
    )


def _order(orders: _Part, *, delivered: bool) -> Finding:
    count = sum(orders["by_state"].values())
    if count:
        text = ngettext("{n} order has arrived.", "{n} orders have arrived.", count)
        return Finding(done=True, text=text.format(n=count))
    text = (
        _("A signed delivery has arrived, and no order yet.")
        if delivered
        else _("No order has arrived yet.")
    )
    return Finding(done=False, text=text, fix=_("Place a test order."))
