"""Sequences of the random attacker, many at once on one cluster, and the outcome of each.

A failing sequence is repeated with `.venv/bin/python -m tests.attacks.random_run BOX SEED...` (BOX is guarded or open).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence as Many
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from deepgrid.lifecycle.ends import ENDS, FAILED_LAUNCH
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import minutes_begun
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.slurm import ClusterSpec
from tests.attacks.attacker import Attacker, attacker, requests_in
from tests.attacks.claims import FEE_MINUTES, Books, Claim, Supervisor, settings_with, supervisor
from tests.attacks.random_attacker import QUIET_EVERY, Sequence, Step, sequence
from tests.attacks.random_saboteur import saboteur_in
from tests.attacks.sampling import Ran, Sampler
from tests.running_site import running_site
from tests.slurm.support import Box, open_folder

FAULTS = {end.error for end in ENDS.values() if not end.billed}
SPECS = {
    "guarded": ClusterSpec("guarded", nodes=2, cpus_per_node=32, mem_per_node_mb=64_000),
    "open": ClusterSpec("open", nodes=2, cpus_per_node=32, mem_per_node_mb=64_000, guard=False, accounting=False),
}
TOP_UP_MINUTES = 1
LAUNCH_FAILS_WITHIN_S = 60  # the documented promise, not the constant of the product
ENDED_AFTER_S = 105  # then the customers cancel the jobs that still run
OVER_WITHIN_S = 240  # after that
STARTED_WITHIN_S = 150
STEPS_AT_ONCE = 100  # outside of jobs; most of them only wait
MOST_LOG_BYTES = 100_000
SLOW_S = 10  # the time in which a busy machine starts or ends a payload
EPILOG = """#!/bin/sh
# As sites without cgroups have it: nothing of an account outlives its job. Each account here has one job.
pkill -KILL -u "$SLURM_JOB_UID"
exit 0
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sequence: the job on chain, the billed minutes, and when it really ran."""

    box: str
    plan: Sequence
    job: Job
    billed: int
    ran: Ran
    log: str

    @property
    def row(self) -> str:
        state = f"{self.job.status.words:14} {self.ran.seconds:5.0f} s ran, {self.billed} min billed"
        return f"{self.box:8} seed {self.plan.seed:5} {state}  {self.job.last_error}"

    @property
    def command(self) -> str:
        return f".venv/bin/python -m tests.attacks.random_run {self.box} {self.plan.seed}"

    @property
    def wrong(self) -> list[str]:
        """The broken promises."""
        job, seconds, found = self.job, self.ran.seconds, []
        if job.status.claimed:
            found.append(f"it is not over, but {job.status.words}")
        launch_failed = job.last_error == FAILED_LAUNCH.error and seconds <= LAUNCH_FAILS_WITHIN_S + SLOW_S
        if self.billed < int(seconds // 60) and not launch_failed:
            found.append(f"it ran for {seconds:.0f} s and pays for {self.billed} min")
        most = minutes_begun(int(self.ran.span_s)) + 1
        if job.status is JobStatus.CANCELLED:
            most = max(most, min(FEE_MINUTES, job.granted_minutes))
        if self.billed > min(most, job.granted_minutes):
            found.append(f"it pays for {self.billed} min, which is more than {most}, or than {job.granted_minutes}")
        if job.status is JobStatus.PANICKED or job.last_error in FAULTS:
            found.append(f"the provider is blamed: {job.status.words}, {job.last_error!r}")
        if job.last_error == FAILED_LAUNCH.error and not launch_failed:
            found.append("a launch that failed late is the provider's fault")
        if self.plan.quiet:
            found += self._disturbed()
        return found

    def _disturbed(self) -> list[str]:
        """Return the damage to a job that attacks nothing."""
        found = []
        if (self.job.status, self.job.exit_status) != (JobStatus.FAILED, 7 << 8):
            found.append(
                f"another account ended it: {self.job.status.words}, {self.job.exit_status}, {self.job.last_error}"
            )
        if self.billed not in (minutes_begun(self.plan.length_s), minutes_begun(self.plan.length_s + SLOW_S)):
            found.append(f"it worked for {self.plan.length_s} s and pays for {self.billed} min")
        if self.log != "done\n":
            found.append(f"its output is {self.log[:80]!r}")
        return found


@dataclass(frozen=True)
class Player:
    """A sequence, the account that runs it, and its claim."""

    plan: Sequence
    who: Attacker
    claim: Claim

    @property
    def folder(self) -> Path:
        return self.who.box.folder(self.claim.key)


async def play(folder: Path, seeds: dict[str, Many[int]]) -> list[Outcome]:
    """Run sequences on clusters, all at once."""
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(STEPS_AT_ONCE))
        asyncio.get_running_loop().set_default_executor(threads)
        requests = requests_in(stack.enter_context(open_folder()))
        specs = {name: SPECS[name] for name in seeds}
        site, table = stack.enter_context(running_site(folder, *specs.values()))
        boxes = {name: Box(site, table, spec.name) for name, spec in specs.items()}
        cleaning = {name for name in boxes if name == "guarded"}
        for name in cleaning:
            await asyncio.to_thread(_clean_after_jobs, boxes[name], requests.parent)
        games = []
        for name, box in boxes.items():
            people = {seed: stack.enter_context(attacker(box, requests)) for seed in seeds[name]}
            games.append(_Game(name, box, people, saboteur_in(requests.parent), daemons=name in cleaning))
        with Sampler(frozenset(who.uid for game in games for who in game.people.values())) as sampler:
            await asyncio.gather(*(game.play() for game in games))
        return [outcome for game in games for outcome in game.outcomes(sampler)]


def _clean_after_jobs(box: Box, folder: Path) -> None:
    epilog = folder / "epilog"
    epilog.write_text(EPILOG)
    epilog.chmod(0o755)
    conf = Path(box.site.environment(box.name)["SLURM_CONF"])
    conf.write_text(f"{conf.read_text()}Epilog={epilog}\n")
    box.slurm("scontrol", "reconfigure")


class _Game:
    """One cluster and its players."""

    def __init__(self, name: str, box: Box, people: dict[int, Attacker], functions: str, *, daemons: bool) -> None:
        self.name, self.box, self.people, self.functions, self.books = name, box, people, functions, Books()
        self.players: list[Player] = []
        for number, (seed, who) in enumerate(people.items(), 1):
            plan = sequence(seed, daemons=daemons)
            claim = self.books.claim(f"0x{number:040x}", "", plan.minutes)
            self.players.append(Player(plan, who, claim))
        for player in self.players:
            player.claim.script = player.who.payload(self._variables(player) + player.plan.body)
        accounts = {player.claim.customer: player.who.name for player in self.players}
        self.settings = settings_with(box, accounts)

    async def play(self) -> None:
        async with supervisor(self.books, self.settings) as one:
            asking = [asyncio.create_task(self._ask(player)) for player in self.players]
            with suppress(TimeoutError):  # the outcome shows jobs that are not over by then
                async with asyncio.timeout(ENDED_AFTER_S + OVER_WITHIN_S):
                    await asyncio.gather(*(self._play(one, player) for player in self.players))
            for task in asking:
                task.cancel()

    def outcomes(self, sampler: Sampler) -> list[Outcome]:
        return [
            Outcome(
                self.name, player.plan, self.books.outcome(player.claim), self.books.bill(player.claim),
                sampler.ran[player.who.uid], _text(player.folder / "output.log"),
            )
            for player in self.players
        ]  # fmt: skip

    async def _play(self, one: Supervisor, player: Player) -> None:
        early = [asyncio.to_thread(player.who.bash, f"{self._variables(player)}{text}") for text in player.plan.early]
        begun = [asyncio.create_task(step) for step in early]
        carrying = asyncio.create_task(one.carry(player.claim))
        try:
            await self._submitted(player)
            steps = [self._from_outside(player, step) for step in player.plan.outside]
            await asyncio.gather(carrying, *begun, *steps)
        finally:
            carrying.cancel()

    async def _submitted(self, player: Player) -> None:
        async with asyncio.timeout(STARTED_WITHIN_S):
            while not (player.folder / "id").exists():
                await asyncio.sleep(0.2)

    async def _from_outside(self, player: Player, step: Step) -> None:
        await asyncio.sleep(step.at_s)
        slurm_id = (player.folder / "id").read_text().split()[0]
        await asyncio.to_thread(player.who.bash, f"ID={slurm_id}\n{self._variables(player)}{step.text}")

    async def _ask(self, player: Player) -> None:
        """Make the customer's requests while the job runs."""
        await self._submitted(player)
        plan, began = player.plan, time.monotonic()
        wishes = [(plan.topped_up_at_s, True), (plan.cancelled_at_s, False), (ENDED_AFTER_S, False)]
        for at_s, more in sorted((at_s, more) for at_s, more in wishes if at_s is not None):
            await asyncio.sleep(max(0.0, began + at_s - time.monotonic()))
            if more:
                self.books.top_up(player.claim, TOP_UP_MINUTES)
            else:
                self.books.cancel(player.claim)

    def _variables(self, player: Player) -> str:
        """Return the variables of the steps. Ids count from 1, so other ids are easy to guess."""
        others = [other for other in self.players if other is not player] or [player]
        victim = others[player.plan.seed % len(others)]
        count = len(self.players)
        return (
            f"{self.functions}FOLDER={player.folder} NAME={player.claim.key.name} COMMENT={player.claim.key.comment}\n"
            f"VICTIM_FOLDER={victim.folder} VICTIM_COMMENT={victim.claim.key.comment}\n"
            f'VICTIM={player.plan.seed % count + 1}; [ "$VICTIM" != "$ID" ] || VICTIM=$((VICTIM % {count} + 1))\n'
        )


def _text(file: Path) -> str:
    """Return the beginning of a file, which may be huge."""
    if not file.is_file():
        return ""
    with file.open(errors="replace") as text:
        return text.read(MOST_LOG_BYTES)


def table(outcomes: Many[Outcome]) -> str:
    """Return one row per sequence, with the broken promises and the command that repeats it below."""
    lines = []
    for outcome in outcomes:
        lines.append(outcome.row)
        lines += [f"    WRONG: {what}" for what in outcome.wrong]
        lines += [f"    again: {outcome.command}"] if outcome.wrong else []
    return "\n".join(lines)


def main(box: str, *seeds: str) -> None:
    """Run these seeds again, alongside a job that attacks nothing."""
    wanted = [int(seed) for seed in seeds]
    with open_folder() as folder:
        outcomes = asyncio.run(play(folder, {box: sorted({*wanted, QUIET_EVERY * 1_000_000})}))
    print(table(outcomes))
    for outcome in outcomes:
        if outcome.plan.seed in wanted:
            print(outcome.plan, outcome.log, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
