"""Consents, codes and tokens: what is issued, how long it lives, why it stops working."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.validation import ServiceError

SCOPES = "store.read menu.write orders.write webhooks.write"
REPORTING_SCOPES = ("reports.read", "catalogue.write")

Kind = Literal["access", "refresh", "app"]


@dataclass(slots=True)
class Consent:
    """A merchant's permission for an app. Revoking it stops every token that came of it."""

    app_id: str
    merchant_email: str
    revoked: bool = False


@dataclass(slots=True)
class Token:
    """What was issued: a token, or a code. `invalid` ones are as good as unknown, or used up."""

    kind: Kind | Literal["code"]
    app_id: str
    expires_at_ms: int
    consent: Consent | None = None
    audience: str | None = None
    scopes: tuple[str, ...] = ()
    redirect_uri: str = ""
    invalid: bool = False


_JWT_HEAD = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # {"alg":"HS256","typ":"JWT"}


class Tokens:
    """Issues and checks. A token has the form of a JWT, which nobody decodes (rule 6)."""

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget all of them."""
        self._consents: dict[tuple[str, str], Consent] = {}
        self._issued: dict[str, Token] = {}

    def records(self) -> tuple[list[Consent], Mapping[str, Token]]:
        """The consents that count now, and all that was issued, by its text."""
        return list(self._consents.values()), self._issued

    def restore(self, consents: list[Consent], issued: dict[str, Token]) -> None:
        """Go on with what another sandbox had."""
        self._consents = {(each.app_id, each.merchant_email): each for each in consents}
        self._issued = issued

    # Issuing

    def authorize(self, app_id: str, merchant_email: str, redirect_uri: str) -> str:
        """An authorization code: good once, for `auth_code_s`."""
        consent = self._consent(app_id, merchant_email)
        lifetime_s = self._settings.auth_code_s
        return self._issue("code", app_id, lifetime_s, consent, redirect_uri=redirect_uri)

    def exchange(self, app_id: str, code: str, redirect_uri: str) -> dict[str, Any]:
        """The token response for an authorization code.

        Raises auth.invalid_grant or auth.consent_revoked.
        """
        found = self._issued.get(code)
        problem = ""
        if found is None or found.kind != "code" or found.app_id != app_id:
            problem = "Unknown authorization code"
        elif found.invalid:
            problem = "This authorization code was used before"
        elif self._is_over(found):
            problem = "This authorization code has expired; ask for consent again"
        elif found.redirect_uri != redirect_uri:
            problem = "This authorization code belongs to another redirect_uri"
        if found is None or problem:
            raise ServiceError("auth.invalid_grant", problem)
        consent = _in_force(found.consent)
        found.invalid = True
        return self._both(consent)

    def issue_for(self, app_id: str, merchant_email: str) -> dict[str, Any]:
        """Tokens without the browser (control API)."""
        return self._both(self._consent(app_id, merchant_email))

    def refresh(self, refresh_token: str) -> dict[str, Any]:
        """A new access token, and no new refresh token: only another consent renews that."""
        token = self._issued.get(refresh_token)
        if token is None or token.kind != "refresh" or token.invalid:
            raise ServiceError("auth.invalid_grant", "Unknown refresh token")
        consent = _in_force(token.consent)
        if self._is_over(token):
            raise ServiceError(
                "auth.invalid_grant",
                "The refresh token has expired; the merchant must consent again",
            )
        return self._access(consent)

    def issue_app_token(
        self, app_id: str, audience: str, scopes: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """client_credentials: an app-level token, of no use on /pos/*."""
        lifetime_s = self._settings.app_token_s
        text = self._issue("app", app_id, lifetime_s, audience=audience, scopes=scopes)
        return {"access_token": text, "expires_in": lifetime_s}

    def _consent(self, app_id: str, merchant_email: str) -> Consent:
        key = (app_id, merchant_email)
        if key not in self._consents or self._consents[key].revoked:
            self._consents[key] = Consent(app_id, merchant_email)
        return self._consents[key]

    def _both(self, consent: Consent) -> dict[str, Any]:
        """A fresh access and refresh token."""
        refresh_s = self._settings.refresh_token_s
        refresh = self._issue("refresh", consent.app_id, refresh_s, consent)
        return {**self._access(consent), "refresh_token": refresh}

    def _access(self, consent: Consent) -> dict[str, Any]:
        lifetime_s = self._settings.access_token_s
        return {
            "token_type": "Bearer",
            "access_token": self._issue("access", consent.app_id, lifetime_s, consent),
            "expires_in": lifetime_s,
            "scope": SCOPES,
        }

    def _issue(
        self,
        kind: Kind | Literal["code"],
        app_id: str,
        lifetime_s: int,
        consent: Consent | None = None,
        **more: Any,  # noqa: ANN401 (fields of the record)
    ) -> str:
        text = f"{_JWT_HEAD}.{secrets.token_urlsafe(48)}.{secrets.token_urlsafe(32)}"
        expires_at_ms = self._clock.now_ms() + lifetime_s * 1000
        self._issued[text] = Token(kind, app_id, expires_at_ms, consent, **more)
        return text

    # Checking

    def consent_of(self, access_token: str) -> Consent:
        """Whose token this is.

        Raises auth.invalid_token, auth.consent_revoked or auth.token_expired.
        """
        token = self._known(access_token)
        if token.kind != "access":
            raise ServiceError(
                "auth.invalid_token", f"A token of kind {token.kind} is not accepted here"
            )
        consent = _in_force(token.consent)
        self._refuse_expired(token)
        return consent

    def app_of(self, access_token: str, audience: str) -> str:
        """The app whose app-level token for `audience` this is.

        Raises auth.invalid_token or auth.token_expired, and for another audience the code that
        `wrong_audience_code` names.
        """
        token = self._known(access_token)
        if token.kind != "app":
            raise ServiceError(
                "auth.invalid_token", "Only an app-level token (client_credentials) opens this"
            )
        self._refuse_expired(token)
        if token.audience != audience:
            raise ServiceError(
                self._settings.wrong_audience_code,
                f"This token is not for the audience {audience}; mint one that is",
            )
        return token.app_id

    def _known(self, access_token: str) -> Token:
        token = self._issued.get(access_token)
        if token is None or token.invalid or token.kind == "code":
            raise ServiceError(
                "auth.invalid_token",
                "The access token is malformed, revoked, or not of this service",
            )
        return token

    def _is_over(self, token: Token) -> bool:
        return token.expires_at_ms <= self._clock.now_ms()

    def _refuse_expired(self, token: Token) -> None:
        if self._is_over(token):
            raise ServiceError(
                "auth.token_expired", "The access token has expired; get a fresh one"
            )

    # Control

    def expire(self, kind: Kind) -> int:
        """End the lifetime of all live tokens of a kind; returns how many."""
        live = [
            token
            for token in self._issued.values()
            if token.kind == kind and not self._is_over(token)
        ]
        for token in live:
            token.expires_at_ms = self._clock.now_ms()
        return len(live)

    def invalidate(self, kind: Kind) -> int:
        """Make all tokens of a kind unknown to the service; returns how many."""
        live = [each for each in self._issued.values() if each.kind == kind and not each.invalid]
        for token in live:
            token.invalid = True
        return len(live)

    def revoke(self, merchant_email: str | None = None) -> list[Consent]:
        """The merchant (or every one) takes the permission back."""
        hit = [
            consent
            for consent in self._consents.values()
            if not consent.revoked and merchant_email in (None, consent.merchant_email)
        ]
        for consent in hit:
            consent.revoked = True
        return hit

    def summary(self) -> list[dict[str, Any]]:
        """Tokens without their text, for the state dump."""
        return [
            {
                "kind": token.kind,
                "app_id": token.app_id,
                "merchant": token.consent.merchant_email if token.consent else None,
                "expires_in_s": (token.expires_at_ms - self._clock.now_ms()) // 1000,
                "audience": token.audience,
                "scopes": list(token.scopes),
                "invalid": token.invalid,
                "consent_revoked": bool(token.consent and token.consent.revoked),
            }
            for token in self._issued.values()
            if token.kind != "code"
        ]


def _in_force(consent: Consent | None) -> Consent:
    if consent is None or consent.revoked:
        raise ServiceError(
            "auth.consent_revoked",
            "The merchant uninstalled or revoked the app; ask for consent again",
        )
    return consent
