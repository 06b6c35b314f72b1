"""Recording what an adapter saw and said, as a case folder without secrets and customers' data.

`edges.py` finds what it reads, `relay.py` listens to its HTTP, `redact.py` makes other words of
what nobody else should see, `record.py` does it all.
"""
