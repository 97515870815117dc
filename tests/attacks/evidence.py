"""Runs all cases of evidence at the same time, each on its clusters, and returns their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.lifecycle.job import Job
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.attacks.attacker import Attacker, attacker, requests_in
from tests.attacks.claims import Books, Claim, settings_with, supervisor
from tests.attacks.evidence_cases import CASES, SPECS, WORK_S
from tests.running_site import running_site
from tests.slurm.support import Box, open_folder

AWAY_AFTER_S, AWAY_FOR_S = 10, WORK_S - 5
ASKED_AFTER_S = WORK_S + 3
OVER_WITHIN_S = 300
SUBMITTED_WITHIN_S = 150
STRANGER = "a stranger"


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attack: the job on chain and the billed minutes; `log` is the job's output."""

    job: Job
    billed: int
    log: str


@dataclass
class Ground:
    """A cluster on which cases run, each in its own account."""

    name: str
    box: Box
    settings: LoginSettings
    people: dict[str, Attacker]
    books: Books
    claims: dict[str, Claim]
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def slurm_id(self, claim: Claim) -> int:
        return int((self.box.folder(claim.key) / "id").read_text().split()[0])

    def outcome(self, case: str) -> Outcome:
        claim = self.claims[case]
        log = (self.box.folder(claim.key) / "output.log").read_text(errors="replace")
        return Outcome(self.books.outcome(claim), self.books.bill(claim), log)


def address(case: str) -> str:
    """Return the wallet address of a case's customer."""
    return f"0x{sorted(CASES).index(case) + 1:040x}"


async def play(folder: Path) -> dict[tuple[str, str], Outcome]:
    """Run all cases. Returns the outcome by cluster and case."""
    with ExitStack() as stack:
        requests = requests_in(stack.enter_context(open_folder()))
        site, table = stack.enter_context(running_site(folder, *SPECS.values()))
        grounds = []
        for name, spec in SPECS.items():
            box = Box(site, table, spec.name)
            cases = [case for case in CASES if name in CASES[case].grounds]
            people = {case: stack.enter_context(attacker(box, requests)) for case in (*cases, STRANGER)}
            books = Books()
            claims = {case: _claim(books, people[case], case) for case in cases}
            settings = settings_with(box, {address(case): people[case].name for case in cases})
            grounds.append(Ground(name, box, settings, people, books, claims))
        with suppress(TimeoutError):  # the outcome shows jobs that are not over by then
            async with asyncio.timeout(OVER_WITHIN_S):
                await asyncio.gather(*map(_play_on, grounds))
        return {(ground.name, case): ground.outcome(case) for ground in grounds for case in ground.claims}


def _claim(books: Books, who: Attacker, case: str) -> Claim:
    wanted = CASES[case]
    return books.claim(address(case), who.payload(wanted.body), wanted.minutes, wanted.definition)


async def _play_on(ground: Ground) -> None:
    _open(ground, "DOWN")
    async with _supervised(ground, away=False), _supervised(ground, away=True):
        await _submitted(ground)
        await asyncio.to_thread(_prepare, ground)
        _open(ground, "UP")
        ground.opened.set()
        await asyncio.sleep(ASKED_AFTER_S)
        for case, claim in ground.claims.items():
            if CASES[case].cancelled:
                ground.books.cancel(claim)


def _open(ground: Ground, state: str) -> None:
    ground.box.slurm("scontrol", "update", f"PartitionName={ground.box.settings.partition}", f"State={state}")


@asynccontextmanager
async def _supervised(ground: Ground, *, away: bool) -> AsyncIterator[None]:
    """Carry the cases until all are over, with a long break if `away`. An error in a carrier ends all."""
    claims = [claim for case, claim in ground.claims.items() if CASES[case].away == away]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_carry(ground, claims, away=away))
        yield


async def _carry(ground: Ground, claims: list[Claim], *, away: bool) -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(supervisor(ground.books, ground.settings))
        carried = asyncio.gather(*map(one.carry, claims))
        if not away:
            await carried
            return
        await ground.opened.wait()
        await asyncio.sleep(AWAY_AFTER_S)
        carried.cancel()
        await asyncio.gather(carried, return_exceptions=True)
    await asyncio.sleep(AWAY_FOR_S)
    async with supervisor(ground.books, ground.settings) as other:
        await asyncio.gather(*map(other.carry, claims))


async def _submitted(ground: Ground) -> None:
    async with asyncio.timeout(SUBMITTED_WITHIN_S):
        while not all((ground.box.folder(claim.key) / "id").exists() for claim in ground.claims.values()):
            await asyncio.sleep(0.1)


def _prepare(ground: Ground) -> None:
    """Do the actions of the cases while all jobs still wait."""
    others = list(ground.claims)
    for case, claim in ground.claims.items():
        other = ground.claims[others[others.index(case) - 1]]
        for who, deed in ((case, CASES[case].before), (STRANGER, CASES[case].stranger)):
            if deed is not None:
                deed(ground.people[who], claim, ground.slurm_id(claim), other, ground.slurm_id(other))
