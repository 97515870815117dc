"""What doctor says about login nodes: how many sessions sshd allows, and whether each of the list can be used."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import replace

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings

STEP = "Set MaxSessions 10 or more for this account in sshd_config (a Match User block), and reload sshd."


async def examine_login(login: Login) -> list[Finding]:
    """Return findings on sessions and on the other login nodes, if there are any."""
    wanted = login.settings.max_channels + 1  # and the leader's lock
    try:
        found = list(judge_sessions(await login.count_sessions(wanted), wanted))
    except GridError as error:
        found = [Finding.of("sessions", error)]
    if login.settings.other_hosts:
        found += await _examine_others(login)
    return found


def judge_sessions(allowed: int, wanted: int) -> Iterator[Finding]:
    """Yield what the number of sessions costs that sshd allows on one connection."""
    if allowed >= wanted:
        yield Finding("sessions", Level.GOOD, f"sshd allows the {wanted} sessions at once that the supervisor uses.")
    elif allowed:
        commands = max(allowed - 1, 1)
        words = (
            f"sshd allows {allowed} sessions per connection (MaxSessions): {commands} of {wanted - 1} commands run at"
            " a time. Submissions and cancellations wait for each other; no job is lost."
        )
        yield Finding("sessions", Level.WARNING, words, STEP)
    else:
        words = "sshd allows no session (MaxSessions 0): nothing can be run on the cluster."
        yield Finding("sessions", Level.BAD, words, STEP)


async def _examine_others(login: Login) -> list[Finding]:
    """Return a finding per login node: whether it can be used, and has the same folder as the one in use."""
    settings, mark = login.settings, f"{login.settings.grid_root}/.doctor.{secrets.token_hex(8)}"
    await login.run(["touch", mark])
    try:
        hosts = [node.host for node in settings.endpoints()]
        return list(
            await asyncio.gather(*(_examine_host(replace(settings, host=host, other_hosts=()), mark) for host in hosts))
        )
    finally:
        await login.run(["rm", "-f", mark])


async def _examine_host(settings: LoginSettings, mark: str) -> Finding:
    login, subject = Login(settings), f"login {settings.host}"
    try:
        seen = not (await login.run(["test", "-e", mark])).exit_status
    except GridError as error:
        words = f"{error.message} The supervisor uses another login node meanwhile."
        return Finding(subject, Level.WARNING, words, error.next_step)
    finally:
        await login.close()
    if seen:
        return Finding(subject, Level.GOOD, f"{settings.host} can be used, and has the same {settings.grid_root}.")
    words = f"{settings.host} has another {settings.grid_root}: a job could be submitted twice when it is used."
    return Finding(subject, Level.BAD, words, "Mount the shared folder there, or remove the host from the login block.")
