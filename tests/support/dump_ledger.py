"""Print a ledger as SQL, for `tests/data/ledgers/`: `python -m tests.support.dump_ledger FILE`."""

import sqlite3
import sys
from contextlib import closing

if __name__ == "__main__":
    with closing(sqlite3.connect(sys.argv[1])) as connection:
        sys.stdout.write("\n".join(connection.iterdump()) + "\n")
