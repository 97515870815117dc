"""`python -m tools.scale`: writes docs/explanation/scale.md from the committed figures."""

from __future__ import annotations

from tools.scale.scale_page import SCALE_PAGE, scale_page

if __name__ == "__main__":
    SCALE_PAGE.write_text(scale_page())
