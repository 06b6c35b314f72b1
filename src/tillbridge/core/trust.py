"""Which certificates the bridge trusts: those that the system does."""

import ssl


def system_trust() -> ssl.SSLContext:
    """Return a context that checks certificates against the system's store."""
    import truststore  # noqa: PLC0415 -- only for TLS, and reading a system's store takes time

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
