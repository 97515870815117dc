"""Batch jobs of the supervisor itself, such as benchmarks: submit, wait for the end, fetch the output, clean up.

There is one job per name. A submission ends the earlier job of the same name, so that a crash, a retry or a second
supervisor leaves no stray job. The jobs run under `own_account` if the settings name one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from deepgrid.errors import GridError, InputError, SlurmError, SlurmUnreachable
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.complaints import LIMITS, OUTAGES
from deepgrid.slurm.commands.job_states import phase_of
from deepgrid.slurm.commands.sbatch import Sbatch
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, read_script
from deepgrid.slurm.submit.protocol import SHARED, parse_answer

OUTPUT_LIMIT_BYTES = 4 * 2**20
END_MARK = "deepgrid-end"
LAST_LINES, LAST_CHARACTERS = 4, 400

_BATCH = read_script(*SHARED, "batch.sh")


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Intervals and timeouts of batch jobs, in seconds."""

    poll_s: float = 1.0
    output_timeout_s: float = 60.0  # a shared file system may show the last lines late
    end_grace_s: float = 120.0  # Slurm ends jobs some time after their limit


class BatchJobs:
    """The supervisor's own jobs on one cluster."""

    def __init__(self, login: Runner, settings: LoginSettings, timing: BatchSettings = BatchSettings()) -> None:
        self._login = login
        self._settings = settings
        self._timing = timing

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
        """Run `script` and return its output. Afterwards the job and its files are removed.

        The script must not call `exit`. The job may wait in the queue for `wait_minutes` and run for `limit_minutes`.
        Raises SlurmError, with the last lines of the output, when the job does not complete. Raises SlurmUnreachable
        when the login node cannot take the job at the moment.
        """
        minutes = limit_minutes + wait_minutes
        try:
            slurm_id = await self.submit(name, script, [*options, f"--time={limit_minutes}"], partition)
            try:
                async with asyncio.timeout(60 * minutes + self._timing.end_grace_s):
                    state = await self._wait_for_end(name, slurm_id)
            except TimeoutError:
                raise SlurmError(
                    f"The job {name} did not end within {minutes} minutes.",
                    next_step="Check whether the partition has room for it, or allow a longer wait.",
                ) from None
            if state != "COMPLETED":
                raise SlurmError(f"The job {name} ended {state}: {_last_lines(await self.output(name))}.")
            return await self._complete_output(name)
        finally:
            await self._clean_up(name)

    async def probe(self, name: str, script: str, within_s: float) -> tuple[str, str]:
        """Run a job of at most a minute. Returns its Slurm state after `within_s` seconds, and its output.

        The output is empty unless the job completed and its output arrived. Afterwards the job and its files are
        removed. Raises as `run` does.
        """
        try:
            slurm_id = await self.submit(name, f"#!/bin/sh\n{script}", ["--ntasks=1", "--time=1"])
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._wait_for_end(name, slurm_id)
            state = (await self._call("state", name, slurm_id))[1]
            try:
                return state, (await self._complete_output(name)).strip() if state == "COMPLETED" else ""
            except SlurmError:
                return state, ""
        finally:
            await self._clean_up(name)

    async def submit(self, name: str, script: str, options: Sequence[str], partition: str = "") -> int:
        """Submit the script under this name and return the Slurm id. Ends an earlier job of this name."""
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise InputError(f"{name!r} cannot be the name of a batch job.")
        body = f"{script}\necho {END_MARK}\n".encode()
        partition = partition or self._settings.partition
        sbatch = Sbatch(name, partition, options).argv()
        answer = await self._call("submit", name, len(body), OUTAGES, LIMITS, *sbatch, stdin=body)
        return int(answer[1])

    async def output(self, name: str) -> str:
        """Return the output of the job so far; only its end if it is longer than OUTPUT_LIMIT_BYTES."""
        return (await self._login.run(self._command("output", name, OUTPUT_LIMIT_BYTES))).text

    async def remove(self, name: str) -> None:
        """End the job of this name, if there is one, and remove its files."""
        await self._call("remove", name)

    async def _wait_for_end(self, name: str, slurm_id: int) -> str:
        """Wait until the job ends, even through an outage of the login node, and return its final state."""
        while True:
            try:
                state = (await self._call("state", name, slurm_id))[1]
            except SlurmUnreachable:
                state = ""
            if state == "LOST" or phase_of(state) is Phase.ENDED:
                return state
            await asyncio.sleep(self._timing.poll_s)

    async def _complete_output(self, name: str) -> str:
        """Return the output up to the mark that the script prints at its end."""
        text = ""
        try:
            async with asyncio.timeout(self._timing.output_timeout_s):
                while not text.rstrip().endswith(END_MARK):
                    text = await self.output(name)
                    await asyncio.sleep(0 if text.rstrip().endswith(END_MARK) else self._timing.poll_s)
        except TimeoutError:
            raise SlurmError(f"The job {name} completed, but its output is incomplete.") from None
        return text.rstrip().removesuffix(END_MARK)

    async def _clean_up(self, name: str) -> None:
        """Remove the job, even if the caller is cancelled. Without the login node, the job ends by its time limit."""
        cleaning = asyncio.create_task(self.remove(name))
        try:
            await asyncio.shield(cleaning)
        except GridError:
            return
        except asyncio.CancelledError:
            await asyncio.wait([cleaning])
            raise

    async def _call(self, verb: str, name: str, *arguments: object, stdin: bytes = b"") -> tuple[str, str]:
        done = await self._login.run(self._command(verb, name, *arguments), stdin=stdin)
        return parse_answer(done)

    def _command(self, verb: str, name: str, *arguments: object) -> list[str]:
        settings = self._settings
        account = settings.own_account or settings.job_account or ""
        return call(_BATCH, verb, settings.grid_root, name, account, settings.submits_by, *arguments)


def _last_lines(output: str) -> str:
    """Return the last meaningful lines. Lines of srun and lines without letters or digits are omitted."""
    lines = [line.strip() for line in output.splitlines() if re.search(r"\w", line) and not line.startswith("srun: ")]
    return " ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:].rstrip(".") if lines else "it printed nothing"
