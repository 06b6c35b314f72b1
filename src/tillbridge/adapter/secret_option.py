"""A secret among an adapter's options, said as everywhere in bridge.toml.

`{ file = "..." }`, `{ env = "..." }`, `{ credential = "..." }`, or text. Not imported by
`tillbridge.adapter` itself: most tills have no secret.
"""

from pathlib import Path

from pydantic import SecretStr

from tillbridge.config import Secret, SecretSource
from tillbridge.configfile.secrets import resolve_secret
from tillbridge.errors import ConfigError
from tillbridge.redaction import learn_secret

__all__ = ["Secret", "revealed"]


def revealed(secret: SecretStr | SecretSource, *, option: str, base_dir: Path) -> str:
    """Return the secret that an option names, and mask it in logs from now on.

    Relative paths count from `base_dir`. Raises ValueError, in words, where it cannot be read.
    """
    try:
        text = resolve_secret(secret, key=option, base_dir=base_dir).get_secret_value()
    except ConfigError as failure:
        raise ValueError(f"{failure} {failure.fix}".strip()) from failure
    learn_secret(text)
    return text
