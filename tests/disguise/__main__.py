"""`.venv/bin/python -m tests.disguise SEED`: run a site in disguise, and print what is wrong with it.

Run it on the disguise's version of Slurm: `tools/with-slurm SUITE .venv/bin/python -m tests.disguise SEED`.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from tests.chain.grid import running_grid
from tests.disguise.disguised_site import disguised_site
from tests.disguise.disguises import Disguise, disguise
from tests.disguise.trial_run import try_out
from tests.slurm.support import open_folder


def main(seed: int) -> int:
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    how = disguise(seed) if seed >= 0 else Disguise()
    print(f"seed {seed}: {how}", flush=True)
    with open_folder() as folder, running_grid(folder / "chain") as grid, disguised_site(how, folder) as site:
        (folder / "provider").mkdir()
        found = asyncio.run(try_out(how, site, grid, folder / "provider"))
    print("\n".join(found) or "nothing is wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
