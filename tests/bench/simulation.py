"""`./run bench simulation`: compares policies of the meta-scheduler on generated workloads
(docs/explanation/scheduling.md).

Arguments go to `python -m tools.simulation`. Exit status 1: the meta-scheduler misses one of the bars:
fairness under overload, slowdown and utilisation against first come, first served at the cheapest cluster.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tools.simulation import __main__ as simulate
from tools.simulation import comparison


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        status = simulate.main([*sys.argv[1:], "--out", folder])
        if status:
            return status
        figures = comparison.bars(comparison.read_csv(Path(folder) / "simulation.csv"))
    print(json.dumps(figures))
    return 0 if comparison.met(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
