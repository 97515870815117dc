"""Signs and sends for the page, as far as `typed_data`, `calls` and `limit` allow."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.client.spending.budgets import BudgetKeeper
from deepgrid.errors import ConfigurationError, ContractError, InputError
from deepgrid.services.signing.request_signing import Domain
from deepgrid.signer.calls import Costs, PageCall
from deepgrid.signer.calls import parse as parse_call
from deepgrid.signer.limit import Charge, SpendingLimit
from deepgrid.signer.refused import MALFORMED, NO_SUCH_METHOD, Refused
from deepgrid.signer.typed_data import Grid, rebuild
from deepgrid.signer.typed_data import parse as parse_typed

logger = logging.getLogger(__name__)

CREDIT_VERSION = "1"  # of the token's EIP-712 domain


class Signer:
    """The account of `sender` as an EIP-1193 provider. All its transactions go through this sender."""

    def __init__(self, chain: Chain, sender: Sender, limit: SpendingLimit) -> None:
        self._chain = chain
        self._sender = sender
        self._limit = limit
        self._budget = BudgetKeeper(chain, sender.address)
        self._methods: dict[str, Callable[[list[Any], str], Awaitable[Any]]] = {
            "eth_accounts": self._accounts,
            "eth_requestAccounts": self._accounts,
            "eth_chainId": self._chain_id,
            "eth_signTypedData_v4": self._sign,
            "eth_sendTransaction": self._send,
        }

    async def call(self, method: str, params: list[Any], origin: str) -> Any:
        """Return the result of one call of the page at `origin`. Raises Refused, and GridError from the chain."""
        known = self._methods.get(method)
        if known is None:
            raise Refused("The signer has no such method. Reads go to the relay.", NO_SUCH_METHOD)
        return await known(params, origin)

    async def _accounts(self, _params: list[Any], _origin: str) -> list[str]:
        return [self._sender.address]

    async def _chain_id(self, _params: list[Any], _origin: str) -> str:
        return hex(self._chain.book.chain_id)

    async def _sign(self, params: list[Any], origin: str) -> str:
        if len(params) != 2 or str(params[0]).lower() != self._sender.address.lower():
            raise Refused("The parameters are the signer's address and typed data.", MALFORMED)
        typed = parse_typed(params[1])
        domain, message = rebuild(typed, await self._grid(origin))
        if typed.kind == "Permit":
            self._limit.permit(message["nonce"], message["value"])
        signature = self._sender.wallet.sign_typed(domain, typed.types, message)
        _log_signature(typed.kind, message)
        return signature

    async def _send(self, params: list[Any], _origin: str) -> str:
        if len(params) != 1:
            raise Refused("The parameter is one transaction.", MALFORMED)
        call = parse_call(params[0], self._chain.book, self._sender.address)
        async with self._budget.alone(call.costs.locks):
            receipt = await self._pay_and_send(call)
        _log_call(call, receipt.tx_hash)
        return receipt.tx_hash

    async def _pay_and_send(self, call: PageCall) -> Receipt:
        charges = await self._charge(call.costs)
        try:
            return await self._sender.send(Call(call.function, call.to, call.data))
        except (ContractError, InputError) as error:  # nothing has moved
            for charge in reversed(charges):
                charge.undo()
            logger.info("the signer sent nothing, the contract refused %s: %s", call.function, error.message)
            raise

    async def _charge(self, costs: Costs) -> list[Charge]:
        """Count what the call costs. Raises Refused when that exceeds the limit."""
        if costs.locks:
            await self._require_budget(costs.locks)
        standing = 0
        if costs.delegates or costs.allows is not None:
            standing = await self._chain.allowance(self._sender.address)
        if costs.delegates:  # the grid may lock the rest of the allowance, so it counts as locked
            allowed = standing if costs.allows is None else costs.allows
            return [self._limit.lock(max(allowed, costs.locks))]
        if costs.locks:
            return [self._limit.lock(costs.locks)]
        if costs.transfers:
            return [self._limit.transfer(costs.transfers)]
        return [self._limit.grant(max(0, (costs.allows or 0) - standing))]

    async def _require_budget(self, wei: int) -> None:
        try:
            await self._budget.require(wei)
        except (InputError, ConfigurationError) as error:
            raise Refused(str(error)) from None

    async def _grid(self, origin: str) -> Grid:
        book = self._chain.book
        own = Domain(book.chain_id, book.meta_scheduler).as_dict()
        credit = own | {"name": await self._token_name(), "version": CREDIT_VERSION, "verifyingContract": book.credit}
        domains = {"Session": own, "Permit": credit}
        now = await self._chain.next_block_time()
        return Grid(self._sender.address, book.meta_scheduler, domains, origin, now)

    async def _token_name(self) -> str:
        """Return the name of the token's EIP-712 domain, which is the token's name."""
        data = interface("Credit").encode("name")
        answer = await self._chain.rpc.call("eth_call", {"to": self._chain.book.credit, "data": data}, "latest")
        return str(interface("Credit").decode("name", bytes.fromhex(answer[2:])))


def _log_signature(kind: str, message: dict[str, Any]) -> None:
    if kind == "Session":
        logger.info("the signer signed a session key: rights=%s not_after=%d", message["rights"], message["notAfter"])
    else:
        credits = format_credits(message["value"])
        logger.info("the signer signed a permit: credits=%s deadline=%d", credits, message["deadline"])


def _log_call(call: PageCall, tx_hash: str) -> None:
    costs = call.costs
    wei = costs.locks or costs.transfers or costs.allows or 0
    logger.info("the signer sent %s: credits=%s transaction=%s", call.function, format_credits(wei), tx_hash)
