"""The part of a `FakeControl` for the page Settings."""

from collections.abc import Callable, Mapping
from typing import Any

from tillbridge.core.errors import ConfigError
from tillbridge.model.restaurant import WEEKDAYS
from tillbridge.operations.settings import groups_of
from tillbridge.setup.sections import BY_NAME

Answer = dict[str, Any]


class FakeSettings:
    """Remembers what it was asked; `document` is what the file says."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.document: dict[str, Any] = {}
        self.refused: ConfigError | None = None
        self.dates: list[Answer] = []
        self.shown: Answer = {
            "file": "/etc/tillbridge/bridge.toml",
            "folder": "/var/lib/tillbridge",
            "writable": True,
            "newer_version": "",
            "restarting": False,
            "refused": None,
            "restart": [],
            "unusable": "",
            "store": "",
            "stores": {"main": "Main Street"},
            "digest": "d1",
            "users": [],
            "backups": [],
            "on_server": False,
            "restored": None,
            "next": [{"name": "alerts", "done": False}, {"name": "password", "done": True}],
        }

    async def show(self, section: str, store: str) -> Answer:
        found = BY_NAME.get(section)
        name = (store or "main") if found is not None and found.each_store else ""
        groups = [] if found is None else groups_of(found, name, self.document)
        hours = self._hours() if section == "hours" else None
        return {**self.shown, "store": name, "groups": groups, "hours": hours}

    def _hours(self) -> Answer:
        return {
            "file": "/etc/tillbridge/hours.toml",
            "timezone": "Europe/Rome",
            "timezone_is_asked": False,
            "days": [{"name": day, "times": "12:00-14:30, 18:30-23:00"} for day in WEEKDAYS],
            "dates": self.dates,
            "digest": "d1",
            "unusable": "",
        }

    async def change_hours(self, store: str, form: Mapping[str, str], digest: str) -> Answer:
        if self.refused is not None:
            raise self.refused
        return {**self._told("hours change", store, dict(form), digest), "lines": ["+a = 2"]}

    async def change(
        self, section: str, form: Mapping[str, str], digest: str, *, store: str, restart: bool
    ) -> Answer:
        if self.refused is not None:
            raise self.refused
        told = self._told("settings change", section, store, dict(form), digest, restart)
        return {**told, "lines": ["-a = 1", "+a = 2"]}

    async def save_user(self, user: str, role: str, password_hash: str) -> Answer:
        return {**self._told("users save", user, role, password_hash), "lines": []}

    async def remove_user(self, user: str) -> Answer:
        return self._told("users remove", user)

    async def back_up(self) -> Answer:
        return self._told("back up")

    async def contents(self, backup: str) -> Answer:
        return {
            "file": backup,
            "at": "2026-11-21T04:00:00Z",
            "version": "0.1",
            "stores": list(self.shown["stores"].values()),
            "orders": 1204,
            "orders_since": 131,
            "entries_since": 42,
            "back_on_sale": 3,
        }

    async def restore(self, backup: str) -> Answer:
        return self._told("restore", backup)


def full_settings(settings: FakeSettings, text: str) -> None:
    """Let every page of settings show something; `text` is from outside."""
    settings.document = {
        "alerts": {
            "email": {"host": text, "to": [text, text], "password": {"vault": True}},
            "quiet_hours": text,
        },
        "status_page": {"allowed_hosts": [text]},
        "stores": {"main": {"timezone": text, "schedule": {"pauses": [text]}}},
    }
    settings.dates = [
        {"date": f"2026-12-{day}", "times": "", "reason": text} for day in range(24, 32)
    ]
    at = "2026-11-21T04:00:00Z"
    settings.shown |= {
        "restart": ["alerts.email.host", text],
        "writable": False,
        "newer_version": "9.9.9",
        "stores": {"main": text, "second": "Harbour"},
        "users": [{"name": "anna", "role": "technician"}, {"name": text, "role": "staff"}],
        "backups": [
            {"file": f"ledger-{n}.db", "bytes": 1 << 20, "at": at, "replaced": n == 2}
            for n in range(3)
        ],
        "refused": {"text": text, "fix": text},
        "restored": {"file": text, "at": at},
        "next": [
            {"name": name, "done": name == "password"}
            for name in ("hours", "alerts", "password", "tablet", "backup", "service")
        ],
    }
