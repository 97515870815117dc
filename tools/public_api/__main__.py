"""`python -m tools.public_api`: writes released.txt. Run it for each release."""

from __future__ import annotations

from tools.public_api.snapshot import RELEASED, current

RELEASED.write_text(current())
