"""The ledger: one SQLite file with everything received, written and accepted."""
