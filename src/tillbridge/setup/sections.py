"""The settings that a restaurant changes on the page, as sections of fields. Pure.

What kind of value a field takes, its bounds and its default are those of the models in `config/`;
here is only how people read it. `{store}` in a path stands for the store that is edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tillbridge.core.i18n import N_


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on the page; its texts are marked, not translated.

    `path` is its key in bridge.toml, `unit` is behind the field, `labels` say what values of a
    list mean.
    """

    path: str
    label: str
    help: str = ""
    unit: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Fields below one heading. `optional` is a table that goes when all its fields are empty."""

    title: str
    fields: tuple[Setting, ...]
    optional: str = ""


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """A page of settings; one of `each_store` is there for every store."""

    name: str
    title: str
    intro: str
    icon: str
    groups: tuple[Group, ...] = ()
    each_store: bool = False

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Its fields, of all groups."""
        return tuple(each for group in self.groups for each in group.fields)


_SECONDS = N_("seconds")
_MINUTES = N_("minutes")
_DAYS = N_("days")
_PERCENT = N_("%")
_PROBLEM_ORDER = {
    "write_and_warn": N_("Send it to the till and warn us"),
    "cancel": N_("Cancel it"),
}

SECTIONS: tuple[SettingsSection, ...] = (
    SettingsSection(
        "general",
        N_("General"),
        N_("This bridge and its page."),
        "settings",
        (
            Group(
                N_("This page"),
                (
                    Setting(
                        "bridge.language",
                        N_("Language"),
                        N_("Of alerts and printed sheets. This page follows each browser."),
                        labels={
                            "": N_("As this machine is set up"),
                            "en": "English",
                            "de": "Deutsch",
                            "es": "Español",
                            "fr": "Français",
                            "it": "Italiano",
                        },
                    ),
                    Setting(
                        "status_page.new_orders_sound",
                        N_("Ring for new orders"),
                        N_("The page Orders rings until somebody has seen them."),
                    ),
                ),
            ),
            Group(
                N_("Updates"),
                (
                    Setting(
                        "bridge.update_url",
                        N_("Look for new versions at"),
                        N_(
                            "The address where newer versions are announced, asked once a day. "
                            "Nothing is installed. Leave it empty to never look."
                        ),
                    ),
                ),
            ),
            Group(
                N_("Customer data and history"),
                (
                    Setting(
                        "bridge.keep_personal_data_days",
                        N_("Keep customer data for"),
                        N_(
                            "Names, addresses and phone numbers are then removed from finished "
                            "orders."
                        ),
                        _DAYS,
                    ),
                    Setting("bridge.keep_history_days", N_("Keep orders for"), unit=_DAYS),
                    Setting(
                        "bridge.disk_budget_mib",
                        N_("Disk space for the bridge"),
                        N_("Above this limit the oldest backups are deleted."),
                        N_("MiB"),
                    ),
                ),
            ),
        ),
    ),
    SettingsSection(
        "alerts",
        N_("Alerts"),
        N_("Who is notified of problems, and how."),
        "bell",
        (
            Group(
                N_("E-mail"),
                (
                    Setting(
                        "alerts.email.to",
                        N_("Send alerts to"),
                        N_("One e-mail address a line."),
                    ),
                    Setting(
                        "alerts.email.sender",
                        N_("From"),
                        N_("The address that alerts come from."),
                    ),
                    Setting(
                        "alerts.email.host",
                        N_("Mail server"),
                        N_("Your e-mail provider's SMTP server, for example smtp.example.com."),
                    ),
                    Setting("alerts.email.port", N_("Port")),
                    Setting(
                        "alerts.email.tls",
                        N_("Encryption"),
                        labels={
                            "starttls": N_("STARTTLS (usual with port 587)"),
                            "tls": N_("TLS (usual with port 465)"),
                            "none": N_("No encryption: only for a server on this machine"),
                        },
                    ),
                    Setting("alerts.email.username", N_("User name at the mail server")),
                    Setting("alerts.email.password", N_("Password at the mail server")),
                ),
                optional="alerts.email",
            ),
            Group(
                N_("Chat or webhook"),
                (
                    Setting(
                        "alerts.webhook.url",
                        N_("Webhook address"),
                        N_("Slack, Teams and Discord show it when you add an incoming webhook."),
                    ),
                    Setting(
                        "alerts.webhook.format",
                        N_("Send it as"),
                        labels={
                            "json": "JSON",
                            "slack": "Slack",
                            "teams": "Microsoft Teams",
                            "discord": "Discord",
                        },
                    ),
                    Setting(
                        "alerts.webhook.secret",
                        N_("Signing secret"),
                        N_(
                            "Only if your own program receives the alerts: it can then check who "
                            "sent them."
                        ),
                    ),
                ),
                optional="alerts.webhook",
            ),
            Group(
                N_("When"),
                (
                    Setting(
                        "alerts.severity",
                        N_("Notify about"),
                        labels={
                            "warning": N_("Every problem"),
                            "down": N_("Only what stops orders"),
                        },
                    ),
                    Setting(
                        "alerts.quiet_hours",
                        N_("Quiet hours"),
                        N_(
                            "Warnings wait until they end; what stops orders does not. For "
                            "example 23:00-07:00."
                        ),
                    ),
                    Setting(
                        "alerts.repeat_min",
                        N_("Remind after"),
                        N_(
                            "Minutes since the problem began, one a line, until somebody "
                            "acknowledges it."
                        ),
                    ),
                    Setting(
                        "alerts.heartbeat_url",
                        N_("Heartbeat address"),
                        N_(
                            "A monitoring service notifies you when this address is no longer "
                            "called, for example because the power is out."
                        ),
                    ),
                ),
            ),
        ),
    ),
    SettingsSection(
        "people",
        N_("Users and passwords"),
        N_("Who may open this page, and what they may do."),
        "users",
        (
            Group(
                N_("Other devices"),
                (
                    Setting(
                        "status_page.listen",
                        N_("Where this page is served"),
                        N_(
                            "127.0.0.1:8089 is this machine only. 0.0.0.0:8089 is every device in "
                            "your network, for example the tablet in the kitchen; add a user "
                            "first."
                        ),
                    ),
                    Setting(
                        "status_page.allowed_hosts",
                        N_("Names of this machine in your network"),
                        N_(
                            "One a line, for example till.lan. Its addresses are known without "
                            "this."
                        ),
                    ),
                ),
            ),
            Group(
                N_("Signing in"),
                (
                    Setting(
                        "status_page.session_idle_s",
                        N_("Sign out after no activity for"),
                        unit=_SECONDS,
                    ),
                ),
            ),
        ),
    ),
    SettingsSection(
        "store",
        N_("Orders and menu"),
        N_("How orders and menu changes of this store are handled."),
        "store",
        (
            Group(
                N_("Store"),
                (
                    Setting(
                        "stores.{store}.timezone",
                        N_("Time zone"),
                        N_("For example Europe/Rome. Leave it empty to use this machine's."),
                    ),
                    Setting(
                        "stores.{store}.notification_email",
                        N_("E-mail for the ordering service"),
                        N_("The ordering service writes there about this store."),
                    ),
                ),
            ),
            Group(
                N_("Orders"),
                (
                    Setting(
                        "stores.{store}.orders.accept",
                        N_("Accept an order"),
                        labels={
                            "when_written": N_("As soon as the till has it"),
                            "when_confirmed": N_("When the kitchen confirms it on the till"),
                        },
                    ),
                    Setting(
                        "stores.{store}.orders.accept_within_s",
                        N_("Cancel an order that the till has not taken after"),
                        unit=_SECONDS,
                    ),
                    Setting(
                        "stores.{store}.orders.pause_after_s",
                        N_("Pause ordering when the till is offline for"),
                        N_("0 never pauses it."),
                        _SECONDS,
                    ),
                    Setting(
                        "stores.{store}.orders.unknown_item",
                        N_("An order with an item that is not on the menu"),
                        labels=_PROBLEM_ORDER,
                    ),
                    Setting(
                        "stores.{store}.orders.price_differs",
                        N_("An order with another price than the menu's"),
                        labels=_PROBLEM_ORDER,
                    ),
                ),
            ),
            Group(
                N_("When orders are taken"),
                (
                    Setting(
                        "stores.{store}.schedule.follow_hours",
                        N_("Take orders within opening hours only"),
                    ),
                    Setting(
                        "stores.{store}.schedule.last_orders_min",
                        N_("Last orders before closing"),
                        unit=_MINUTES,
                    ),
                    Setting(
                        "stores.{store}.schedule.pauses",
                        N_("Planned pauses"),
                        N_(
                            "One a line: friday 19:00-21:00 for every week, 2026-12-31 "
                            "18:00-24:00 for one day."
                        ),
                    ),
                ),
            ),
            Group(
                N_("Menu changes that wait for your review"),
                (
                    Setting(
                        "stores.{store}.menu.approve_first",
                        N_("Review the first menu before guests see it"),
                    ),
                    Setting(
                        "stores.{store}.menu.max_removed_percent",
                        N_("Items removed: more than"),
                        unit=_PERCENT,
                    ),
                    Setting(
                        "stores.{store}.menu.max_price_change_percent",
                        N_("Many prices changed by more than"),
                        unit=_PERCENT,
                    ),
                    Setting(
                        "stores.{store}.menu.max_added_percent",
                        N_("Items added: more than"),
                        unit=_PERCENT,
                    ),
                    Setting(
                        "stores.{store}.menu.max_changed_percent",
                        N_("Items whose name, sizes, choices or taxes changed: more than"),
                        unit=_PERCENT,
                    ),
                    Setting(
                        "stores.{store}.menu.max_sold_out_percent",
                        N_("Items sold out, only a warning: more than"),
                        N_("Guests see at once what is sold out. Nothing waits for your review."),
                        unit=_PERCENT,
                    ),
                    Setting(
                        "stores.{store}.menu.full_compare",
                        N_("Compare the whole menu daily at"),
                    ),
                ),
            ),
            Group(
                N_("Tables"),
                (
                    Setting(
                        "stores.{store}.tables.title",
                        N_("Heading of printed QR codes"),
                        N_("Leave it empty to use the store's name."),
                    ),
                ),
            ),
        ),
        each_store=True,
    ),
    SettingsSection(
        "hours",
        N_("Opening hours"),
        N_("When you are open: the week, holidays and other dates."),
        "clock",
        each_store=True,
    ),
    SettingsSection(
        "backup",
        N_("Backup and restore"),
        N_("Orders, history and sign-ins, copied so that another machine can take over."),
        "folder-archive",
        (
            Group(
                N_("Schedule"),
                (
                    Setting(
                        "bridge.backup_at",
                        N_("Back up daily at"),
                        N_(
                            "For example 04:00, in this machine's time. Leave it empty for no "
                            "daily backup."
                        ),
                    ),
                    Setting("bridge.keep_backups", N_("Backups to keep")),
                ),
            ),
        ),
    ),
    SettingsSection(
        "fleet",
        N_("Several bridges"),
        N_("Report to the page All bridges of another bridge, or collect reports here."),
        "network",
        (
            Group(
                N_("Report from this bridge"),
                (
                    Setting(
                        "fleet.name",
                        N_("Name of this bridge"),
                        N_("Leave it empty to use this machine's name."),
                    ),
                    Setting(
                        "fleet.url",
                        N_("Send reports to"),
                        N_("A web address that takes files (HTTP PUT)."),
                    ),
                    Setting(
                        "fleet.token",
                        N_("Token for that address"),
                        N_("Only if it asks for one."),
                    ),
                    Setting(
                        "fleet.folder",
                        N_("Or write reports into"),
                        N_("A folder that another program uploads."),
                    ),
                    Setting("fleet.every_s", N_("Report every"), unit=_SECONDS),
                ),
            ),
            Group(
                N_("Collect reports here"),
                (
                    Setting(
                        "fleet.reports",
                        N_("Folder of the reports"),
                        N_("Where the reports of all bridges arrive."),
                    ),
                    Setting(
                        "fleet.keys",
                        N_("File of keys"),
                        N_(
                            "A line for each bridge, as tillbridge fleet key prints it there: "
                            "reports of others are not trusted."
                        ),
                    ),
                    Setting(
                        "fleet.silent_after_s",
                        N_("A bridge is silent without a report for"),
                        unit=_SECONDS,
                    ),
                ),
            ),
        ),
    ),
)
BY_NAME: Mapping[str, SettingsSection] = {each.name: each for each in SECTIONS}
