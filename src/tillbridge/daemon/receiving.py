"""The receiver's settings, as the daemon uses them."""

from tillbridge.config import LoadedSettings, ReceiverSettings


def receiver_settings(loaded: LoadedSettings) -> ReceiverSettings:
    """Return the receiver's settings, with paths that do not depend on the current folder."""
    receiver = loaded.settings.receiver
    placed = {
        name: loaded.base_dir / path
        for name in ("tls_cert", "tls_key")
        if (path := getattr(receiver, name)) is not None
    }
    return receiver.model_copy(update=placed) if placed else receiver
