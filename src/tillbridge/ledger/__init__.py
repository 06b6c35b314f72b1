"""The ledger: one SQLite file that remembers what was received, written and accepted."""
