"""Settings and limits of the web app's backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.services.admission import Rate

STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class WebLimits:
    """Limits of the web app. Times are seconds, sizes bytes. An address is a source address (IPv6: its /64).

    They are generous per address, because 1,000 open pages may share one: that of a proxy or of a university. Equal
    reads are joined, so what an address may cost the node is limited apart from its requests.

    Requests to the relay:
        body_bytes, body_within_s: the body of a request, and the time for it to arrive.
        calls_per_batch: calls in one request.
        running, running_per_address: requests that wait for an answer.
        held_bytes, held_bytes_per_address: their bodies.
        turn_wait_s: time that a request waits until those of other addresses were read.
        calls_per_address: calls, also those that are answered from the cache.
        reads_per_address: calls that reach the node, by their price: 1 for each `call_gas`.
        answer_bytes, batch_bytes: one result, and all results of a batch.
    The node:
        head_every_s: age at which the newest block is read again, while pages ask.
        gather_s: time for which reads are gathered into one batch.
        node_batch, node_batches_at_once: price of one batch, and batches on their way.
        turn: price of the reads that an address gets into a batch before the next address has its turn.
        node_answer_bytes: answer of the node to one batch.
        node_within_s: the node's answer.
        reads_waiting, reads_waiting_per_address: price of the reads that wait for an answer.
        call_gas, most_call_gas: gas of a short call at first, and if that is not enough.
        estimate_gas: gas of the largest transaction whose need is estimated.
        cache_bytes: results that are kept.
        blocks_back, blocks_ahead: reads of older or later blocks are refused.
        log_blocks: blocks of one read of events.
    Checks of workflows:
        check_bytes, check_within_s, checks_at_once, checks_per_address: as their names say.
        checks_waiting_per_address, check_wait_s: checks that wait for a turn, and their time.
        module_within_s: a check that fetches modules, on the customer's own machine.
    """

    body_bytes: int = 256 * 1024
    body_within_s: float = 10.0
    calls_per_batch: int = 100
    running: int = 4096
    running_per_address: int = 2048
    held_bytes: int = 128 * 1024 * 1024
    held_bytes_per_address: int = 32 * 1024 * 1024
    turn_wait_s: float = 10.0
    calls_per_address: Rate = field(default=Rate(5000, 50_000))
    reads_per_address: Rate = field(default=Rate(2000, 20_000))
    answer_bytes: int = 1024 * 1024
    batch_bytes: int = 4 * 1024 * 1024
    head_every_s: float = 1.0
    gather_s: float = 0.03
    node_batch: int = 100
    node_batches_at_once: int = 4
    node_answer_bytes: int = 8 * 1024 * 1024
    node_within_s: float = 15.0
    turn: int = 20
    reads_waiting: int = 40_000
    reads_waiting_per_address: int = 10_000
    call_gas: int = 500_000
    most_call_gas: int = 20_000_000
    estimate_gas: int = 5_000_000
    cache_bytes: int = 64 * 1024 * 1024
    blocks_back: int = 1024
    blocks_ahead: int = 5
    log_blocks: int = 10_000
    check_bytes: int = 256 * 1024
    check_within_s: float = 2.0
    checks_at_once: int = 4
    checks_per_address: Rate = field(default=Rate(10, 300))
    checks_waiting_per_address: int = 64
    check_wait_s: float = 8.0
    module_within_s: float = 60.0


@dataclass(frozen=True)
class WebSettings:
    """Settings of the web app.

    `static`: the folder of the build.
    `local`: the page belongs to one customer (`dps web`): modules are resolved, and a signer stands beside it.
    `node_url`, `prefect_url`: shown to everybody; None shows none.
    `transactions`: the relay takes signed transactions to the grid's contracts, as a wallet's node.
    """

    static: Path = STATIC
    local: bool = False
    node_url: str | None = None
    prefect_url: str | None = None
    transactions: bool = False
    limits: WebLimits = field(default_factory=WebLimits)
