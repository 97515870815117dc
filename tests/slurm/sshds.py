"""Further sshds of the cluster under test, each with lines of its own in its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.ordinary import sshd
from tests.slurm.support import Box

# Runs the rest with an empty folder in place of the first argument, like a machine that does not share that folder.
HIDING = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs deepgrid-test "$0" && exec "$@"')
Site = Callable[..., LoginSettings]


@contextmanager
def sshds(box: Box, folder: Path) -> Iterator[Site]:
    """Yield a function that starts an sshd by name, with these lines in its configuration and for this account."""
    with ExitStack() as stack:

        def start(
            name: str, more: str = "", user: str = box.settings.user, without: Sequence[Path] = ()
        ) -> LoginSettings:
            (folder / name).mkdir()
            prefix = [word for place in without for word in (*HIDING, str(place))]
            return stack.enter_context(sshd(box, folder / name, user, more, prefix))

        yield start


def pool(*nodes: LoginSettings, port: int, hosts: tuple[str, ...]) -> LoginSettings:
    """Return one setting for login nodes at several addresses of this machine."""
    keys = [node.known_hosts_file.read_text().split(" ", 1)[1] for node in nodes]
    known = nodes[0].known_hosts_file.with_name("known_pool")
    known.write_text("".join(f"[{host}]:{port} {key}" for host, key in zip(hosts, keys, strict=True)))
    return replace(nodes[0], host=hosts[0], other_hosts=hosts[1:], port=port, known_hosts_file=known)
