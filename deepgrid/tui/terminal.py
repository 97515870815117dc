"""Runs the app in any terminal, even a basic one, and restores it at the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.drivers.linux_driver import LinuxDriver

from deepgrid.errors import ConfigurationError
from deepgrid.tui.grid_app import LOOK_UP, GridApp

if TYPE_CHECKING:
    from deepgrid.client.grid import AsyncGrid

WITHOUT_COLOURS = ("vt", "dumb", "unknown")


class AsciiDriver(LinuxDriver):
    """Writes `?` for what is not ASCII. Bytes of UTF-8 may be control characters to other terminals."""

    def write(self, data: str) -> None:
        super().write(data if data.isascii() else "".join(c if c.isascii() else "?" * cell_len(c) for c in data))


def first_environment() -> dict[str, str]:
    """Return the environment as the user has set it. In the locale C, Python itself sets LC_CTYPE to UTF-8."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    return dict(entry.decode(errors="replace").partition("=")[::2] for entry in entries)


def speaks_utf8(environment: dict[str, str]) -> bool:
    """Return whether the locale uses UTF-8."""
    chosen = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "C")
    return "utf8" in chosen.lower().replace("-", "")


def run_app(customer: str, key: Path, book: Path | None) -> None:
    """Run the app until it is left. Raises the error that ended it."""

    def open_grid() -> AsyncGrid:
        from deepgrid.client.grid import AsyncGrid
        from deepgrid.client.settings import ClientSettings

        settings = ClientSettings(patience_s=1.0)  # an outage is shown, and reads are repeated by the app itself
        if customer:
            return AsyncGrid.read_only(book, settings=settings)
        return AsyncGrid(key, book, settings=settings)

    if not customer and not key.expanduser().exists():
        raise ConfigurationError(
            f"There is no key at {key}.", next_step="Make one with `dps key create`, or give --key."
        )
    environment = first_environment()
    if environment.get("TERM", "dumb").startswith(WITHOUT_COLOURS):
        os.environ["NO_COLOR"] = "1"
    app = GridApp(open_grid, customer, driver_class=None if speaks_utf8(environment) else AsciiDriver)
    app.run(mouse=False)
    if app.in_flight:
        print(f"dps: left while this was sent: {', '.join(app.in_flight.values())}; {LOOK_UP}.")
    if app.failure is not None:
        raise app.failure
