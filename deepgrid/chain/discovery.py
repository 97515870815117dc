"""Finds a grid from its MetaScheduler: the contract names all others."""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils.address import to_checksum_address

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node import read_chain_id
from deepgrid.chain.node.node_errors import Request
from deepgrid.chain.node.rpc import Rpc
from deepgrid.errors import ChainError, ConfigurationError

NAMES = ("credit", "providerManager")


@dataclass(frozen=True)
class GridContracts:
    """The chain of a grid, and the contracts that its MetaScheduler names."""

    chain_id: int
    credit: str
    provider_manager: str


async def discover(rpc_url: str, meta_scheduler: str) -> GridContracts:
    """Ask the node at `rpc_url` for the grid of this MetaScheduler.

    Raises ChainError if the node does not answer, ConfigurationError if there is no MetaScheduler at the address.
    """
    rpc, contract = Rpc(rpc_url), interface("MetaScheduler")
    calls: list[Request] = [
        ("eth_call", [{"to": meta_scheduler, "data": contract.encode(name)}, "latest"]) for name in NAMES
    ]
    try:
        chain_id = await read_chain_id(rpc)
        answers = await rpc.batch(calls)
        found = [contract.decode(name, bytes.fromhex(text[2:])) for name, text in zip(NAMES, answers, strict=True)]
        return GridContracts(chain_id, *(str(to_checksum_address(address)) for address in found))
    except ChainError as error:
        if error.transient:
            raise
    except (ValueError, TypeError):
        pass
    finally:
        await rpc.close()
    raise ConfigurationError(f"There is no MetaScheduler contract at {meta_scheduler}.")
