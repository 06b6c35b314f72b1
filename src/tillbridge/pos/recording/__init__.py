"""Recording what an adapter reads, as a case folder without secrets and customers' data.

`record.py` finds what it reads, and relays its HTTP; `redact.py` replaces what nobody else should
see.
"""
