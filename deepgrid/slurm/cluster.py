"""A Slurm cluster as the supervisor sees it: every question and every side effect, over one login.

Errors: SlurmUnreachable means that nothing may be concluded; SlurmError that Slurm said no for good;
Deposed that nothing was done, as another supervisor leads. All effects are keyed by the claim (`JobKey`) and may
be repeated.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterable, Mapping, Sequence

from deepgrid.errors import Deposed, SlurmError, SlurmUnreachable
from deepgrid.lifecycle.job import Hardware, JobKey
from deepgrid.slurm.observe.commands import Row, Sacct, Squeue, first_complaint, is_id, is_silence
from deepgrid.slurm.observe.holdings import Holdings, Ledger, holdings, parse_ledger
from deepgrid.slurm.observe.nodes import Sinfo
from deepgrid.slurm.observe.snapshot import Snapshot, parse_snapshot, snapshot_command, snapshot_input
from deepgrid.slurm.observe.verdict import Sightings
from deepgrid.slurm.ssh.login import LoginSettings, Runner
from deepgrid.slurm.ssh.scripts import call, lines_of, read_script, whole_answer
from deepgrid.slurm.submit import protocol
from deepgrid.slurm.submit.batch import BatchJobs
from deepgrid.slurm.submit.batcher import Batcher
from deepgrid.slurm.submit.leftovers import Leftovers
from deepgrid.slurm.submit.protocol import Submission, SubmitRequest, Term

DAY_S = 86400
IDS_AT_ONCE = 500  # bounds one command line

GATHER_S = 0.5
ACKNOWLEDGED_AT_ONCE = 100

_OUTPUT = read_script("output.sh")
_ACKNOWLEDGE = read_script("common.sh", "acknowledge.sh")
_LEDGER = read_script("ledger_lookup.sh")
_END_FOREIGN = read_script("common.sh", "account.sh", "end_foreign.sh")


class Cluster:
    """Slurm behind `login`, with the paths and accounts of `settings`.

    `term` is that of the leader in whose name effects are done (see `leader.py`). Without one (a person's command, a
    run outside of a supervisor) they are bound by each claim's own lock and files only, which suffice for one effect a
    claim; what leading adds is that nobody drives who does not know that he was replaced, and such a caller drives
    nothing.
    """

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self.settings = settings
        self.batch = BatchJobs(login, settings)
        self.leftovers = Leftovers(login, settings)
        self.sightings = Sightings()
        self._acknowledging = Batcher(self._acknowledge, GATHER_S, ACKNOWLEDGED_AT_ONCE)
        self.term: Term | None = None
        self.deposed = asyncio.Event()  # set once an effect was told that its term is over

    async def health(self) -> None:
        """Raise SlurmUnreachable when Slurm does not answer, SlurmError when the partition takes no jobs."""
        if not Sinfo.is_up(await self._ask(Sinfo.argv(self.settings.partition))):
            raise SlurmError(f"The partition {self.settings.partition} does not exist or is down.")

    async def hardware(self, *, responding_only: bool = True) -> Hardware:
        """Nodes of the partition, in the order of their names. Raises SlurmError when there is none."""
        text = await self._ask(Sinfo.argv(self.settings.partition))
        hardware = Sinfo.parse(text, responding_only=responding_only)
        if not hardware.nodes:
            raise SlurmError(f"The partition {self.settings.partition} has no responding node.")
        return hardware

    async def submit(self, key: JobKey, script: str, request: SubmitRequest) -> Submission:
        """Submit `script` once for this claim, or find the job that an earlier call submitted.

        Raises SlurmError when Slurm refuses the job, now or before, when its customer has no account here, or
        when the claim was cancelled;
        SlurmUnreachable when it is open whether Slurm has it: call again.
        """
        body = protocol.guarded(script, protocol.job_folder(self.settings, key))
        command = protocol.submit_command(self.settings, key, request, body, self.term)
        word, text = await self._protocol(command, body)
        adopted = word == "adopted"
        if not adopted:
            self.sightings.submitted(key, time.monotonic())
        return Submission(int(text), adopted)

    async def cancel(self, key: JobKey) -> None:
        """Make sure that the claim's job never starts from now on, and end it if it waits or runs.

        Returns when Slurm took the request; that the job is gone is for the monitor to see.
        """
        await self._effect("tombstone", key)

    async def set_time_limit(self, key: JobKey, minutes: int) -> bool:
        """Let the job run for `minutes` from its start, never for less than an earlier call said.

        False when the job is not there to be limited. Raises SlurmError when Slurm refuses more time.
        """
        word, _ = await self._effect("limit", key, minutes)
        return word == "set"

    async def acknowledge(self, key: JobKey) -> None:
        """Move the claim's completion record from the spool to the job's folder, where it stays.

        Claims that are acknowledged side by side go in one command.
        """
        await self._acknowledging.do(key)

    async def _acknowledge(self, keys: Sequence[JobKey]) -> None:
        lines = "".join(f"{key.folder} {key.name} {key.comment}\n" for key in keys)
        await self._protocol(call(_ACKNOWLEDGE, self.settings.grid_root, self.term or ""), lines.encode())

    async def spooled(self) -> list[str]:
        """Comments of all completion records that wait to be acknowledged, of any grid."""
        spool = f"{self.settings.grid_root}/spool"
        look = ["find", spool, "-maxdepth", "1", "-name", "[0-9]*", "-exec", "grep", "-hx", "comment=.*", "{}", "+"]
        done = await self._login.run(look)
        return [line.removeprefix("comment=") for line in lines_of(done.text)]

    async def queue(self, like: JobKey) -> Holdings:
        """What the whole queue holds of claims of `like`'s grid, and of customers' jobs that belong to no claim."""
        rows = Squeue.parse(await self._ask(Squeue.argv()))
        return holdings(rows, await self.ledger(row.slurm_id for row in rows), like)

    async def ledger(self, slurm_ids: Iterable[int]) -> Ledger:
        """Which claims these Slurm ids were given to, and which accounts ever had a claim."""
        stdin = "".join(f"{slurm_id}\n" for slurm_id in sorted(set(slurm_ids))).encode()
        return parse_ledger(await self._login.run(call(_LEDGER, self.settings.grid_root), stdin=stdin))

    async def end_foreign(self, rows: Iterable[Row]) -> list[int]:
        """End jobs of customers' accounts that belong to no claim; returns the ids that Slurm took."""
        stdin = "".join(f"{row.slurm_id} {row.user}\n" for row in rows).encode()
        done = await self._login.run(call(_END_FOREIGN, self.settings.become.value), stdin=stdin)
        words = [line.split(" ") for line in whole_answer(done)]
        return [int(word[1]) for word in words if len(word) == 2 and is_id(word[1])]

    async def look(self, keys: Iterable[JobKey]) -> Snapshot:
        """Queue and spool in one command, however many jobs there are."""
        done = await self._login.run(snapshot_command(self.settings), stdin=snapshot_input(keys))
        return parse_snapshot(done)

    async def accounting_of(self, ids: Mapping[JobKey, int | None]) -> list[Row]:
        """What accounting knows of these claims' jobs, by Slurm's ids; nothing where it is disabled.

        A claim is only asked about by its name where its id is not on record: without a guard, a job's account can
        change the name of its job.
        """
        rows: list[Row] = []
        keys = list(ids)
        for first in range(0, len(keys), IDS_AT_ONCE):
            some = keys[first : first + IDS_AT_ONCE]
            # The chain's clock is not the cluster's, and that of a development chain may be far ahead.
            since = min(int(time.time()), *(key.claimed_at for key in some)) - DAY_S
            if known := sorted({slurm_id for key in some if (slurm_id := ids[key])}):
                rows += await self.accounting(since, ids=known) or []
            if names := sorted({key.name for key in some if not ids[key]}):
                rows += await self.accounting(since, names=names) or []
        return rows

    async def accounting(
        self, since: int, until: int | None = None, *, names: Sequence[str] = (), ids: Sequence[int] = ()
    ) -> list[Row] | None:
        """Accounting's rows of jobs of these names or ids, or of all, in a time (unix seconds); None where disabled."""
        done = await self._login.run(Sacct.argv(names, since, until, ids=ids))
        if done.exit_status and Sacct.DISABLED in done.complaint:
            return None
        if done.exit_status:
            raise SlurmUnreachable(f"Slurm's accounting does not answer: {first_complaint(done.complaint)}.")
        return Sacct.parse(done.text)

    async def remembered(self) -> list[Row]:
        """All jobs that the controller knows, those too that ended a few minutes ago."""
        return Squeue.parse(await self._ask(Squeue.argv(ended=True)))

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int = 2**16) -> dict[JobKey, bytes]:
        """What each job wrote from its offset on, at most `limit` bytes a job; jobs with nothing new are left out."""
        lines = "".join(f"{key.folder} {offset}\n" for key, offset in offsets.items())
        done = await self._login.run(call(_OUTPUT, self.settings.grid_root, limit), stdin=lines.encode())
        answers = [line.split(" ") for line in whole_answer(done)]
        keys = {key.folder: key for key in offsets}
        return {keys[folder]: base64.b64decode(text) for folder, text in answers if folder in keys}

    async def _effect(self, verb: str, key: JobKey, *arguments: object) -> tuple[str, str]:
        return await self._protocol(protocol.protocol(self.settings, verb, key, *arguments, term=self.term))

    async def _protocol(self, command: Sequence[str], stdin: bytes = b"") -> tuple[str, str]:
        done = await self._login.run(command, stdin=stdin)
        try:
            return protocol.parse_answer(done)
        except Deposed:
            self.deposed.set()
            raise

    async def _ask(self, argv: Sequence[str]) -> str:
        """Output of a command that succeeds; its complaint as SlurmError, or SlurmUnreachable when Slurm was silent."""
        done = await self._login.run(argv)
        if not done.exit_status:
            return done.text
        said = done.complaint or done.text
        complaint = first_complaint(said) or f"a command ended with status {done.exit_status}"
        if done.exit_status in (124, 137, -1) or is_silence(said):
            raise SlurmUnreachable(f"Slurm does not answer: {complaint}.")
        raise SlurmError(f"Slurm refused: {complaint}.")
