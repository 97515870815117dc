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
    box.slurm("scontrol", "update", "nodename=ALL", "state=down", "reason=power")
    try:
        async with carry(session, key) as carrier:
            await drive(carrier.observe, carrier.act)
    finally:
        box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)
        await until(partial(idle, box))
    job = await session.chain.job(key.job_id)
    assert (job.status, job.final_cost_wei) == (JobStatus.FAILED, 0)
    assert job.last_error == "a node of the cluster failed"
    assert (box.folder(key) / "tombstone").exists()


def idle(box: Box) -> bool:
    """Return whether all nodes accept jobs again."""
    return set(box.slurm("sinfo", "-h", "-N", "-o", "%T").split()) <= {"idle", "mixed", "allocated"}
