"""Private files of the customer for job 1, which the provider's cluster can decrypt, and a job that uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.files import KeptFiles, send
from deepgrid.client.files.exchange import file_exchange
from deepgrid.client.files.sealed_files import SealedExchange, SealedFiles
from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.lifecycle.job import Hardware, Job, Label, Prices, Provider
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.services.files.private_keys import FileKeys
from deepgrid.workflow import Definition
from deepgrid.workflow.models import GridData, TransportData
from deepgrid.workflow.needs import PRIVATE_FILES
from tests.sbatch.support import Bench, Outcome
from tests.services.files.support import IMPATIENT, FileGrid, grid_job
from tests.services.support import DOMAIN, NAMES

WALLETS = {name: Wallet(bytes([number + 1]) * 32) for number, name in enumerate(NAMES)}


def cluster_of(name: str = "provider", public_key: bytes | None = None) -> Provider:
    """Return the cluster of this account as the chain has it, with its public key as a label."""
    wallet = WALLETS[name]
    label = Label(PRIVATE, (public_key or wallet.public_key).hex())
    return Provider(
        address=wallet.address, hardware=Hardware((0,), (1,), (1000,)), prices=Prices(1, 1, 1), labels=(label,),
        approved=True, banned=False,
    )  # fmt: skip


class PrivateGrid:
    """The services, and private files in them."""

    def __init__(self, files: FileGrid) -> None:
        self.files = files
        self.keys = FileKeys.new(WALLETS["customer"], DOMAIN)

    async def definition(self, command: str, *paths: Path, clusters: Sequence[Provider] = ()) -> Definition:
        """Send the paths encrypted. Returns a job that gets them."""
        sealed = self.keys.sealed_for(clusters or [cluster_of()])
        changes: dict[str, Any] = {"private_files": sealed}
        if paths:
            number = await send(
                self.files.client(), paths, None, IMPATIENT, seal=lambda found: SealedFiles(found, self.keys)
            )
            changes["input"] = TransportData(grid=GridData(files=number))
        return grid_job(command).model_copy(update=changes)

    async def claimed(self, definition: Definition, job_id: int = 1, **changes: Any) -> Job:
        """Put a job that names the definition, with the mark of private files on chain."""
        await self.files.claimed(definition, job_id, **changes)
        job = self.job(job_id)
        marked = replace(job, definition=replace(job.definition, affinity=(PRIVATE_FILES,)))
        self.files.services.chain.jobs_by_id[job_id] = marked
        return marked

    def job(self, job_id: int = 1) -> Job:
        return self.files.services.chain.jobs_by_id[job_id]

    def secrets(self, definition: Definition, job: Job, name: str = "provider") -> dict[str, str]:
        """Return what the cluster of this account hands to the job's script. Raises InputError."""
        assert definition.private_files
        keys = FileKeys.of_cluster(WALLETS[name], DOMAIN, definition.private_files, job.customer)
        own = definition.private_files.own
        return {"input_key": keys.input_key().hex(), "output_key": keys.output_key(job).hex(), "own_key": own}

    async def run(self, bench: Bench, definition: Definition, job_id: int = 1) -> Outcome:
        """Run the job's script on this machine, with the keys that its cluster has."""
        found = await self.files.addresses(job_id)
        secrets = self.secrets(definition, self.job(job_id))
        bench.grid_files = GridFiles(found.input, found.output, **secrets)
        return await asyncio.to_thread(bench.run, definition)

    @asynccontextmanager
    async def kept(self, job_id: int = 1, wallet: Wallet = WALLETS["customer"]) -> AsyncIterator[KeptFiles]:
        found = await self.files.client().of_job(job_id)
        async with file_exchange(self.files.client().url(found.address), None) as exchange:
            yield KeptFiles(SealedExchange(exchange, wallet, DOMAIN, self.job(job_id)), IMPATIENT)

    async def download(self, to: Path, job_id: int = 1) -> list[Path]:
        async with self.kept(job_id) as kept:
            return await kept.fetch(await kept.manifest(), to, lambda _: True)
