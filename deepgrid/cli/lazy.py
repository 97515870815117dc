"""Commands that are imported when they run. Their names and help texts are known in advance.

So `dps --help` imports no heavy library, and the modules of commands can keep their imports at the top.

The library never imports Prefect. Verbs that need it come from the Prefect project, run from a checkout. Its
distribution maps each name, such as `provider.serve`, to a function in the entry-point group `deepgrid.cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from deepgrid.cli.narrow_help import fit_help
from deepgrid.errors import ConfigurationError
from deepgrid.extras import needs

Verb = typer.Typer | Callable[..., Any]


class LazyCommand(TyperCommand):
    """A command or a group that `load` imports at its first use."""

    def __init__(self, name: str, help_text: str, load: Callable[[], Verb], *, panel: str | None = None) -> None:
        super().__init__(name, help=help_text, rich_help_panel=panel)
        self._load = load

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the real command, which parses the rest of the arguments."""
        return as_command(self._load()).make_context(info_name, args, parent, **extra)


def as_command(verb: Verb) -> Any:
    """Return the command that typer builds from a group, or from a function."""
    if isinstance(verb, typer.Typer):
        return fit_help(typer.main.get_group(verb))  # without the completion options of a root
    single = typer.Typer(add_completion=False)
    single.command()(verb)
    return fit_help(typer.main.get_command(single))


def group_with(base: type[TyperGroup], *commands: LazyCommand) -> type[TyperGroup]:
    class WithCommands(base):  # type: ignore[misc, valid-type]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for command in commands:
                self.add_command(command)

    return WithCommands


ENTRY_POINTS = "deepgrid.cli"
VERBS = {
    "provider": {
        "init": "Set up your cluster: asks questions, checks each answer, writes one settings file, updates Prefect.",
        "units": "Print or write systemd units of a provider's machine.",
        "register": "Propose your cluster to the operator, as Slurm and the provider block describe it.",
        "doctor": "Check the set-up of a cluster: Prefect, Slurm, hooks, accounts, chain, services.",
        "authorized-keys": "Print the supervisor's public SSH key.",
        "serve": "Run the supervisor of a cluster: claim jobs, run them on Slurm, settle them.",
        "drain": "Stop claiming new jobs for a cluster; claimed jobs continue and are settled.",
        "resume": "Let a drained cluster claim jobs again.",
        "usage": "Show what a cluster earned over a period, how busy it was, and who used it.",
        "backup": "Write the files of a cluster into one archive: keys, settings, state.",
        "restore": "Put the files of a cluster's backup back to their paths.",
        "notify": "Let Prefect notify you of wrong books, silent processes, low gas, degraded clusters.",
        "install-hooks": "Install the hooks that a cluster's Slurm needs; shows them before any change.",
    },
    "operator": {
        "serve": "Follow the chain and assign jobs, until stopped by a signal.",
        "doctor": "Check the set-up of an operator: Prefect, deployments, chain, roles, gas, services.",
        "units": "Print or write systemd units of an operator's machine.",
        "usage": "Show what clusters earned over a period, how busy they were, and who used them.",
        "backup": "Write the operator's files into one archive: key, address book, state.",
        "notify": "Let Prefect notify you of wrong books, silent processes, low gas, degraded clusters.",
        "restore": "Put the files of an operator's backup back to their paths.",
    },
}


def project_verbs(group: str) -> list[LazyCommand]:
    return [LazyCommand(name, text, partial(load, group, name)) for name, text in VERBS[group].items()]


def load(group: str, name: str) -> Verb:
    """Load a verb's function. Raises ConfigurationError when the project or an extra is not installed."""
    for found in entry_points(group=ENTRY_POINTS, name=f"{group}.{name}"):
        with needs(group):
            verb: Verb = found.load()
            return verb
    raise ConfigurationError(
        f"`dps {group} {name}` is part of the Prefect project, which is not installed here.",
        next_step="Run it from a checkout of deepgrid, after `./run setup`.",
    )
