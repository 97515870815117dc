"""A Slurm cluster as the supervisor sees it: all queries and all side effects, over one login.

All side effects are keyed by the claim (`JobKey`) and may be repeated. Errors:

* SlurmUnreachable: nothing is known; the caller must not draw a conclusion.
* SlurmError: Slurm refused for good.
* Deposed: another supervisor leads; nothing was done.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from deepgrid.errors import Deposed, GridError, SlurmError, SlurmUnreachable, SubmitLimit
from deepgrid.lifecycle.job import Hardware, JobKey
from deepgrid.slurm.commands.complaints import OUTAGES
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.query import is_id
from deepgrid.slurm.commands.scontrol import PartitionNodes
from deepgrid.slurm.flood import FloodWatch
from deepgrid.slurm.observe.holdings import Holdings, Ledger, holdings, parse_ledger
from deepgrid.slurm.observe.snapshot import Snapshot, parse_snapshot, snapshot_command, snapshot_input
from deepgrid.slurm.observe.verdict import Verdicts
from deepgrid.slurm.slurm_backend import SlurmBackend, SlurmCommands, no_usable_node
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, lines_of, read_script, whole_answer
from deepgrid.slurm.submit import protocol
from deepgrid.slurm.submit.batch import BatchJobs
from deepgrid.slurm.submit.folders import Leftovers, OwnFolders
from deepgrid.slurm.submit.protocol import Submission, SubmitRequest, Term, Wanted
from deepgrid.slurm.submit.throttle import PER_ACCOUNT, Batcher, ConcurrencyLimits

DAY_S = 86400
MAX_IDS_PER_QUERY = 500  # bounds one command line

SUBMIT_DELAY_S = 0.05
SUBMIT_BATCH_SIZE = 12
ACKNOWLEDGE_DELAY_S = 0.5
ACKNOWLEDGE_BATCH_SIZE = 100

_OUTPUT = read_script("output.sh")
_ACKNOWLEDGE = read_script("common.sh", "acknowledge.sh")
_LEDGER = read_script("ledger_lookup.sh")
_END_FOREIGN = read_script("common.sh", "as_user.sh", "account.sh", "end_foreign.sh")


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A part of a job's output, and the size of the whole output in bytes."""

    size: int
    data: bytes = field(repr=False)


class Cluster:
    """Slurm, reached through `login`, with the paths and accounts of `settings`.

    `term` is the term of the leader that performs the side effects (see `leader.py`). It is None for a command of a
    person and for a run outside of a supervisor. Then only the claim's own lock and files guard an effect. They are
    enough for one effect per claim. The term also stops a supervisor that was replaced and does not know it yet.
    """

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self.settings = settings
        self.batch = BatchJobs(login, settings)
        self.leftovers = Leftovers(login, settings)
        self._own_folders = OwnFolders(login, settings)
        self._flood = FloodWatch(login)
        self._slurm: SlurmBackend = SlurmCommands(login, self._flood, settings.slurm_timeout_s)
        self.verdicts = Verdicts()
        self._gpu_types: dict[str, int] | None = None
        channels = settings.max_channels
        self._limits = ConcurrencyLimits(channels, PER_ACCOUNT if settings.accounts else channels)
        self._submissions: dict[str, Batcher[Wanted]] = defaultdict(
            lambda: Batcher(self._submit, SUBMIT_DELAY_S, SUBMIT_BATCH_SIZE)
        )  # by account, so that an account delays its own claims only
        self._acknowledgements = Batcher(self._acknowledge, ACKNOWLEDGE_DELAY_S, ACKNOWLEDGE_BATCH_SIZE)
        self.term: Term | None = None
        self.deposed = asyncio.Event()  # set when the login node refuses an effect because its term is over

    async def health(self) -> tuple[int, int]:
        """Return the numbers of the partition's nodes: of those that can run jobs, and of all.

        Raises SlurmUnreachable when Slurm does not answer, SlurmError when no job can run.
        """
        found = await self.partition()
        if not found.is_up:
            raise SlurmError(f"The partition {self.settings.partition} is {found.state.lower() or 'missing'}.")
        if not found.usable.nodes:
            raise no_usable_node(found, self.settings.partition)
        return found.usable.nodes, found.all.nodes

    async def partition(self) -> PartitionNodes:
        """Return the partition with its nodes."""
        found = await self._slurm.nodes(self.settings.partition)
        self._gpu_types = found.gpu_types
        return found

    async def gpu_types(self) -> dict[str, int]:
        """Return the GPUs of all nodes by type, as of the last query of the partition."""
        return (await self.partition()).gpu_types if self._gpu_types is None else self._gpu_types

    async def hardware(self, *, usable_only: bool = True) -> Hardware:
        """Return what jobs can get of the nodes that can run them, or of all. Raises SlurmError without any node."""
        found = await self.partition()
        hardware = found.usable if usable_only else found.all
        if not hardware.nodes:
            raise no_usable_node(found, self.settings.partition)
        return hardware

    async def make_storage(self, key: JobKey, customer: str, prefixes: Sequence[str]) -> None:
        """Make the storage folders of the customer's account before its first job (see `OwnFolders.make`)."""
        self._learn(key, customer)
        async with self._limits.slot(key.comment):
            await self._own_folders.make(customer, prefixes)

    async def submit(self, key: JobKey, script: str, request: SubmitRequest) -> Submission:
        """Submit `script` once for this claim, or find the job that an earlier call submitted.

        Concurrent calls for one account share a command.

        Raises SlurmError when Slurm refuses the job or refused it before, when its customer has no account here, or
        when the claim was cancelled. Raises SlurmUnreachable when it is unknown whether Slurm has the job: call again.
        """
        body = protocol.with_guard(script, protocol.job_folder(self.settings, key))
        wanted = Wanted(key, request, body, self.settings.account_of(request.customer))
        self._learn(key, request.customer)
        await self._submissions[wanted.account].do(wanted)
        if not wanted.found.adopted:
            self.verdicts.submitted(key, time.monotonic())
        return wanted.found

    async def _submit(self, batch: Sequence[Wanted]) -> dict[Wanted, Exception]:
        """Submit these claims of one account by one command. Returns the errors of single claims."""
        once = {one.key: one for one in reversed(batch)}
        wanted = [one.arguments(self.settings) for one in once.values()]
        command = protocol.submissions_command(self.settings, batch[0].account, wanted, self.term)
        stdin = b"".join(one.script for one in once.values())
        async with self._limits.slot(batch[0].key.comment):
            done = await self._login.run(command, stdin=stdin)
        errors: dict[Wanted, Exception] = {}
        for one in batch:
            try:
                word, text = await self._parse_answer(done, one.key)
                one.found = Submission(int(text), adopted=word == "adopted" or one is not once[one.key])
            except GridError as error:
                errors[one] = error
        return errors

    async def cancel(self, key: JobKey) -> None:
        """Make sure that the claim's job never starts from now on, and end it if it waits or runs.

        Returns when Slurm has accepted the request. The monitor sees when the job is gone.
        """
        await self._effect("tombstone", key, self.settings.submits_by)

    async def set_time_limit(self, key: JobKey, minutes: int) -> bool:
        """Let the job run for `minutes` from its start, never for less than an earlier call allowed.

        Returns False when the job does not exist. Raises SlurmError when Slurm refuses more time.
        """
        word, _ = await self._effect("limit", key, minutes, OUTAGES)
        return word == "set"

    async def acknowledge(self, key: JobKey) -> None:
        """Move the claim's completion record from the spool to the job's folder, where it stays.

        Concurrent calls share one command.
        """
        await self._acknowledgements.do(key)
        self._limits.forget(key.comment)

    async def _acknowledge(self, keys: Sequence[JobKey]) -> dict[JobKey, Exception]:
        """Acknowledge these claims. Returns the errors of single claims, which need another call."""
        lines = "".join(f"{key.folder} {','.join(key.names)} {key.comment}\n" for key in keys)
        done = await self._login.run(call(_ACKNOWLEDGE, self.settings.grid_root, self.term or ""), stdin=lines.encode())
        await self._parse_answer(done)
        late = {folder: why for word, folder, *why in map(str.split, lines_of(done.text)[:-1]) if word == "late"}
        return {
            key: SlurmUnreachable(f"The completion record of job {key.job_id} stays: {' '.join(late[key.folder])}.")
            for key in keys
            if key.folder in late
        }

    async def spooled(self) -> list[str]:
        """Return comments of all completion records that are not acknowledged yet, of any grid."""
        spool = f"{self.settings.grid_root}/spool"
        find = ["find", spool, "-maxdepth", "1", "-name", "[0-9]*", "-exec", "grep", "-hx", "comment=.*", "{}", "+"]
        done = await self._login.run(find)
        return [line.removeprefix("comment=") for line in lines_of(done.text)]

    async def queue(self, like: JobKey) -> Holdings:
        """Return the queued jobs of claims of `like`'s grid, and the customers' jobs that belong to no claim."""
        rows = await self._slurm.jobs()
        return holdings(rows, await self.ledger(row.slurm_id for row in rows), like)

    async def ledger(self, slurm_ids: Iterable[int]) -> Ledger:
        """Return the claims that these Slurm ids belong to, and the accounts that ever had a claim."""
        stdin = "".join(f"{slurm_id}\n" for slurm_id in sorted(set(slurm_ids))).encode()
        return parse_ledger(await self._login.run(call(_LEDGER, self.settings.grid_root), stdin=stdin))

    async def end_foreign(self, rows: Iterable[Row]) -> list[int]:
        """End jobs of customers' accounts that belong to no claim. Returns the ids of the jobs that Slurm cancels."""
        stdin = "".join(f"{row.slurm_id} {row.user}\n" for row in rows).encode()
        done = await self._login.run(call(_END_FOREIGN, self.settings.submits_by), stdin=stdin)
        words = [line.split(" ") for line in whole_answer(done)]
        return [int(word[1]) for word in words if len(word) == 2 and is_id(word[1])]

    async def snapshot(self, keys: Iterable[JobKey]) -> Snapshot:
        """Return queue and spool from one command, for any number of jobs."""
        done = await self._login.run(snapshot_command(self.settings), stdin=snapshot_input(keys))
        snapshot = parse_snapshot(done)
        self._limits.learn(snapshot.users)
        return snapshot

    async def accounting_of(self, ids: Mapping[JobKey, int | None]) -> list[Row]:
        """Accounting's rows for the jobs of these claims, by Slurm id. Empty where accounting is disabled.

        A claim is looked up by its name only when its id is not on record: without a guard, a job's account can change
        the job's name.
        """
        rows: list[Row] = []
        keys = list(ids)
        for first in range(0, len(keys), MAX_IDS_PER_QUERY):
            some = keys[first : first + MAX_IDS_PER_QUERY]
            # The chain's clock differs from the cluster's. The clock of a development chain may be far ahead.
            since = min(int(time.time()), *(key.claimed_at for key in some)) - DAY_S
            if known := sorted({slurm_id for key in some if (slurm_id := ids[key])}):
                rows += await self.accounting(since, ids=known) or []
            if names := sorted({name for key in some if not ids[key] for name in key.names}):
                rows += await self.accounting(since, names=names) or []
        return rows

    async def accounting(
        self, since: int, until: int | None = None, *, names: Sequence[str] = (), ids: Sequence[int] = ()
    ) -> list[Row] | None:
        """Accounting's rows of jobs with these names or ids, or of all jobs, in a period (unix seconds).

        Returns None where accounting is disabled.
        """
        rows = await self._slurm.accounted(since, until, names=names, ids=ids)
        self.verdicts.has_accounting = rows is not None
        return rows

    async def accounting_backlog(self) -> int:
        """Return the number of records that accounting has not got yet; 0 if Slurm does not say."""
        return await self._slurm.backlog()

    async def remembered(self) -> list[Row]:
        """Return all jobs that the controller remembers, including jobs that ended a few minutes ago."""
        return await self._slurm.jobs(ended=True)

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int = 2**16) -> dict[JobKey, bytes]:
        """Return the output of each job from its offset on, at most `limit` bytes per job.

        Omits jobs without new output.
        """
        pages = await self.read_output_pages(offsets, limit)
        return {key: page.data for key, page in pages.items() if page.data}

    async def read_output_pages(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, OutputPage]:
        """Read like `read_output`, with the size of each output. Omits jobs whose output cannot be read."""
        lines = "".join(f"{key.folder} {offset}\n" for key, offset in offsets.items())
        done = await self._login.run(call(_OUTPUT, self.settings.grid_root, limit), stdin=lines.encode())
        answers = [line.split(" ") for line in whole_answer(done)]
        keys = {key.folder: key for key in offsets}
        return {
            keys[folder]: OutputPage(int(size), base64.b64decode("".join(text)))
            for folder, size, *text in answers
            if folder in keys
        }

    def _learn(self, key: JobKey, customer: str) -> None:
        if customer:
            self._limits.learn({key.comment: self.settings.account_of(customer)})

    async def _effect(self, verb: str, key: JobKey, *arguments: object) -> tuple[str, str]:
        command = protocol.protocol(self.settings, verb, key, *arguments, term=self.term)
        async with self._limits.slot(key.comment):
            return await self._parse_answer(await self._login.run(command))

    async def _parse_answer(self, done: CommandResult, asked: JobKey | None = None) -> tuple[str, str]:
        try:
            return protocol.parse_answer(done, asked)
        except SubmitLimit:
            raise
        except SlurmUnreachable as error:
            raise SlurmUnreachable(f"{error.message}{await self._flood.reason()}") from None
        except Deposed:
            self.deposed.set()
            raise
