"""The frame around every page: navigation, what was just done, and what templates may ask."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tillbridge.core.i18n import _
from tillbridge.core.spans import clock_time, local_second, span, time_since
from tillbridge.model.instant import from_iso
from tillbridge.web.authenticator import Visitor
from tillbridge.web.rendering import template
from tillbridge.web.site.book import (
    Action,
    Done,
    NavigationLine,
    Page,
    Question,
    Subject,
    Visit,
    parts_of,
    path_of,
)

_SAFE_SCHEMES = {"http", "https"}


class Frame:
    """Renders pages in the layout of the site."""

    def __init__(
        self,
        navigation: Sequence[NavigationLine],
        subjects: Sequence[Subject],
        *,
        asks_for_passwords: bool,
    ) -> None:
        pages = {each.path: each for subject in subjects for each in subject.pages}
        self._navigation = [(line, pages[line.path]) for line in navigation if line.path in pages]
        self._pages = pages
        self._actions = {each.path: each for subject in subjects for each in subject.actions}
        self._asks_for_passwords = asks_for_passwords

    def page(
        self,
        page: Page,
        visitor: Visitor,
        filled: Mapping[str, Any],
        now_ms: int,
        flash: Done | None = None,
    ) -> str:
        """Return a page."""
        return template(page.template).render(
            **self._common(visitor, now_ms, section=page.section or page.path),
            title=page.title,
            live=page.live,
            flash=_shown(flash),
            **filled,
        )

    def question(self, visit: Visit, action: Action, question: Question, *, cancel: str) -> str:
        """Return the page that asks before an action."""
        return template("question.html").render(
            **self._common(visit.visitor, visit.now_ms, section=action.section),
            title=question.title or action.title,
            live=False,
            flash=None,
            question=question,
            here=path_of(action.path, visit.params),
            cancel=cancel,
        )

    def trouble(self, visitor: Visitor, status: int, text: str, fix: str, now_ms: int) -> str:
        """Return the page that says what went wrong, and what to do."""
        return template("trouble.html").render(
            **self._common(visitor, now_ms, section=""),
            title=_("That did not work"),
            live=False,
            flash=None,
            status=status,
            text=text,
            fix=fix,
        )

    def _common(self, visitor: Visitor, now_ms: int, *, section: str) -> dict[str, Any]:
        return {
            "navigation": [
                {"path": line.path, "title": line.title, "here": line.path == section}
                for line, page in self._navigation
                if page.role <= visitor.role
            ],
            "visitor": visitor,
            "signed_in": self._asks_for_passwords and bool(visitor.name),
            "now_ms": now_ms,
            "ago": lambda at: span((now_ms - _ms(at)) / 1000),
            "second": local_second,
            "when": lambda at: time_since(_ms(at), now_ms),
            "clock": lambda at: clock_time(_ms(at), now_ms),
            "link": _link,
            "page_is_for": lambda path: self._is_for(visitor, path),
            "action": lambda path, **parts: self._offered(visitor, path, parts),
        }

    def _is_for(self, visitor: Visitor, path: str) -> bool:
        page = self._pages.get(path)
        return page is not None and page.role <= visitor.role

    def _offered(
        self, visitor: Visitor, path: str, parts: Mapping[str, object]
    ) -> dict[str, Any] | None:
        """Return an action as its button needs it; None where this visitor may not."""
        action = self._actions.get(path)
        if action is None or action.role > visitor.role:
            return None
        return {
            "href": _link(path, **parts),
            "title": action.title,
            "asks": action.ask is not None,
        }


def _link(path: str, **values: object) -> str:
    """Return a path with its parts; what is no part of it goes behind the question mark."""
    parts = set(parts_of(path))
    asked = {name: value for name, value in values.items() if name not in parts}
    return path_of(path, values, asked)


def _ms(at: int | str) -> int:
    return from_iso(at) if isinstance(at, str) else at


def _shown(flash: Done | None) -> dict[str, Any] | None:
    if flash is None:
        return None
    safe = urlsplit(flash.link).scheme in _SAFE_SCHEMES
    return {
        "ok": flash.ok,
        "text": flash.text,
        "fix": flash.fix,
        "link": flash.link if safe else "",
        "link_text": flash.link_text or flash.link,
    }
