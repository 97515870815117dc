"""`python -m deepgrid.cli` is `dps`."""

from deepgrid.cli.main import main

main()
