"""Commands that are imported when they run. Their names and help texts are known before.

So `dps --help` imports nothing heavy, and the modules of the verbs can import what they need at their top.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Verb = typer.Typer | Callable[..., Any]


class LazyCommand(TyperCommand):
    """A command, or a group of them, that `load` imports when it is used."""

    def __init__(self, name: str, help_text: str, load: Callable[[], Verb], *, panel: str | None = None) -> None:
        super().__init__(name, help=help_text, rich_help_panel=panel)
        self._load = load

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, which carries on from here."""
        return as_command(self._load()).make_context(info_name, args, parent, **extra)


def from_module(target: str) -> Callable[[], Verb]:
    """Loads a verb or a group of verbs, named as in `deepgrid.cli.job:job`."""

    def load() -> Verb:
        module, _, attribute = target.partition(":")
        verb: Verb = getattr(import_module(module), attribute)
        return verb

    return load


def as_command(verb: Verb) -> Any:
    """What typer makes of a group of verbs, or of the function of one."""
    if isinstance(verb, typer.Typer):
        return typer.main.get_group(verb)  # without the completion options of a root
    single = typer.Typer(add_completion=False)
    single.command()(verb)
    return typer.main.get_command(single)


def group_with(base: type[TyperGroup], *commands: LazyCommand) -> type[TyperGroup]:
    """A class of groups that have these commands too."""

    class WithCommands(base):  # type: ignore[misc, valid-type]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for command in commands:
                self.add_command(command)

    return WithCommands
