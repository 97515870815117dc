"""`python -m tools.sync_client [--check]`: writes deepgrid/client/sync from the async classes of deepgrid/client.

With `--check` it writes nothing, and fails if a file is not what the async class gives.
"""

from __future__ import annotations

import sys

from tools.sync_client.modules import SYNC, formatted, generated, sources


def main() -> int:
    """Write the modules, or name those that are not fresh."""
    check = "--check" in sys.argv[1:]
    stale = []
    for source in sources():
        target = SYNC / source.name
        text = formatted(generated(source))
        if not target.exists() or target.read_text() != text:
            stale.append(target.name)
            if not check:
                target.write_text(text)
    if stale and check:
        print(f"Not fresh in deepgrid/client/sync: {', '.join(stale)}. Run `.venv/bin/python -m tools.sync_client`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
