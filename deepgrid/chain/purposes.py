"""The purpose of each transfer of credits to or from the MetaScheduler. Pure: decoded logs in, entries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from deepgrid.billing.entries import Purpose, Transfer
from deepgrid.chain.node.contract import Event, interface

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
    due: list[tuple[Purpose, int, str]] = field(default_factory=list)  # expected payments: purpose, job, payee

    def read(self, log: Event) -> None:
        if log.name == "JobCreated" and self.taken:
            self._add(self.taken.pop(), Purpose.DEPOSIT, log.job_id)
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
