"""Into a running job on the real grid: commands, a terminal, a port, and the ends of sessions."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.support import steps

pytestmark = pytest.mark.long


async def test_exec(customer: Customer) -> None:
    job_id = customer.submit(steps("sleep 600"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    done = customer.dps("job", "exec", str(job_id), "--", "sh", "-c", "id -u; echo oh >&2; exit 7")
    assert done.returncode == 7
    customer.dps("job", "cancel", str(job_id), check=0)
