"""A failure of the cluster ends its job for good."""

from __future__ import annotations

from functools import partial

from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from tests.provider.claims import running
from tests.provider.scene import Scene
from tests.slurm.support import Box
from tests.waiting import until


async def test_a_job_whose_node_failed_is_not_started_again(approved: Scene, box: Box) -> None:
    """Slurm requeues some such jobs despite their options. At that time the job is already refunded."""
    session = approved.session
    key = await running(approved, box)
    told: list[str] = []
    box.slurm("scontrol", "update", "nodename=ALL", "state=down", "reason=power")
    try:
        async with carry(session, key, tell=told.append) as carrier:
            await drive(carrier.observe, carrier.act)
            card = await carrier.card()
    finally:
        box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)
        await until(partial(idle, box))
    job = await session.chain.job(key.job_id)
    assert (job.status, job.final_cost_wei) == (JobStatus.FAILED, 0)
    assert job.last_error == "a node of the cluster failed"
    assert (box.folder(key) / "tombstone").exists()
    node = card.values["nodes"]
    assert card.message == f"The job is failed: a node of the cluster failed: {node}."
    assert card.tags == ("failed", "node-failure", "fault:cluster", f"customer:{job.customer}", "cluster:unit")
    assert (card.values["minutes"], card.values["credits"], card.values["earned"]) == ("0", "0", "0")
    kinds = ["claimed at", "started at", "ended as NODE_FAIL", "settled as failed: minutes=0"]
    assert [line for line in told if line.startswith(tuple(kinds))] == told
    assert [line.startswith(kind) for line, kind in zip(told, kinds, strict=True)] == [True] * 4
    assert f"on {node}" in told[1]
    assert card.values["transaction"] in told[3]
    again: list[str] = []
    async with carry(session, key, tell=again.append) as successor:  # as when a fallback settled the job
        await drive(successor.observe, successor.act)
        assert await successor.card() == card
    assert again == told


def idle(box: Box) -> bool:
    """Return whether all nodes accept jobs again."""
    return set(box.slurm("sinfo", "-h", "-N", "-o", "%T").split()) <= {"idle", "mixed", "allocated"}
