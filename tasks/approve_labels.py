"""The side effects of `approve_labels`."""

from __future__ import annotations

from deepgrid.operator import approvals
from orchestration.retry_policy import side_effect

read_proposals = side_effect("read proposals")(approvals.read_proposals)
approve = side_effect("approve measurements of {proposal.name}")(approvals.approve)
