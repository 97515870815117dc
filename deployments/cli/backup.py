"""`backup` and `restore` of `dps provider` and `dps operator`: the files of a role in one archive."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.cli.access.confirmation import REFUSED, confirm, on_terminal
from deepgrid.cli.error_boundary import runs
from deepgrid.client.display.text import moment_utc
from deepgrid.errors import ConfigurationError
from deepgrid.files.file_backup import FilesManifest, Restore, Role, back_up_files, state_files
from deepgrid.plain_text import plain
from deployments.cli.operator import OperatorName
from deployments.cli.serving import require_prefect
from deployments.provider.setup.answer_checks import path_of
from deployments.provider.setup.document import Document

NEEDED = ("grid.address_book", "grid.key_file", "login.key_file", "login.known_hosts_file")
OPTIONAL = (("prefect", "login_file"), ("login", "jump_key_file"), ("login", "jump_known_hosts_file"))
REBUILT = ("operator.sqlite",)  # from the chain

SettingsFile = Annotated[Path, typer.Argument(metavar="FILE", help="The settings file of `dps provider init`.")]
Archive = Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The backup, a tar file.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write the files without asking.")]


def back_up_provider(file: SettingsFile, archive: Archive) -> None:
    """Write the files of a cluster into one archive that only you can read. The supervisor may run meanwhile."""
    document = Document.read(file.expanduser())
    if not document.before:
        raise ConfigurationError(f"There is no settings file {file}.", next_step="Make one by `dps provider init`.")
    answers = document.answers()
    if missing := [key for key in (*NEEDED, "cluster", "supervisor.state") if not answers.get(key)]:
        raise ConfigurationError(f"{file} lacks {', '.join(missing)}.", next_step="Complete it by `dps provider init`.")
    optional = (document.values().get(section, {}).get(name, "") for section, name in OPTIONAL)
    named = [*(path_of(answers[key]) for key in NEEDED), *(path_of(file) for file in optional if file)]
    state = path_of(answers["supervisor.state"])
    _require_outside(archive, state)
    files = [document.path, *named, *state_files(state)]
    _tell(archive, back_up_files(archive, "provider", answers["cluster"], files))


@runs
async def back_up_operator(name: OperatorName, archive: Archive) -> None:
    """Write the operator's files into one archive that only you can read. The operator may run meanwhile."""
    require_prefect()
    settings = (await load_block(Operator, name)).settings()
    _require_outside(archive, settings.state)
    files = [settings.book, settings.key_file, *state_files(settings.state, REBUILT)]
    _tell(archive, back_up_files(archive, "operator", name, files))


def restore_provider(archive: Archive, yes: Yes = False) -> None:
    """Put the files of a cluster back to their paths. The old machine must be stopped for good."""
    found = _restore(archive, "provider", yes=yes)
    file = next(iter(found.paths.values()))
    print(f"Next: `dps provider init {file} --yes`, then `dps provider serve {found.name}`.")


def restore_operator(archive: Archive, yes: Yes = False) -> None:
    """Put the operator's files back to their paths. The old machine must be stopped for good."""
    found = _restore(archive, "operator", yes=yes)
    print(f"Next: restore or make the block deepgrid-operator/{found.name}, then `dps operator serve {found.name}`.")


def _require_outside(archive: Path, state: Path) -> None:
    """Raise ConfigurationError for an archive in the state folder, because a backup contains all its files."""
    if archive.absolute().parent.resolve().is_relative_to(state.resolve()):
        raise ConfigurationError(
            f"{archive} is in the state folder {state}, so each backup would hold those before it.",
            next_step="Choose another folder for the backup.",
        )


def _tell(archive: Path, manifest: FilesManifest) -> None:
    for path in manifest.paths.values():
        print(plain(path))
    size = archive.stat().st_size
    print(f"Wrote {len(manifest.paths)} files to {archive} ({size:,} bytes). It holds keys, so keep it as secret.")


def _restore(archive: Path, role: Role, *, yes: bool) -> FilesManifest:
    with tempfile.TemporaryDirectory(prefix="deepgrid-restore.") as folder:  # mode 0700
        restore = Restore(archive, Path(folder), role)
        manifest = restore.manifest
        print(f"The backup of {plain(manifest.name)}, made at {moment_utc(manifest.made_at)}.")
        for path in restore.missing:
            print(f"new   {plain(str(path))}")
        for path in restore.same:
            print(f"same  {plain(str(path))}")
        if restore.missing and not yes and not on_terminal():
            print("Nothing was changed; run it with --yes to write them.")
            raise typer.Exit(REFUSED)
        if restore.missing:
            confirm("Write these files?", force=yes)
            restore.apply()
        print(f"Restored {len(restore.missing)} files.")
        return manifest
