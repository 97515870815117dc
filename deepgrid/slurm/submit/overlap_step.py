"""A step in a running job's allocation, in addition to its own steps. It serves the customer's sessions."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.slurm.ssh.byte_channel import ByteChannel
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.scripts import call, read_script
from deepgrid.slurm.submit.protocol import job_folder

_STEP = read_script("as_user.sh", "account.sh", "step.sh")
_AGENT = read_script("step_streams.py", "step_agent.py")


async def start_agent(login: Login, key: JobKey, slurm_id: int, job: Job) -> ByteChannel:
    """Start `step_agent.py` on the first node of the claim's running job, in the customer's account.

    `slurm_id` names the claim's job, as the monitor sees it. Slurm refuses the step if another account has that
    job. Raises SlurmUnreachable and ConfigurationError as `Login.run` does, SlurmError if the customer has no account.
    """
    settings = login.settings
    account = settings.account_of(job.customer)
    folder = job_folder(settings, key)
    tasks = job.definition.ntasks
    return await login.open_byte_channel(call(_STEP, account, settings.submits_by, folder, slurm_id, tasks, _AGENT))
