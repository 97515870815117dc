"""Explains a missing optional dependency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deepgrid.errors import ConfigurationError


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raise ConfigurationError for a missing library that `pip install deepgrid[extra]` installs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "deepgrid").startswith("deepgrid"):
            raise
        raise ConfigurationError(
            f"The library {error.name} is not installed.", next_step=f"Install it: pip install 'deepgrid[{extra}]'."
        ) from None
