"""The program with a planted defect: a soak that loses nothing of it would prove nothing."""

import os
from contextlib import ExitStack
from unittest.mock import patch

from tests.simulation.mutants import planted
from tillbridge import cli
from tillbridge.daemon.leases import Leases
from tillbridge.ledger import postgresql
from tillbridge.ledger.leases import Cluster

UNFENCED = "leases_exclude_nobody"


def unfence(stack: ExitStack) -> None:
    """Let each bridge serve every store, and the database take what any of them writes."""
    everything = property(lambda cluster: frozenset(each.store for each in cluster.leases))
    stack.enter_context(patch.object(Cluster, "held", everything))
    stack.enter_context(patch.object(Leases, "may_act", lambda _self, _key: True))
    stack.enter_context(patch.object(postgresql, "fence_sql", lambda: "SELECT 1"))


def main() -> None:
    """Be the program."""
    with ExitStack() as stack:
        if os.environ["SOAK_DEFECT"] == UNFENCED:
            unfence(stack)
        else:
            stack.enter_context(planted(os.environ["SOAK_DEFECT"]))
        cli.main()
