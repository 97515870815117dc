"""The side effects of `expire_claims`."""

from __future__ import annotations

from deepgrid.operator import expiry
from orchestration.retry_policy import side_effect

read_overdue = side_effect("read overdue jobs")(expiry.read_overdue)
take_back = side_effect("take back job {taken.job.id} from {taken.cluster}")(expiry.take_back)
