"""Templates of configuration files."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def text_templates(package: str, folder: str) -> Environment:
    """Return the templates in a folder of the package, for text that is not HTML. A missing value is an error."""
    loader = PackageLoader(package, folder)
    return Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701
