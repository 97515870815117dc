"""Login nodes as sites have them, by real sshds: few sessions, shells, jump hosts, several nodes, rotated keys."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deepgrid.errors import ConfigurationError, SlurmUnreachable
from deepgrid.slurm.ssh.login import Login
from tests.slurm.leaders import leading
from tests.slurm.people import account
from tests.slurm.sshds import Site
from tests.slurm.support import new_key

ODD = 'it\'s !!\n2nd \\n \\0101 %s $HOME `id` "q" é\n\n'


@contextmanager
def shell_account(shell: str) -> Iterator[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with account(shell) as name:
        yield name


@pytest.mark.situation(
    "ssh",
    "`MaxSessions` of sshd is 1, 2 or 4",
    "commands wait for a free session, the leader's lock stays",
)
@pytest.mark.parametrize("sessions", [1, 2, 4])
async def test_commands_share_the_sessions_that_sshd_allows_and_the_lead_stays(site: Site, sessions: int) -> None:
    """A refused session once broke the connection, with all its commands and the leader's lock."""
    settings = site("few", f"MaxSessions {sessions}")
    async with leading(settings, f"few-{sessions}-{new_key().job_id}") as (first, holding):
        commands = (first.login.run(["sh", "-c", f"sleep 0.1; echo {number}"]) for number in range(8))
        answers = await asyncio.gather(*commands)
        assert [answer.text for answer in answers] == [f"{number}\n" for number in range(8)]
        assert first.leads and not holding.done() and first.epoch == 1
        assert first.login.session_limit == sessions
        assert await first.login.count_sessions(9) == sessions


async def test_commands_that_wait_too_long_for_a_session_do_not_break_the_others(site: Site) -> None:
    login = Login(site("two", "MaxSessions 2"))
    try:
        slow = [asyncio.create_task(login.run(["sh", "-c", "sleep 3; echo slow"])) for _ in range(2)]
        await asyncio.sleep(1)
        with pytest.raises(SlurmUnreachable, match="had no free session in time: it allows 2") as found:
            await login.run(["true"], timeout_s=0.7)
        assert "MaxSessions" in found.value.next_step
        assert [one.text for one in await asyncio.gather(*slow)] == ["slow\n"] * 2
    finally:
        await login.close()


@pytest.mark.situation(
    "ssh",
    "`MaxSessions` of sshd is 0",
    "the error names the setting",
)
async def test_a_login_node_without_sessions_says_so(site: Site) -> None:
    login = Login(site("none", "MaxSessions 0"))
    try:
        with pytest.raises(SlurmUnreachable, match="allows no session"):
            await login.run(["true"])
    finally:
        await login.close()


@pytest.mark.situation(
    "ssh",
    "the login shell is tcsh, csh or a restricted bash",
    "commands run",
)
@pytest.mark.parametrize("shell", ["/bin/tcsh", "/bin/bsd-csh", "/bin/rbash"])
async def test_commands_run_under_any_login_shell(site: Site, shell: str) -> None:
    """csh reads no line ends and no exclamation marks in quotes, so nothing ran under it."""
    with shell_account(shell) as user:
        login = Login(site("shell", user=user))
        try:
            done = await login.run(["sh", "-c", 'cat; printf %s "$1" >&2; exit 7', "sh", ODD], stdin=b"\0in")
            assert (done.exit_status, done.stdout, done.stderr) == (7, b"\0in", ODD.encode())
            assert (await login.run(["printf", "%s", ODD * 400])).stdout == ODD.encode() * 400
            channel = await login.open_line_channel(["sh", "-c", 'read -r line; echo "got $line"'])
            assert await channel.ask("a line", 30) == "got a line"
            channel.close()
        finally:
            await login.close()


@pytest.mark.situation(
    "ssh",
    "the login shell is nologin, or sshd has a ForceCommand",
    "the error quotes what the server said",
)
@pytest.mark.parametrize(
    ("shell", "more", "said"),
    [
        ("/usr/sbin/nologin", "", "This account is currently not available."),
        ("/bin/sh", "ForceCommand echo Maintenance until noon; exit 1", "it said: Maintenance until noon"),
        ("/bin/false", "", "ended the session before it ran the command."),
    ],
)
async def test_a_server_that_runs_no_commands_is_quoted(site: Site, shell: str, more: str, said: str) -> None:
    with shell_account(shell) as user:
        login = Login(site("closed", more, user=user))
        try:
            with pytest.raises(SlurmUnreachable) as found:
                await login.run(["true"])
            assert said in found.value.message and "login shell" in found.value.next_step
            channel = await login.open_line_channel(["cat"])
            with pytest.raises(SlurmUnreachable) as found:
                await channel.read_line(30)
            assert said in found.value.message
            channel.close()
        finally:
            await login.close()


@pytest.mark.situation(
    "ssh",
    "sshd asks for a second factor",
    "the error says so",
)
async def test_a_login_that_asks_for_more_than_a_key_says_so(site: Site) -> None:
    login = Login(site("factors", "AuthenticationMethods publickey,publickey"))
    try:
        with pytest.raises(ConfigurationError, match="more than a key: publickey"):
            await login.run(["true"])
    finally:
        await login.close()
