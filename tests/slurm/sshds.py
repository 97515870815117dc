"""Further sshds of the cluster under test, each with lines of its own in its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.ordinary import sshd
from tests.slurm.support import Box

Site = Callable[..., LoginSettings]


@contextmanager
def sshds(box: Box, folder: Path) -> Iterator[Site]:
    """Yield a function that starts an sshd by name, with these lines in its configuration and for this account."""
    with ExitStack() as stack:

        def start(name: str, more: str = "", user: str = box.settings.user) -> LoginSettings:
            (folder / name).mkdir()
            return stack.enter_context(sshd(box, folder / name, user, more))

        yield start
