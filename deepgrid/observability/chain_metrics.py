"""Metrics of the chain that processes of several roles have."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from deepgrid.chain.node.node_errors import NodeRefused
from deepgrid.errors import ChainError

WEI_PER_COIN = 10**18


class RpcCounters:
    """Counts requests to the chain's node and failed exchanges. `prefix` begins the names of both metrics."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        self._calls = Counter(f"{prefix}_rpc_calls", "Requests to the chain's node.", registry=registry)
        self._errors = Counter(
            f"{prefix}_rpc_errors", "Exchanges with the chain's node that failed.", ["reason"], registry=registry
        )
        for reason in ("unreachable", "refused"):  # make the labels known before their first event
            self._errors.labels(reason)

    def asked(self, requests: int, error: ChainError | None) -> None:
        """Count a batch of requests, and its error. A revert by a contract is an answer."""
        self._calls.inc(requests)
        if error is not None and not (isinstance(error, NodeRefused) and error.data is not None):
            self._errors.labels("refused" if isinstance(error, NodeRefused) else "unreachable").inc()
