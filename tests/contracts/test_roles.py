"""Permissions: a stranger tries every function that changes state. Each call is refused or open on purpose.

The list is complete: a new function in the ABI fails here until it has a line. Some Solidity test raises every error of
the contracts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from web3.contract import Contract

from tests.contracts.client import Client, Refused
from tests.contracts.scene import CREDIT, Scene
from tests.contracts.support import DEFINITION, HARDWARE, LABELS, NAME, PRICES, compiled, join, running

CONTRACTS = Path(__file__).parents[2] / "contracts"
ROLE, OWNER = "AccessControlUnauthorizedAccount", "OwnableUnauthorizedAccount"
OPEN = "open"  # succeeds: it only concerns the caller
PAYS = "ERC20: insufficient allowance"  # open to any caller who pays

# The result of each function for a stranger without credits, on a RUNNING job of other parties.
REFUSALS = {
    "MetaScheduler": {
        "requestNewJob": PAYS, "requestNewJobWithPermit": PAYS, "requestNewJobs": PAYS, "topUpJob": PAYS,
        "requestNewJobWithWishes": PAYS, "requestNewJobWithWishesAndPermit": PAYS, "requestNewJobsWithWishes": PAYS,
        "giveUpJob": "PendingStatusOnly",  # open to any caller from the wished time on
        "giveUpJobs": OPEN,  # skips jobs that are not given up
        "cancelJob": "CustomerOnly", "setDelegateSpendingAuthority": "CustomerOnly",
        "setSpendingLimit": "CustomerOnly",
        "topUpJobDelegate": "CustomerMetaSchedulerProviderOnly",
        "metaSchedule": ROLE, "metaScheduleJobs": ROLE, "panicJob": ROLE, "timeoutJob": ROLE,
        "claimNextJob": "ProviderNotJoined", "claimNextJobs": "ProviderNotJoined",
        "claimNextCancellingJob": "ProviderNotJoined", "claimNextTopUpJob": "ProviderNotJoined",
        "noteStanding": OPEN,  # only copies the registry
        "providerSetJobStatus": "ProviderNotJoined", "refuseJob": "ProviderNotJoined",
        "providerSetJobStatuses": OPEN,  # skips jobs of other providers
        "setEnableRequestNewJob": ROLE, "withdrawAdmin": ROLE,
        "setMinimumAmount": OWNER, "setDeepsquareCut": OWNER, "setBillDurationDeltaMinute": OWNER,
        "applyDeepsquareCut": "CutNotDue",  # open to any caller after the notice
        "setCancellationFeeMinute": OWNER, "setClaimJobTimeout": OWNER, "setTopUpSliceDurationMin": OWNER,
        "transferOwnership": OWNER, "renounceOwnership": OWNER,
        "grantRole": ROLE, "revokeRole": ROLE, "renounceRole": "AccessControlBadConfirmation",
    },
    "ProviderManager": {
        "register": OPEN,
        "approve": ROLE, "approveProposal": ROLE, "remove": ROLE, "ban": ROLE, "unban": ROLE,
        "grantRole": ROLE, "revokeRole": ROLE, "renounceRole": "AccessControlBadConfirmation",
    },
    "Credit": {
        "approve": OPEN, "transfer": "ERC20: transfer amount exceeds balance", "transferFrom": PAYS,
        "permit": "ERC2612ExpiredSignature", "mint": ROLE,
        "grantRole": ROLE, "revokeRole": ROLE, "renounceRole": "AccessControlBadConfirmation",
    },
}  # fmt: skip


WISHES = (1, 1, 2**40 - 1, 1, 0, False)


def _changing(contract: str) -> dict[str, dict[str, Any]]:
    return {
        entry["name"]: entry
        for entry in compiled(contract)
        if entry["type"] == "function" and entry["stateMutability"] not in ("view", "pure")
    }


@pytest.mark.parametrize("contract", REFUSALS)
def test_every_changing_function_has_a_row_of_refusals(contract: str) -> None:
    assert set(_changing(contract)) == set(REFUSALS[contract])


def _arguments(entry: dict[str, Any], job_id: bytes, scene: Scene) -> list[Any]:
    """Return the arguments that would be valid from the right account."""
    report = (job_id, 5, 1, "", 0)
    by_name: dict[str, Any] = {
        "jobId": job_id, "definition": DEFINITION, "lockedCredits": 100 * CREDIT, "jobName": NAME,
        "delegateSpendingAuthority": False, "requests": [(DEFINITION, 100 * CREDIT, NAME, False)],
        "wishes": [WISHES] if entry["name"] == "requestNewJobsWithWishes" else WISHES,
        "provider": scene.provider, "assignments": [(job_id, scene.provider)], "most": 1, "next": 5,
        "lastError": "", "jobIds": [job_id],
        "exitCode": 0, "reports": [report], "enabled": False, "newOwner": scene.rival, "role": bytes(32),
        "hash": bytes(32), "callerConfirmation": scene.customer, "hardware": HARDWARE, "prices": PRICES,
        "labels": LABELS, "owner": scene.customer, "from": scene.customer, "to": scene.rival, "spender": scene.rival,
        "account": scene.rival, "v": 27, "r": bytes(32), "s": bytes(32), "deadline": 0, "percent": 1,
        "amount": 20 * CREDIT, "limit": 1, "durationMinute": 1, "value": 1, "permit": (0, 0, 27, bytes(32), bytes(32)),
    }  # fmt: skip
    return [by_name[field["name"]] for field in entry["inputs"]]


@pytest.fixture
def stage(scene: Scene) -> tuple[Scene, bytes]:
    """The parties and a RUNNING job."""
    join(scene, scene.provider)
    return scene, running(scene)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_stranger_is_refused_every_restricted_call(stage: tuple[Scene, bytes], name: str) -> None:
    scene, job_id = stage
    client = scene.client
    stranger = client.person()
    parts: dict[str, Contract] = {
        "MetaScheduler": client.scheduler, "ProviderManager": client.providers, "Credit": client.credit,
    }  # fmt: skip
    whole = client.w3.eth.contract(address=parts[name].address, abi=compiled(name))
    got = {}
    for function, entry in _changing(name).items():
        call = getattr(whole.functions, function)(*_arguments(entry, job_id, scene))
        got[function] = _answer(client, call, stranger, name)
    assert got == REFUSALS[name]


def _answer(client: Client, call: Any, stranger: str, contract: str) -> str:
    try:
        client.ask(call, sender=stranger, more=compiled("Credit") + compiled(contract))
    except Refused as refused:
        return str(refused.error[0])
    return OPEN


def test_every_error_is_raised_by_some_test() -> None:
    errors = re.findall(r"^error (\w+)\(", (CONTRACTS / "src" / "Errors.sol").read_text(), re.MULTILINE)
    tests = "".join(path.read_text() for path in (CONTRACTS / "test").glob("*.t.sol"))
    assert len(errors) > 30
    assert [error for error in errors if f"{error}.selector" not in tests] == []


@pytest.mark.parametrize("contract", REFUSALS)
def test_every_function_is_called_by_some_solidity_test(contract: str) -> None:
    tests = "".join(path.read_text() for path in (CONTRACTS / "test").glob("*.sol"))
    functions = {entry["name"] for entry in compiled(contract) if entry["type"] == "function"}
    assert {name for name in functions if not re.search(rf"\.{name}\b", tests)} == set()
