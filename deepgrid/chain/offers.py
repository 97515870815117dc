"""Offers of a provider on chain: the approved version, the proposal, their differences, and the proposal's hash."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from eth_utils.crypto import keccak

from deepgrid.billing.credits import format_credits
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_hardware, coded_labels, coded_prices
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider

SELECTOR_DIGITS = len("0x") + 8


class Standing(Enum):
    """The standing of a provider. The value is a phrase to write after its name."""

    UNKNOWN = "is not registered"
    WAITING = "waits for approval"
    CHANGE_WAITS = "is approved; a change waits for approval"
    APPROVED = "is approved"
    BANNED = "is banned"

    @property
    def waits(self) -> bool:
        """Whether the operator has something to approve."""
        return self in (Standing.WAITING, Standing.CHANGE_WAITS)

    @property
    def in_force(self) -> bool:
        """Whether the provider may be given jobs."""
        return self in (Standing.CHANGE_WAITS, Standing.APPROVED)


@dataclass(frozen=True, slots=True)
class Versions:
    """Both versions of a provider on chain: the approved one, and the proposal that waits for approval."""

    approved: Provider | None
    proposed: Provider | None

    @property
    def newest(self) -> Provider | None:
        return self.proposed or self.approved

    @property
    def standing(self) -> Standing:
        if self.newest is None:
            return Standing.UNKNOWN
        if self.newest.banned:
            return Standing.BANNED
        if self.proposed is None:
            return Standing.APPROVED
        return Standing.CHANGE_WAITS if self.approved else Standing.WAITING


async def read_versions(chain: Chain, address: str) -> Versions:
    """Read both versions of the provider at `address`."""
    proposed = await chain.proposal(address)
    try:
        found = await chain.provider(address)
    except NotFound:
        return Versions(None, proposed)
    return Versions(found if found.approved else None, proposed)


def differences(old: Provider | None, hardware: Hardware, prices: Prices, labels: tuple[Label, ...]) -> tuple[str, ...]:
    """Return each difference as a line `name: old -> new`; the whole offer for a first registration."""
    before = _facts(old.hardware, old.prices, old.labels) if old else {}
    after = _facts(hardware, prices, labels)
    keys = sorted(before.keys() | after.keys(), key=lambda key: (key.startswith("label "), key))
    return tuple(
        f"{key}: {before.get(key, 'none')} -> {after.get(key, 'none')}" if old else f"{key}: {after[key]}"
        for key in keys
        if before.get(key) != after.get(key)
    )


def proposal_hash(proposed: Provider) -> bytes:
    """Return the hash that lets the operator approve exactly the proposal it has read.

    The contract computes the same hash: keccak256 of the ABI-encoded arguments of `register` (hardware, prices,
    labels). Compute it from the reviewed offer; never read it from the chain. A label that is not UTF-8 is read with
    replacement characters. The hash of such a proposal differs from the hash on chain, so it cannot be approved.
    """
    arguments = coded_hardware(proposed.hardware), coded_prices(proposed.prices), coded_labels(proposed.labels)
    call = interface("ProviderManager").encode("register", *arguments)
    return keccak(bytes.fromhex(call[SELECTOR_DIGITS:]))


def _facts(hardware: Hardware, prices: Prices, labels: tuple[Label, ...]) -> dict[str, str]:
    figures = {
        "CPUs by node": hardware.cpus_per_node,
        "GPUs by node": hardware.gpus_per_node,
        "MB by node": hardware.mem_per_node_mb,
    }
    return {
        **{name: ", ".join(map(str, each)) for name, each in figures.items()},
        "credits per CPU and minute": format_credits(prices.cpu_wei_per_minute),
        "credits per GPU and minute": format_credits(prices.gpu_wei_per_minute),
        "credits per MB and minute": format_credits(prices.mem_wei_per_mb_minute),
        **{f"label {label.key}": label.value for label in labels},
    }
