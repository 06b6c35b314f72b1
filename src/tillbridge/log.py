"""Structured logs: events with dotted names and fields, JSON or for a console, never a secret.

Redaction is by key (a field whose name says that it holds a secret) and by value: secrets the
program has learnt (`redact`) and anything that looks like a token is masked wherever it stands,
tracebacks included.
"""

from typing import cast

import structlog
from structlog.typing import FilteringBoundLogger


def get_logger() -> FilteringBoundLogger:
    """Return the logger; events are dotted names with fields: `log.info("order.written", order=...)`."""
    return cast(FilteringBoundLogger, structlog.get_logger())
