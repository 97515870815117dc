"""The side effects of `auto_top_up`."""

from __future__ import annotations

from deepgrid.operator import delegated_top_ups
from orchestration.retry_policy import side_effect

plan_slices = side_effect("plan slices")(delegated_top_ups.plan_slices)
buy_slice = side_effect("buy {wanted.minutes} min for job {wanted.job.id}")(delegated_top_ups.buy_slice)
tell_unpaid = side_effect("say that job {unpaid.job.id} gets no more time")(delegated_top_ups.tell_unpaid)
