"""Errors of the contracts as sentences for the user.

One table of selectors is built from the ABIs of all contracts, because a call of one contract may revert inside
another: the credit token may refuse a job's deposit.
"""

from __future__ import annotations

import functools
import string
from typing import TYPE_CHECKING, Any

from eth_typing import BlockNumber
from eth_utils.crypto import keccak

from deepgrid.billing.credits import format_credits
from deepgrid.chain.node.abi import decode_fields, selector
from deepgrid.chain.node.contract import CONTRACTS, interface
from deepgrid.chain.node.node_errors import NodeRefused, making_sense
from deepgrid.chain.node.rpc import Rpc
from deepgrid.chain.transactions.transaction import Call
from deepgrid.errors import ChainError, ContractError, GridError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from web3.types import TxParams

ADMIN = "DEFAULT_ADMIN_ROLE"
ROLES = (ADMIN, "METASCHEDULER_ROLE", "METASCHEDULER_CONTRACT_ROLE", "MINTER_ROLE")
OUT_OF_GAS = "OutOfGas"
TOO_MUCH_GAS = (
    "out of gas",
    "outofgas",
    "memoryoog",
    "gas required exceeds",
    "exceeds block gas limit",
    "gas limit too high",
)
SOLIDITY_ERRORS: tuple[dict[str, Any], ...] = (
    {"type": "error", "name": "Error", "inputs": [{"name": "message", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)

# Error name -> (sentence, next step). The format `credits` is for wei, `status` for a state, `role` for a role's hash.
SENTENCES: dict[str, tuple[str, str]] = {
    "SameStatusError": ("The job already has that state.", "Look at it with `dps job get`."),
    "InvalidTransition": (
        "A job that is {from:status} cannot become {to:status}.",
        "Look at it with `dps job get`.",
    ),
    "JobHotStatusOnly": ("The job is over: it is {current:status}.", ""),
    "MetaScheduledScheduledStatusOnly": (
        "The job is {current:status}; only an assigned job that has not started can be refused.",
        "",
    ),
    "RunningScheduledStatusOnly": (
        "The job is {current:status}; only a claimed job can be topped up.",
        "Wait until a cluster has claimed it; submit a job that is over again.",
    ),
    "RunningColdStatusOnly": ("A provider reports that a job runs or is over, not that it is {current:status}.", ""),
    "TimeoutTooEarly": ("The provider still has time, until unix second {notBefore}.", "Try again then."),
    "CustomerOnly": ("Only the job's customer {expected} may do this; {current} asked.", "Use the customer's key."),
    "JobProviderOnly": ("Only the job's provider {expected} may do this; {current} asked.", ""),
    "CustomerMetaSchedulerProviderOnly": (
        "Only the job's customer, its provider or the meta-scheduler may do this.",
        "Use the customer's key.",
    ),
    "NewJobRequestDisabled": ("The grid takes no new jobs at the moment.", "Try again later."),
    "InsufficientFunds": (
        "{available:credits} credits are not enough: {required:credits} are required.",
        "Lock more credits.",
    ),
    "InvalidJobDefinition": ("The job requests no tasks, no CPUs or no memory.", "Correct its resources."),
    "TooMuchLocked": ("{amount:credits} credits are more than a job can hold: {most:credits}.", "Lock less."),
    "BlobTooLong": (
        "The jobs' texts and labels take {length} bytes; the chain keeps at most {most} together.",
        "Shorten them, or request fewer jobs at once.",
    ),
    "FailedCall": (
        "The contract has no such function, or had too little gas for it.",
        "Check that the contracts are of this version.",
    ),
    "AddressEmptyCode": ("There is no contract at {target}.", "Check the addresses in the address book."),
    "InvalidJob": ("There is no such job.", "Look at `dps job list`."),
    "ProviderNotJoined": ("The provider is not approved, or is banned.", ""),
    "InsufficientHardware": ("The nodes of {provider} together are too small for the job.", ""),
    "NoSpendingAuthority": ("The customer gave no authority to top the job up.", ""),
    "RemainingTimeAboveLimit": (
        "The job has {remaining} minutes left; a top-up is possible with at most {limit}.",
        "",
    ),
    "NoJob": ("No job is waiting for this provider.", ""),
    "OutOfBounds": ("The list has changed since its last page was read.", "Read it from the start."),
    "TooManyNodes": ("A provider has at most {most} nodes on chain, not {count}.", "Offer a smaller partition."),
    "TooManyLabels": ("{count} labels are too many: the chain takes at most {most}.", "Remove some labels."),
    "LabelTooLong": (
        "A label's key or value has {length} bytes; the chain takes at most {most}.",
        "Shorten the provider's labels.",
    ),
    "ProposalChanged": (
        "The provider has replaced its proposal meanwhile.",
        "Check the new one with `dps provider status`.",
    ),
    "ProposalTooRecent": (
        "The proposal changed recently: approve it by its hash, or after unix second {notBefore}.",
        "Use `dps provider approve`.",
    ),
    "InvalidNodesCount": ("A provider needs at least one node.", "Correct the hardware."),
    "ArrayLengthMismatch": ("The hardware does not have one number per node.", "Correct the hardware."),
    "InvalidTotalCpus": ("The nodes have no CPU.", "Correct the hardware."),
    "InvalidTotalMem": ("The nodes have no memory.", "Correct the hardware."),
    "NoProvider": ("There is no such provider.", ""),
    "WaitingApprovalOnly": ("No proposal of the provider waits for approval.", ""),
    "Banned": ("The provider is banned.", ""),
    "AlreadyDone": ("The provider already has that status.", ""),
    "InvalidConstant": ("{value} is out of range: {least} to {most}.", ""),
    "CutNotDue": (
        "No new cut can take effect before unix second {notBefore} (0: no notice was given).",
        "Wait until then, or announce a cut with `dps operator constants cut PERCENT`.",
    ),
    "ERC20InsufficientBalance": (
        "{sender} has {balance:credits} credits; {needed:credits} are needed.",
        "Get more credits.",
    ),
    "ERC20InsufficientAllowance": (
        "The grid may spend {allowance:credits} credits of yours; {needed:credits} are needed.",
        "Raise the allowance with `dps allowance set`.",
    ),
    "ERC20InvalidReceiver": ("Credits cannot be sent to {receiver}.", "Give another address."),
    "ERC20InvalidSpender": ("{spender} cannot be allowed to spend credits.", ""),
    "ERC20InvalidSender": ("{sender} cannot give credits away.", ""),
    "ERC20InvalidApprover": ("{approver} cannot allow others to spend credits.", ""),
    "SafeERC20FailedOperation": ("The token {token} did not move the credits.", "Check the addresses in the book."),
    "ERC2612ExpiredSignature": ("The permit was valid until unix second {deadline}.", "Sign a new one."),
    "ERC2612InvalidSigner": ("The permit is signed by {signer}, not by {owner}.", "Sign it with the owner's key."),
    "InvalidAccountNonce": ("The permit's number is not {account}'s next, {currentNonce}.", "Sign a new one."),
    "ECDSAInvalidSignature": ("The signature is not valid.", "Sign again."),
    "ECDSAInvalidSignatureLength": ("A signature has 65 bytes, not {length}.", "Sign again."),
    "ECDSAInvalidSignatureS": ("The signature is not in its canonical form.", "Sign again."),
    "InvalidShortString": ("The token's name is stored in a format that cannot be read.", ""),
    "StringTooLong": ("The token's name {str} is too long.", ""),
    "AccessControlUnauthorizedAccount": ("{account} lacks the role {neededRole:role}.", "Use a key that has it."),
    "AccessControlBadConfirmation": ("Only the key that has a role can renounce it.", "Use that key."),
    "OwnableInvalidOwner": ("{owner} cannot own the contract.", ""),
    "OwnableUnauthorizedAccount": ("{account} is not the contract's owner.", "Use the owner's key."),
}

# Text of a token's error -> the error of newer tokens with the same meaning, its sentence, next step. Credit keeps the
# texts of OpenZeppelin 4, because existing clients show them.
TOKEN_TEXTS: dict[str, tuple[str, str, str]] = {
    "ERC20: transfer amount exceeds balance": (
        "ERC20InsufficientBalance", "The account that pays has too few credits.", "Get more credits.",
    ),
    "ERC20: insufficient allowance": (
        "ERC20InsufficientAllowance", "The grid may not spend that many credits of the account that pays.",
        "Raise the allowance with `dps allowance set`.",
    ),
}  # fmt: skip

PANICS = {
    0x01: "an assertion failed",
    0x11: "a number overflowed",
    0x12: "a division by zero",
    0x21: "a value outside its enum",
    0x22: "broken storage",
    0x31: "an empty list",
    0x32: "an index outside its list",
    0x41: "too much memory",
    0x51: "a call of an empty function pointer",
}


def role_hash(role: str) -> bytes:
    """The 32 bytes that identify `role` in AccessControl."""
    return bytes(32) if role == ADMIN else keccak(text=role)


class _SentenceFormatter(string.Formatter):
    """str.format with the additional formats `credits`, `status` and `role`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "credits":
            return format_credits(value)
        if format_spec == "status":
            return JobStatus(value).words if value in iter(JobStatus) else f"in state {value}"
        if format_spec == "role":
            return next((role for role in ROLES if role_hash(role) == value), f"0x{value.hex()}")
        return str(super().format_field(value, format_spec))


def contract_error(data: bytes) -> ContractError:
    """The error in the revert data of a call."""
    known = _table().get(data[:4])
    try:
        if known is None:
            return ContractError(_plain_revert(data))
        args = {
            field["name"]: value
            for field, value in zip(known["inputs"], decode_fields(known["inputs"], data[4:]), strict=True)
        }
    except ChainError:
        return ContractError("The contract refused the call; its revert data cannot be decoded.")
    name: str = known["name"]
    if name == "Panic":
        message, next_step = f"The contract failed: {PANICS.get(args['code'], hex(args['code']))}.", ""
    elif name == "Error":
        unknown = ("Error", f"The contract refused: {args['message']}.", "")
        name, message, next_step = TOKEN_TEXTS.get(args["message"], unknown)
    else:
        message, next_step = SENTENCES.get(name, (f"The contract refused: {name}.", ""))
        message = _SentenceFormatter().vformat(message, (), args)
    return ContractError(message, name=name, args_by_name=args, next_step=next_step)


def refusal(error: ChainError) -> GridError:
    """The contract's error inside a node's error, if there is one; else `error` itself."""
    if isinstance(error, NodeRefused):
        if error.data:
            return contract_error(error.data)
        reason = error.reason.lower()
        if any(words in reason for words in TOO_MUCH_GAS):
            return ContractError("The call takes more gas than a transaction may have.", name=OUT_OF_GAS)
        if "revert" in reason:
            return ContractError("The contract refused the call and gave no reason.")
    return error


def too_large(error: GridError) -> bool:
    """Whether the refused call may succeed with fewer items.

    FailedCall counts too: if RareCalls runs out of gas, the MetaScheduler only sees that its call failed.
    """
    return isinstance(error, ContractError) and error.name in (OUT_OF_GAS, "FailedCall")


def refused_sending(error: NodeRefused, address: str) -> GridError:
    """The error for a transaction of `address` that the node refused."""
    if "insufficient funds" in error.reason.lower():
        return ChainError(f"{address} cannot pay for gas.", next_step=f"Send gas money to {address}.")
    return refusal(error)


def already_known(error: NodeRefused) -> bool:
    """Whether the node already has this transaction."""
    return "already" in error.reason.lower()


def number_taken(error: NodeRefused) -> bool:
    """Whether another transaction has the nonce."""
    return "nonce too low" in error.reason.lower() or too_cheap(error)


def too_cheap(error: NodeRefused) -> bool:
    """Whether another transaction has the nonce, which one with a higher fee would replace."""
    return "underpriced" in error.reason.lower()


def below_base_fee(error: NodeRefused) -> bool:
    """Whether the base fee outgrew the offer since the fees were read."""
    return "less than block base fee" in error.reason.lower()


async def mined_revert_reason(rpc: Rpc, sender: str, call: Call, gas: int, receipt: dict[str, Any]) -> ContractError:
    """Why a mined transaction was reverted. Receipts do not say it, so this simulates the call again.

    It simulates on the state after the block, which includes earlier transactions of the block and the block's time.
    Then it tries the state before the block, then the newest state, because some nodes keep no other. Raises
    ChainError if the node does not answer.
    """
    if int(receipt["gasUsed"], 16) >= gas:
        return ContractError(f"{call.title} needed more than its {gas} gas.", name=OUT_OF_GAS)
    number = int(receipt["blockNumber"], 16)
    again: TxParams = {**call.as_params(sender), "gas": gas}
    for block in (BlockNumber(number), BlockNumber(number - 1), "latest"):
        try:
            with making_sense("a call made again"):
                await rpc.w3.eth.call(again, block)
        except ChainError as error:
            reason = refusal(error)
            if isinstance(reason, ContractError):
                return reason
            if not isinstance(error, NodeRefused):
                raise
    return ContractError(f"{call.title} was reverted when it was mined, and would succeed now.")


def _plain_revert(data: bytes) -> str:
    what = f"an unknown reason (0x{data[:4].hex()})" if len(data) >= 4 else "no reason"
    return f"The contract refused the call and gave {what}."


@functools.cache
def _table() -> dict[bytes, dict[str, Any]]:
    table = {selector(item): item for item in SOLIDITY_ERRORS}
    for contract in CONTRACTS:
        table.update(interface(contract).errors)
    return table
