"""The purpose of each transfer of credits to or from the MetaScheduler. Pure: decoded logs in, entries out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from deepgrid.billing.entries import Purpose, Transfer
from deepgrid.chain.node.contract import Event, interface
from deepgrid.lifecycle.job import Job

ID_HEX_DIGITS = 64


def with_purposes(
    events: Sequence[Event], moved: Sequence[Event], contract: str, top_ups: Mapping[str, int]
) -> tuple[Transfer, ...]:
    """Transfer logs `moved` with their purposes, from the contract's `events` in the same transactions.

    `top_ups` maps the hash of a transaction to the job that it topped up.
    """
    logs = sorted([*events, *moved], key=lambda log: (log.block, log.log_index))
    found: list[Transfer] = []
    for tx_hash, one_transaction in groupby(logs, key=lambda log: log.tx_hash):
        reader = _Reader(contract, top_ups.get(tx_hash))
        for log in one_transaction:
            reader.read(log)
        found += reader.end()
    return tuple(found)


def with_own_deposits(
    transfers: Sequence[Transfer], events: Sequence[Event], jobs: Mapping[int, Job]
) -> tuple[Transfer, ...]:
    """Return the transfers, with one deposit per job where one transfer paid for a batch of requests.

    Each of the `jobs` gets what it locked without its top-ups. The rest goes to the first job of the batch that is not
    among them, or to its first job. So the sum is what was transferred.
    """
    created: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.name == "JobCreated":
            created[event.tx_hash].append(event)
    topped_up: Counter[int | None] = Counter()
    deposits: defaultdict[str, list[int]] = defaultdict(list)  # places of the transfers
    for one in transfers:
        if one.purpose is Purpose.DEPOSIT:
            deposits[one.tx_hash].append(one.log_index)
        elif one.purpose is Purpose.TOP_UP:
            topped_up[one.job_id] += one.wei
    locked = {job_id: max(0, job.locked_wei - topped_up[job_id]) for job_id, job in jobs.items()}
    found: list[Transfer] = []
    for one in transfers:
        if one.purpose is not Purpose.DEPOSIT:
            found.append(one)
            continue
        end = min((at for at in deposits[one.tx_hash] if at > one.log_index), default=math.inf)
        ids = [event.job_id for event in created[one.tx_hash] if one.log_index < event.log_index < end]
        found += _shares(one, ids, locked)
    return tuple(found)


def _shares(paid: Transfer, ids: Sequence[int], locked: Mapping[int, int]) -> list[Transfer]:
    """Return the deposits of the jobs that this transfer paid for."""
    if len(ids) == 1:
        return [paid]
    left, shares = paid.wei, dict[int, int]()
    for job_id in ids:
        shares[job_id] = min(left, locked.get(job_id, 0))
        left -= shares[job_id]
    heir = next((job_id for job_id in ids if job_id not in locked), ids[0])
    shares[heir] += left
    return [replace(paid, job_id=job_id, wei=wei) for job_id, wei in shares.items() if wei]


def top_up_of(to: str | None, call_data: str, contract: str) -> int | None:
    """Return the job that a transaction with this call data tops up; None if it tops up none."""
    if to is None or to.lower() != contract.lower():
        return None
    scheduler = interface("MetaScheduler")
    calls = (scheduler.encode("topUpJob", bytes(32), 0), scheduler.encode("topUpJobDelegate", bytes(32)))
    if call_data[:10] not in [call[:10] for call in calls]:
        return None
    return int(call_data[10 : 10 + ID_HEX_DIGITS], 16)


@dataclass
class _Reader:
    """Reads the logs of one transaction in their order."""

    contract: str
    topped_up: int | None
    found: list[Transfer] = field(default_factory=list)
    taken: list[Event] = field(default_factory=list)  # transfers to the contract without an explanation so far
    older: int = 0  # how many of them came before the last request
    due: list[tuple[Purpose, int, str]] = field(default_factory=list)  # expected payments: purpose, job, payee

    def read(self, log: Event) -> None:
        if log.name == "JobCreated":
            if len(self.taken) > self.older:  # else a transfer paid for a batch
                self._add(self.taken.pop(), Purpose.DEPOSIT, log.job_id)
            self.older = len(self.taken)
        elif log.name == "JobSettledEvent":
            args = log.args
            self.due += [(Purpose.PAID, log.job_id, args["provider"])] if args["paid"] else []
            self.due += [(Purpose.REFUND, log.job_id, args["customer"])] if args["refunded"] else []
        elif log.name == "CancelReleasedEvent":
            self.due.append((Purpose.RELEASE, log.job_id, log.args["customer"]))
        elif log.name == "Transfer" and log.args["to"] == self.contract:
            self.taken.append(log)
        elif log.name == "Transfer":
            self._pay(log)

    def end(self) -> list[Transfer]:
        for log in self.taken:
            purpose = Purpose.STRAY if self.topped_up is None else Purpose.TOP_UP
            self._add(log, purpose, self.topped_up)
        return self.found

    def _pay(self, log: Event) -> None:
        due = next((due for due in self.due if due[2] == log.args["to"]), None)
        if due is None:
            self._add(log, Purpose.WITHDRAWAL, None)
        else:
            self.due.remove(due)
            self._add(log, due[0], due[1])

    def _add(self, log: Event, purpose: Purpose, job_id: int | None) -> None:
        args, block, tx_hash = log.args, log.block, log.tx_hash
        moved = Transfer(purpose, job_id, args["from"], args["to"], args["value"], block, tx_hash, log.log_index)
        self.found.append(moved)
