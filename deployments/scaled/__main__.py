"""`python -m deployments.scaled up|demo|admit|down|status`: the commands of `./run` for a grid with several servers."""

import sys

from deployments.onemachine.__main__ import main
from deployments.scaled.grid import ScaledGrid

if __name__ == "__main__":
    sys.exit(main(ScaledGrid))
