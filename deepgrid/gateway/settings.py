"""Settings and limits of the web app's backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.services.admission import Rate

STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class WebLimits:
    """Limits of the web app. Times are seconds, sizes bytes. An address is a source address (IPv6: its /64).

    They are generous per address, because 1,000 open pages may share one, for example of a proxy or a university. Equal
    reads are merged, so the cost of an address to the node is limited separately from its requests. The price of a read
    is 1 for each `call_gas`.
    """

    # requests to the relay
    body_bytes: int = 256 * 1024
    body_within_s: float = 10.0  # the time for a body to arrive
    calls_per_batch: int = 100  # in one request
    running: int = 4096  # requests that wait for an answer
    running_per_address: int = 2048
    held_bytes: int = 128 * 1024 * 1024  # bodies of running requests
    held_bytes_per_address: int = 32 * 1024 * 1024
    turn_wait_s: float = 10.0  # until the requests of other addresses were read
    calls_per_address: Rate = field(default=Rate(5000, 50_000))  # also those that are answered from the cache
    reads_per_address: Rate = field(default=Rate(2000, 20_000))  # calls that reach the node, by their price
    answer_bytes: int = 1024 * 1024  # one result
    batch_bytes: int = 4 * 1024 * 1024  # all results of a batch
    # the node
    head_every_s: float = 1.0  # age at which the newest block is read again, while pages ask
    head_wait_s: float = 2.0  # for a newer block, until pages get the previous one
    gather_s: float = 0.03  # time for which reads are gathered into one batch
    node_batch: int = 100  # price of one batch
    node_batches_at_once: int = 4  # in flight
    node_answer_bytes: int = 8 * 1024 * 1024  # answer to one batch
    node_within_s: float = 15.0
    busy_within_s: float = 8.0  # for which a read is repeated that the node refuses because it is busy
    turn: int = 20  # price of the reads that an address gets into a batch before the next address has its turn
    reads_waiting: int = 40_000  # price of the reads that wait for an answer
    reads_waiting_per_address: int = 10_000
    call_gas: int = 500_000  # of a short call at first
    most_call_gas: int = 20_000_000  # if that is not enough
    estimate_gas: int = 5_000_000  # of the largest transaction whose need is estimated
    cache_bytes: int = 64 * 1024 * 1024  # results that are kept
    blocks_back: int = 1024  # reads of older blocks are refused
    blocks_ahead: int = 5  # and of later ones
    log_blocks: int = 10_000  # in one read of events
    # checks of workflows
    check_bytes: int = 256 * 1024
    check_within_s: float = 2.0
    checks_at_once: int = 4
    checks_per_address: Rate = field(default=Rate(10, 300))
    checks_waiting_per_address: int = 64
    check_wait_s: float = 8.0  # for a turn
    module_within_s: float = 60.0  # a check that fetches modules, on the customer's own machine


@dataclass(frozen=True)
class WebSettings:
    """Settings of the web app."""

    static: Path = STATIC  # the folder of the build
    local: bool = False  # the page belongs to one customer (`dps web`): modules are resolved, and there is a signer
    node_url: str | None = None  # shown to everybody; None shows none
    prefect_url: str | None = None  # the same
    transactions: bool = False  # the relay takes signed transactions to the grid's contracts, as a wallet's node
    limits: WebLimits = field(default_factory=WebLimits)
