"""Self-test of the guarantees "one submission per claim" and "one leader per provider" on a cluster's own file system.

It uses invented names, a harmless command instead of sbatch, and one job of a second on a node. It removes everything
afterwards.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.job_states import phase_of
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.scripts import read_script
from deepgrid.slurm.submit.protocol import job_folder, parse_answer, submission, submissions_command
from deepgrid.slurm.supervision.leader import Leader

# Replaces sbatch: it records that it ran, lasts long enough for two submissions to overlap, and prints id 0 of no job.
FAKE_SBATCH = 'printf x >> "$1"; sleep 1; echo 0'
MANY_CONNECTIONS = 40  # to slurmctld, for a moment; it serves 256 at the same time up to Slurm 24.05, then 64
LOOK_AT_NODE = read_script("config.sh", "look_at_node.sh")
STEP = "Put grid_root on a file system whose locks work on all its machines (NFS: version 4), or on another one."


@dataclass(frozen=True, slots=True)
class SelfTestSettings:
    """Timeouts of the self-test, in seconds."""

    lock_timeout_s: float = 30.0  # within which the lock of a former leader must be free
    node_timeout_s: float = 30.0  # within which a node must run the job


SELFTEST_DEFAULTS = SelfTestSettings()


async def run_selftest(
    login: Login,
    cluster: Cluster,
    storage: Sequence[str],
    settings: SelfTestSettings = SELFTEST_DEFAULTS,
    *,
    nodes: bool = True,
) -> list[Finding]:
    """Return findings on leadership, on submission, and on a node's view: the grid's folder and the roots of `storage`.

    Takes about half a minute. Without `nodes` no job runs, because no node can run one.
    """
    leadership, submission, node = await asyncio.gather(
        _test_leadership(login, cluster, settings.lock_timeout_s),
        _test_submission(login, cluster),
        _test_node(cluster, storage, settings.node_timeout_s if nodes else 0.0),
    )
    return [leadership, submission, *node]


async def _test_leadership(login: Login, cluster: Cluster, timeout_s: float) -> Finding:
    name = f"doctor-{secrets.token_hex(8)}"
    first, second = (Leader(login, Cluster(login, cluster.settings), name) for _ in range(2))
    root = cluster.settings.grid_root
    try:
        led = [await first.attempt(), await second.attempt()]
        first.close()
        async with asyncio.timeout(timeout_s):
            await second.elected()
    except GridError as error:
        return Finding.of("leading", error)
    except TimeoutError:
        return Finding("leading", Level.BAD, f"The lock of a leader that is gone is not freed on {root}.", STEP)
    finally:
        first.close()
        second.close()
        await _remove(login, f"{root}/leaders/{name}")
    if led != [True, False]:
        return Finding("leading", Level.BAD, f"Two supervisors can lead at the same time on {root}.", STEP)
    return Finding("leading", Level.GOOD, "One of two supervisors leads. The other takes over when it is gone.")


async def _test_submission(login: Login, cluster: Cluster) -> Finding:
    settings, body = cluster.settings, b"#!/bin/sh\n"
    key = JobKey(0, f"0x{secrets.token_hex(20)}", 0, int(time.time()))
    count = f"{job_folder(settings, key)}/run/count"
    wanted = submission(key, body, 1, ["sh", "-c", FAKE_SBATCH, "sh", count])
    command = submissions_command(settings, "", [wanted])
    try:
        answers = await asyncio.gather(*(login.run(command, stdin=body) for _ in range(2)))
        words = sorted(parse_answer(answer, key)[0] for answer in answers)
        ran = (await login.run(["cat", count])).text
    except GridError as error:
        return Finding("submitting", Level.BAD, error.message, error.next_step or STEP)
    finally:
        await _remove(login, job_folder(settings, key), f"{settings.grid_root}/spool/.reserve.{key.comment}")
    if (words, ran) != (["adopted", "submitted"], "x"):
        found = f"Two concurrent submissions of one claim ran {len(ran)} times on {settings.grid_root}."
        return Finding("submitting", Level.BAD, found, STEP)
    return Finding("submitting", Level.GOOD, "Two concurrent submissions of one claim start one job, and both find it.")


async def _test_node(cluster: Cluster, storage: Sequence[str], timeout_s: float) -> list[Finding]:
    """Return findings on a job's view of its node. Does not wait for a partition that is busy or down."""
    if not timeout_s:
        return []
    root = cluster.settings.grid_root
    command = f"set -- {shlex.join([str(MANY_CONNECTIONS), *storage])}\n{LOOK_AT_NODE}"
    try:
        state, output = await cluster.batch.probe(f"doctor-{secrets.token_hex(8)}", command, timeout_s)
    except GridError as error:
        if error.transient:
            return [Finding("nodes", Level.WARNING, f"It is unknown whether nodes see {root}: {error.message}")]
        return [Finding.of("nodes", error)]
    if output:
        node, connections, *faulty = output.splitlines()
        seen = Finding("nodes", Level.GOOD, f"The login node reads in {root} what the node {node} wrote.")
        return [seen, _judge_storage(node, faulty), *_judge_connections(node, connections)]
    if phase_of(state) is Phase.ENDED:
        step = "Use a folder on a file system that login node and nodes share, at the same path."
        return [Finding("nodes", Level.BAD, f"The nodes do not see {root}: a job there ended {state}.", step)]
    words = f"It is unknown whether nodes see {root}: a job was {state} for {timeout_s:.0f} s."
    return [Finding("nodes", Level.WARNING, words, "Run the doctor again when the partition has a free node.")]


def _judge_storage(node: str, faulty: Sequence[str]) -> Finding:
    if not faulty:
        return Finding("storage", Level.GOOD, f"Jobs find all storage folders on the node {node}.")
    words = f"On the node {node} these are no folders of mode 1777: {', '.join(faulty)}. All jobs fail there."
    return Finding("storage", Level.BAD, words, "Make them on the nodes with mode 1777, or correct storage_root.")


def _judge_connections(node: str, held: str) -> Iterator[Finding]:
    if not held.isdecimal():  # a job of root proves nothing about jobs of customers
        return
    words = f"A job on the node {node} could hold {held} connections to slurmctld"
    if int(held) < MANY_CONNECTIONS:
        yield Finding("connections", Level.GOOD, f"{words}, and no more.")
    else:
        step = "Limit them for each account on every node (docs/how-to/provider.md, Connections to slurmctld)."
        yield Finding("connections", Level.WARNING, f"{words}: jobs can keep Slurm from answering.", step)


async def _remove(login: Login, *paths: str) -> None:
    with suppress(GridError):  # if the login node is unreachable now, small files stay on it
        await login.run(["rm", "-rf", *paths])
