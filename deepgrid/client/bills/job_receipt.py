"""The signed receipt of a job, for a customer's books and auditors."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.billing.resource_use import Measured, ResourceUse, resource_use
from deepgrid.chain.client import Chain
from deepgrid.chain.job_trail import read_trails
from deepgrid.client.display.receipt_text import receipt_text
from deepgrid.client.engine.connection import Connection
from deepgrid.client.job_values import credits_of
from deepgrid.client.workflow import FilePath
from deepgrid.errors import InputError, NotFound, ServiceError
from deepgrid.files.private_files import replace_file
from deepgrid.services.receipts import Contents, differences_from, read_receipt, require_same_on_chain


class JobReceipt:
    """A receipt whose signature was checked: the provider of the job signed exactly these bytes."""

    def __init__(self, data: bytes) -> None:
        """Check the signature and the sums of a receipt in its JSON form.

        Args:
            data: The bytes of the file, unchanged.

        Raises:
            InputError: The bytes are not what a provider signed.
        """
        self._data = data
        self._contents = read_receipt(data).receipt

    @property
    def data(self) -> bytes:
        """The receipt as JSON. Only these bytes carry the signature."""
        return self._data

    @property
    def job_id(self) -> int:
        """Number of the job."""
        return self._contents.job_id

    @property
    def provider(self) -> str:
        """Address of the provider, which signed."""
        return self._contents.provider

    @property
    def customer(self) -> str:
        """Address of the customer."""
        return self._contents.customer

    @property
    def cost(self) -> Decimal:
        """Credits that the job cost."""
        return credits_of(int(self._contents.money.cost_wei))

    @property
    def minutes(self) -> int:
        """Minutes on the bill."""
        return self._contents.minutes.billed

    @property
    def resource_use(self) -> ResourceUse:
        """What the job used of what it asked for, as the provider's Slurm measured it."""
        asked, ran = self._contents.asked, self._contents.evidence
        cpus = asked.tasks * asked.cpus_per_task
        return resource_use(cpus, cpus * asked.mem_per_cpu_mb, ran.run_s, Measured.of_tres(ran.tres), asked.gpus)

    @property
    def text(self) -> str:
        """The receipt for people."""
        return receipt_text(self._contents)

    def as_dict(self) -> dict[str, Any]:
        """Return the receipt as JSON values: amounts as texts of wei, times in unix seconds."""
        return dict(json.loads(self._data))

    def pdf(self) -> bytes:
        """Return the receipt as a PDF of A4 pages. Only the JSON form can be verified.

        Raises:
            ConfigurationError: The extra `bills` is missing.
        """
        from deepgrid.extras import needs

        with needs("bills"):
            from deepgrid.client.display.receipt_pdf import receipt_pdf
        return receipt_pdf(self._contents)

    def save(self, to: FilePath) -> Path:
        """Write the receipt into a file that only you can read.

        Args:
            to: The file. Its ending chooses the form: `.json`, `.pdf`, or `.txt`.

        Returns:
            The file.

        Raises:
            InputError: The ending is another one, or the file cannot be written.
            ConfigurationError: The extra `bills` is missing, for a PDF.
        """
        file = Path(to).expanduser()
        match file.suffix.lower():
            case ".json":
                content = self._data
            case ".pdf":
                content = self.pdf()
            case ".txt":
                content = self.text.encode()
            case _:
                raise InputError(f"{file.name[:60]!r} is no form of a receipt.", next_step="Use .json, .pdf or .txt.")
        try:
            replace_file(file, content)
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None
        return file

    @property
    def contents(self) -> Contents:
        """Everything that is signed."""
        return self._contents

    def __repr__(self) -> str:
        cost = format_credits(int(self._contents.money.cost_wei))
        return f"JobReceipt(job {self.job_id}, {cost} credits, signed by {self.provider})"


async def read_job_receipt(connection: Connection, job_id: int) -> JobReceipt:
    """Return the receipt of a job from the services, compared with the job on chain.

    Raises NotFound, AccessDenied, and ServiceError (not transient) for a receipt that does not fit the job.
    """
    job = await connection.reads.job(job_id)
    if job.provider is None and not job.status.hot:
        raise NotFound(f"Job {job_id} has no receipt: no cluster had it.")
    data = await connection.session.services.receipt(job_id)
    try:
        receipt = JobReceipt(data)
        require_grid(receipt.contents, connection.chain)
        found = differences_from(receipt.contents, job)
    except InputError as error:
        found = [error.message.rstrip(".")]
    if found:
        raise ServiceError(
            f"The services sent a receipt that does not belong to job {job_id}: {', '.join(found)}.",
            transient=False,
            next_step="Tell the operator.",
        )
    return receipt


def require_grid(contents: Contents, chain: Chain) -> None:
    """Raise InputError for the receipt of another grid."""
    book = chain.book
    if (contents.chain_id, contents.meta_scheduler) != (book.chain_id, book.meta_scheduler):
        raise InputError(
            f"The receipt is of another grid: chain {contents.chain_id}, contract {contents.meta_scheduler}.",
            next_step="Use the address book of that grid.",
        )


async def verify_on_chain(chain: Chain, receipt: JobReceipt) -> None:
    """Raise InputError unless the chain says the same: its signer is the job's provider, its money is the events'.

    Also raises NotFound for a job that does not exist, and ChainError.
    """
    require_grid(receipt.contents, chain)
    job = await chain.job(receipt.job_id)
    if job.status.hot or job.provider != receipt.provider:
        raise InputError(f"The receipt is signed, but {receipt.provider} did not settle job {job.id}.")
    trails = await read_trails(chain, [job])
    require_same_on_chain(receipt.contents, job, trails[job.id])
