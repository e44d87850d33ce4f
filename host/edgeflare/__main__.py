"""`python -m edgeflare` is the `edgeflare` command."""

from edgeflare.cli import main

main()
