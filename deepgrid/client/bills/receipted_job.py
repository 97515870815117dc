"""A job with the receipt that its provider signed at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepgrid.billing.resource_use import ResourceUse
    from deepgrid.billing.use_samples import UseHistory
    from deepgrid.client.bills.job_receipt import JobReceipt
    from deepgrid.client.engine.connection import Connection
    from deepgrid.lifecycle.job import Job


class ReceiptedJob:
    """The part of `AsyncJob` about its receipt."""

    _connection: Connection
    _job: Job

    async def receipt(self) -> JobReceipt:
        """Fetch the receipt that the job's provider signed at its end. It is checked: by signature, and by the chain.

        Returns:
            The receipt, as JSON, text or PDF.

        Raises:
            NotFound: There is none: the job is not over, or its provider signs within the next minutes.
            AccessDenied: It is another customer's job.
            ServiceError: The services do not answer, or sent a receipt that does not fit the job.
        """
        from deepgrid.client.bills.job_receipt import read_job_receipt  # here: few programs read receipts

        return await self._connection.patiently(lambda: read_job_receipt(self._connection, self._job.id))

    async def resource_use(self) -> ResourceUse:
        """Return what the job used of what it asked for, as its provider signed it in the receipt.

        Returns:
            The figures, each None if the cluster does not know it.

        Raises:
            GridError: As `receipt` does: NotFound while there is none.
        """
        return (await self.receipt()).resource_use

    async def use_history(self) -> UseHistory:
        """Return what the job used over time, as its provider's Slurm measured it while the job ran.

        A job that runs has its first sample about half a minute after its start, and then rarer and rarer ones. Nothing
        of it is signed, and the bill does not depend on it.

        Returns:
            At most 64 samples, oldest first, and what they say together.

        Raises:
            NotFound: Nothing is known: the job is too short or too new, or its cluster does not measure running jobs.
            AccessDenied: It is another customer's job.
            ServiceError: The services do not answer.
        """
        from deepgrid.billing.use_samples import UseHistory  # here: few programs read it

        asked, services = self._job.definition, self._connection.session.services
        samples = await self._connection.patiently(lambda: services.job_use(self._job.id))
        cpus = asked.ntasks * asked.cpus_per_task
        return UseHistory(cpus, cpus * asked.mem_per_cpu_mb, asked.gpus, samples)
