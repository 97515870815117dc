"""Whether providers registered, were approved, removed, banned or admitted again in some blocks."""

from __future__ import annotations

from deepgrid.chain.client import Chain


async def providers_changed(chain: Chain, first_block: int, last_block: int) -> bool:
    """Whether the ProviderManager has any event in these blocks (inclusive). One small request."""
    wanted = {
        "address": chain.book.provider_manager, "fromBlock": hex(first_block), "toBlock": hex(last_block),
    }  # fmt: skip
    return bool(await chain.rpc.call("eth_getLogs", wanted))
