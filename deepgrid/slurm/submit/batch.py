"""Batch jobs of the supervisor itself, such as benchmarks: submit, wait for the end, fetch the output, leave nothing.

There is one job a name: whoever submits under a name again ends the earlier job, so that a crash, a retry or a
second supervisor leaves no stray one. The jobs run under an account of their own where the settings name one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

from deepgrid.errors import GridError, InputError, SlurmError, SlurmUnreachable
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.observe.commands import OUTAGE_MESSAGES, phase_of
from deepgrid.slurm.ssh.login import LoginSettings, Runner
from deepgrid.slurm.ssh.scripts import call, read_script
from deepgrid.slurm.submit.protocol import parse_answer

OUTPUT_LIMIT_BYTES = 4 * 2**20
POLL_S = 1.0
OUTPUT_WITHIN_S = 60.0  # a shared file system may show the last lines late
LATE_S = 120.0  # Slurm ends jobs some time after their limit
END = "deepgrid-end"
LAST_LINES, LAST_CHARACTERS = 4, 400

_BATCH = read_script("common.sh", "identity.sh", "ledger.sh", "account.sh", "batch.sh")


class BatchJobs:
    """The supervisor's own jobs on one cluster."""

    def __init__(self, login: Runner, settings: LoginSettings) -> None:
        self._login = login
        self._settings = settings

    async def run(
        self,
        name: str,
        script: str,
        options: Sequence[str],
        *,
        limit_minutes: int,
        wait_minutes: int,
        partition: str = "",
    ) -> str:
        """Run `script`, which must not `exit`, and return what it printed; the job and its files are gone then.

        It may wait `wait_minutes` for its turn and run for `limit_minutes`. Raises SlurmError, with the last lines that
        it printed, when it does not complete; SlurmUnreachable when the login node does not take it just now.
        """
        minutes = limit_minutes + wait_minutes
        try:
            slurm_id = await self.submit(name, script, [*options, f"--time={limit_minutes}"], partition)
            try:
                async with asyncio.timeout(60 * minutes + LATE_S):
                    state = await self._end(name, slurm_id)
            except TimeoutError:
                raise SlurmError(
                    f"The job {name} did not end within {minutes} minutes.",
                    next_step="See whether the partition has room for it, or let it wait for longer.",
                ) from None
            if state != "COMPLETED":
                raise SlurmError(f"The job {name} ended {state}: {_last_words(await self.output(name))}.")
            return await self._whole_output(name)
        finally:
            await self._remove_at_last(name)

    async def attempt(self, name: str, script: str, within_s: float) -> tuple[str, str]:
        """Slurm's word for a job of a minute at most after `within_s` seconds, and all that it printed if it completed.

        What it printed is empty if that does not arrive. The job and its files are gone then. Raises as `run` does.
        """
        try:
            slurm_id = await self.submit(name, f"#!/bin/sh\n{script}", ["--ntasks=1", "--time=1"])
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._end(name, slurm_id)
            state = (await self._ask("state", name, slurm_id))[1]
            try:
                return state, (await self._whole_output(name)).strip() if state == "COMPLETED" else ""
            except SlurmError:
                return state, ""
        finally:
            await self._remove_at_last(name)

    async def submit(self, name: str, script: str, options: Sequence[str], partition: str = "") -> int:
        """Hand the script to Slurm under this name, whose earlier job ends; returns the Slurm id."""
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise InputError(f"{name!r} cannot be the name of a batch job.")
        body = f"{script}\necho {END}\n".encode()
        sbatch = ["sbatch", "--parsable", "--no-requeue", "--ignore-pbs", f"--job-name={name}", "--open-mode=append"]
        sbatch += [f"--partition={partition or self._settings.partition}", *options]
        answer = await self._ask("submit", name, len(body), OUTAGE_MESSAGES, *sbatch, stdin=body)
        return int(answer[1])

    async def output(self, name: str) -> str:
        """What the job printed so far, its end if that is long."""
        return (await self._login.run(self._command("output", name, OUTPUT_LIMIT_BYTES))).text

    async def remove(self, name: str) -> None:
        """End the job of this name, if there is one, and remove its files."""
        await self._ask("remove", name)

    async def _end(self, name: str, slurm_id: int) -> str:
        """The state in which the job ended; an outage of the login node is waited out."""
        while True:
            try:
                state = (await self._ask("state", name, slurm_id))[1]
            except SlurmUnreachable:
                state = ""
            if state == "LOST" or phase_of(state) is Phase.ENDED:
                return state
            await asyncio.sleep(POLL_S)

    async def _whole_output(self, name: str) -> str:
        """The output up to the mark that a script leaves when it reached its end."""
        text = ""
        try:
            async with asyncio.timeout(OUTPUT_WITHIN_S):
                while not text.rstrip().endswith(END):
                    text = await self.output(name)
                    await asyncio.sleep(0 if text.rstrip().endswith(END) else POLL_S)
        except TimeoutError:
            raise SlurmError(f"The job {name} completed, but its output is not whole.") from None
        return text.rstrip().removesuffix(END)

    async def _remove_at_last(self, name: str) -> None:
        """Also when the caller is cancelled; a login node that is away keeps the job until its limit, no longer."""
        cleaning = asyncio.create_task(self.remove(name))
        try:
            await asyncio.shield(cleaning)
        except GridError:
            return
        except asyncio.CancelledError:
            await asyncio.wait([cleaning])
            raise

    async def _ask(self, verb: str, name: str, *arguments: object, stdin: bytes = b"") -> tuple[str, str]:
        done = await self._login.run(self._command(verb, name, *arguments), stdin=stdin)
        return parse_answer(done)

    def _command(self, verb: str, name: str, *arguments: object) -> list[str]:
        settings = self._settings
        account = settings.own_account or settings.job_account or ""
        return call(_BATCH, verb, settings.grid_root, name, account, settings.submits_by, *arguments)


def _last_words(output: str) -> str:
    """The last lines that say something; Slurm's own and rulers do not."""
    lines = [line.strip() for line in output.splitlines() if re.search(r"\w", line) and not line.startswith("srun: ")]
    return " ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:].rstrip(".") if lines else "it printed nothing"
