"""What one submission a claim and one leader a provider rest on, tried out for real on a cluster's own file system.

By made-up names, with a harmless command in sbatch's place, and one job of a second on a node. Nothing stays behind.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.commands import OUTAGE_MESSAGES, phase_of
from deepgrid.slurm.setup.checkup import Finding, Level
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import INTENT_PATIENCE_S, job_folder, parse_answer, protocol
from deepgrid.slurm.supervision.leader import Leader

FREED_WITHIN_S = 30.0
NODE_WITHIN_S = 30.0
# In sbatch's place: notes that it ran, takes its time, so that two at once would meet, prints an id of no job.
NOTE = 'printf x >> "$1"; sleep 1; echo 0'
STEP = "Put grid_root on a file system whose locks hold for all who use it (NFS: version 4), or on another one."


async def run_selftest(login: Login, cluster: Cluster) -> list[Finding]:
    """Findings on leading, submitting, and whether the nodes see the grid's folder, after half a minute or so."""
    parts = (_leading(login, cluster), _submitting(login, cluster), _nodes(cluster))
    return list(await asyncio.gather(*parts))


async def _leading(login: Login, cluster: Cluster) -> Finding:
    name = f"doctor-{secrets.token_hex(8)}"
    first, second = (Leader(login, Cluster(login, cluster.settings), name) for _ in range(2))
    root = cluster.settings.grid_root
    try:
        led = [await first.attempt(), await second.attempt()]
        first.close()
        async with asyncio.timeout(FREED_WITHIN_S):
            await second.elected()
    except GridError as error:
        return Finding.of("leading", error)
    except TimeoutError:
        return Finding("leading", Level.BAD, f"The lock of a leader that is gone stays held on {root}.", STEP)
    finally:
        first.close()
        second.close()
        await _remove(login, f"{root}/leaders/{name}")
    if led != [True, False]:
        return Finding("leading", Level.BAD, f"Two supervisors can lead at the same time on {root}.", STEP)
    return Finding("leading", Level.GOOD, "Of two supervisors one leads, and the other one once that is gone.")


async def _submitting(login: Login, cluster: Cluster) -> Finding:
    settings, body = cluster.settings, b"#!/bin/sh\n"
    key = JobKey(0, f"0x{secrets.token_hex(20)}", 0, int(time.time()))
    count = f"{job_folder(settings, key)}/run/count"
    fixed = (INTENT_PATIENCE_S, len(body), OUTAGE_MESSAGES, 1, "", settings.submits_by, "sh", "-c", NOTE, "sh", count)
    command = protocol(settings, "submit", key, *fixed)
    try:
        answers = await asyncio.gather(*(login.run(command, stdin=body) for _ in range(2)))
        words = sorted(parse_answer(answer)[0] for answer in answers)
        ran = (await login.run(["cat", count])).text
    except GridError as error:
        return Finding("submitting", Level.BAD, error.message, error.next_step or STEP)
    finally:
        await _remove(login, job_folder(settings, key))
    if (words, ran) != (["adopted", "submitted"], "x"):
        found = f"Two submissions of one claim at once ran {len(ran)} times on {settings.grid_root}."
        return Finding("submitting", Level.BAD, found, STEP)
    return Finding("submitting", Level.GOOD, "Of two submissions of one claim at once one is done, and both find it.")


async def _nodes(cluster: Cluster) -> Finding:
    """Whether a job's output arrives in the grid's folder; a partition that is busy or down is not waited for."""
    root = cluster.settings.grid_root
    try:
        state, said = await cluster.batch.attempt(f"doctor-{secrets.token_hex(8)}", "uname -n", NODE_WITHIN_S)
    except GridError as error:
        if error.transient:
            return Finding("nodes", Level.WARNING, f"Whether nodes see {root} is not known: {error.message}")
        return Finding.of("nodes", error)
    if said:
        return Finding("nodes", Level.GOOD, f"A node, {said}, writes what the login node reads in {root}.")
    if phase_of(state) is Phase.ENDED:
        step = "Use a folder on a file system that login node and nodes share, at the same path."
        return Finding("nodes", Level.BAD, f"The nodes do not see {root}: a job there ended {state}.", step)
    return Finding(
        "nodes", Level.WARNING, f"Whether nodes see {root} is not known: a job was {state} for {NODE_WITHIN_S:.0f} s.",
        "Ask again when the partition has a free node.",
    )  # fmt: skip


async def _remove(login: Login, folder: str) -> None:
    with suppress(GridError):  # a login node that is away by now keeps a small folder
        await login.run(["rm", "-rf", folder])
