"""`python -m tillbridge`."""

from tillbridge.cli import main

main()
