"""Commands that are imported when they run. Their names and help texts are known before.

So `dps --help` imports no heavy library, and modules of verbs can have all imports at their top.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Verb = typer.Typer | Callable[..., Any]


class LazyCommand(TyperCommand):
    """A command or a group that `load` imports at its first use."""

    def __init__(self, name: str, help_text: str, load: Callable[[], Verb], *, panel: str | None = None) -> None:
        super().__init__(name, help=help_text, rich_help_panel=panel)
        self._load = load

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, which parses the rest of the arguments."""
        return as_command(self._load()).make_context(info_name, args, parent, **extra)


def from_module(target: str) -> Callable[[], Verb]:
    """A loader of a verb or a group, named as in `deepgrid.cli.verbs.job:job`."""

    def load() -> Verb:
        module, _, attribute = target.partition(":")
        verb: Verb = getattr(import_module(module), attribute)
        return verb

    return load


def as_command(verb: Verb) -> Any:
    """The command that typer builds from a group, or from a function."""
    if isinstance(verb, typer.Typer):
        return typer.main.get_group(verb)  # without the completion options of a root
    single = typer.Typer(add_completion=False)
    single.command()(verb)
    return typer.main.get_command(single)


def group_with(base: type[TyperGroup], *commands: LazyCommand) -> type[TyperGroup]:
    """A group class with these additional commands."""

    class WithCommands(base):  # type: ignore[misc, valid-type]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for command in commands:
                self.add_command(command)

    return WithCommands
