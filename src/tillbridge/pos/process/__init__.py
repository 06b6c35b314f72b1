"""The process adapter: an adapter that is a program of its own, in whatever language.

It speaks JSON lines over stdin and stdout (`docs/adapters/process.md`), for tills whose drivers
are .NET, Java or 32-bit ODBC. `wire.py` has the messages, `program.py` keeps one program
running, `adapter.py` makes an adapter of it.
"""

from tillbridge.pos.process.adapter import ADAPTER

__all__ = ["ADAPTER"]
