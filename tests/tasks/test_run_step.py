"""Steps as Prefect tasks: their names, and the errors that they retry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prefect import flow, runtime

from deepgrid.errors import GridError, InputError, ServiceError
from tasks.run_step import run_step
from tests.temporary_prefect import temporary_prefect

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def _prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


class Steps:
    """Counts its calls, and fails with these errors first."""

    def __init__(self, *errors: GridError) -> None:
        self._errors = list(errors)
        self.calls = 0

    async def settle(self, minutes: int) -> str:
        """Settle the job."""
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return f"{runtime.task_run.name}, {minutes} min, {runtime.task_run.run_count}"


@flow
async def settling(steps: Steps, name: str) -> str:
    return await run_step(name, steps.settle, 7)


async def test_a_task_run_has_the_name_of_its_step_to_the_letter() -> None:
    name = "approve {self._errors} of {0} {"  # a provider chooses the name of its cluster
    assert await settling(Steps(), name) == f"{name}, 7 min, 1"


async def test_a_step_is_tried_again_after_a_transient_error() -> None:
    steps = Steps(ServiceError("The service is down."))
    assert await settling(steps, "settle") == "settle, 7 min, 2"


async def test_a_step_fails_at_once_on_another_error() -> None:
    steps = Steps(InputError("The definition is wrong."))
    with pytest.raises(InputError):
        await settling(steps, "settle")
    assert steps.calls == 1
