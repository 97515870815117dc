"""`python -m tools.sync_client [--check]`: writes the stub deepgrid/client/sync/classes.pyi.

With `--check` it writes nothing, and fails if the stub does not match the async classes.
"""

from __future__ import annotations

import sys

from tools.sync_client.stub import PATH, stub


def main() -> int:
    """Write the stub, or say that it is out of date."""
    text = stub()
    if PATH.exists() and PATH.read_text() == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PATH.name} is not fresh. Run `.venv/bin/python -m tools.sync_client`.")
        return 1
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
