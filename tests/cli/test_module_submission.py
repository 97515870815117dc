"""A workflow with modules through the real services: the provider gets their steps and commits."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.workflow.models.walk import steps_in
from tests.cli.live import Dps, Party
from tests.modules.conftest import origin  # noqa: F401 - a fixture
from tests.modules.support import GREET, Origin

JOB = """\
resources: {{tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}}
steps: [{{use: {{source: '{source}', args: [{{key: WHO, value: Ada}}], exportEnvAs: G}}}}]
"""


async def test_the_provider_gets_the_steps_of_a_module_and_its_commit(
    dps: Dps,
    chain: Chain,
    operator: Party,
    provider: Party,
    origin: Origin,  # noqa: F811
) -> None:
    commit = origin.commit(GREET, tag="v1")
    (dps.home / "job.yaml").write_text(JOB.format(source=f"{origin.url}@v1"))
    submitted = await dps.run("submit", "job.yaml", "--credits", "100")
    assert (submitted.status, submitted.err) == (0, "")
    job_id = int(submitted.out.split()[1])
    await operator.writer.meta_schedule(job_id, provider.address)
    assert await provider.writer.claim_next()
    definition_hash = (await chain.job(job_id)).definition.definition_hash
    job = await provider.services.fetch_definition(job_id, definition_hash)
    module = job.steps[0].module
    assert module is not None
    assert (module.commit, [one.value for one in module.inputs]) == (commit, ["Ada", "1"])
    assert not any(step.use for _, step in steps_in(job.steps, ("steps",)))
