"""Secrets among an adapter's options: written as those of the bridge are, and never shown.

In `bridge.toml`: `{ file = "..." }`, `{ env = "..." }`, `{ credential = "..." }`, or the text.
"""

from pydantic import SecretStr

from tillbridge.adapter.registration import AdapterContext
from tillbridge.config.secrets import Secret, SecretSource, resolve_secret
from tillbridge.core.errors import ConfigError
from tillbridge.core.redaction import learn_secret

__all__ = ["Secret", "read_secret"]


def read_secret(source: SecretStr | SecretSource, option: str, context: AdapterContext) -> str:
    """Return the secret. From now on, it is masked in all logs.

    Call it when the adapter is opened. Raises ValueError that says where the secret was expected.
    """
    try:
        secret = resolve_secret(source, key=option, base_dir=context.base_dir).get_secret_value()
    except ConfigError as failure:
        raise ValueError(str(failure)) from failure
    learn_secret(secret)
    return secret
