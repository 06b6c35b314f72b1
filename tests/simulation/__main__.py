"""`python -m tests.simulation --seed N`: plays a restaurant, and prints what went wrong."""

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of texts, too, is the seed's
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])

from tests.simulation.command import main

sys.exit(main())
