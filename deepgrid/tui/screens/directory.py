"""The screens by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepgrid.tui.screens.cluster_list import ClustersScreen
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.job_details import JobScreen
from deepgrid.tui.screens.job_log import LogScreen
from deepgrid.tui.screens.money_forms import AllowanceForm, TopUpForm, TransferForm
from deepgrid.tui.screens.submit_form import SubmitForm

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob


def screen_of(name: str, job: AsyncJob | None) -> GridScreen:
    """A new screen. Those of a job need one; the form of a submission may start from one."""
    if name == "submit":
        return SubmitForm(again=job)
    if job is not None:
        return {"log": LogScreen, "job": JobScreen, "top up": TopUpForm}[name](job)
    return {"clusters": ClustersScreen, "transfer": TransferForm, "allowance": AllowanceForm}[name]()
