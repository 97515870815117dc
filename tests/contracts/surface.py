"""The surface that existing clients find on chain, as data: names, argument order, structs, enums, events and errors.
It was written from a description of the observed system, not from our contracts. `test_surface.py` compares the two.

A declaration reads `name(type argument, ...) -> (type result, ...)`, a view has `view` before the arrow. Structs and
enums appear by name. A number without a width in the description is uint256 here.
"""

from __future__ import annotations

import re
from typing import Any

ENUMS = {
    "JobStatus": ("PENDING META_SCHEDULED SCHEDULED RUNNING CANCELLED FINISHED FAILED OUT_OF_CREDITS PANICKED"),
    "StorageType": "TRANSFER HTTP S3 RESERVED NONE",
}

STRUCTS = {
    "Label": "string key, string value",
    "Affinity": "Label label, bytes2 op",
    "JobDefinition": (
        "uint64 gpus, uint64 memPerCpu, uint64 cpusPerTask, uint64 ntasks, string batchLocationHash,"
        " StorageType storageType, Label[] uses, Affinity[] affinity"
    ),
    "JobCost": "uint256 maxCost, uint256 finalCost, uint256 pendingTopUp, bool delegateSpendingAuthority",
    "JobTime": (
        "uint256 submit, uint256 start, uint256 end, uint256 cancelRequestTimestamp, uint256 blockNumberStateChange,"
        " uint256 panicTimestamp"
    ),
    "Job": (
        "bytes32 jobId, JobStatus status, address customerAddr, address providerAddr, JobDefinition definition,"
        " JobCost cost, JobTime time, bytes32 jobName, bool hasCancelRequest, string lastError, int64 exitCode"
    ),
    "ProviderHardware": "uint64 nodes, uint64[] gpusPerNode, uint64[] cpusPerNode, uint64[] memPerNode",
    "ProviderPrices": "uint256 gpuPricePerMin, uint256 cpuPricePerMin, uint256 memPricePerMin",
    "Provider": (
        "address addr, ProviderHardware providerHardware, ProviderPrices providerPrices, Label[] labels, bool isBanned"
    ),
}

ACCESS_CONTROL = """
    DEFAULT_ADMIN_ROLE() view -> (bytes32)
    hasRole(bytes32 role, address account) view -> (bool)
    getRoleAdmin(bytes32 role) view -> (bytes32)
    grantRole(bytes32 role, address account)
    revokeRole(bytes32 role, address account)
    renounceRole(bytes32 role, address account)
    supportsInterface(bytes4 interfaceId) view -> (bool)
"""
OWNABLE = """
    owner() view -> (address)
    transferOwnership(address newOwner)
    renounceOwnership()
"""
# Functions by the part of the grid that serves them. `PARTS` names the contract of each part.
FUNCTIONS = {
    "MetaScheduler": ACCESS_CONTROL + """
    constants() view -> (address)
    credit() view -> (address)
    jobs() view -> (address)
    providerManager() view -> (address)
    providerJobQueues() view -> (address)
    enableRequestNewJob() view -> (bool)
    METASCHEDULER_ROLE() view -> (bytes32)
    requestNewJob(JobDefinition definition, uint256 lockedCredits, bytes32 jobName, bool delegateSpendingAuthority)
        -> (bytes32 jobId)
    cancelJob(bytes32 jobId)
    topUpJob(bytes32 jobId, uint256 amount)
    topUpJobDelegate(bytes32 jobId)
    setDelegateSpendingAuthority(bytes32 jobId, bool delegateSpendingAuthority)
    metaSchedule(bytes32 jobId, address provider)
    claimNextJob()
    claimNextCancellingJob()
    claimNextTopUpJob()
    providerSetJobStatus(bytes32 jobId, JobStatus next, uint64 durationMinute, string lastError, int64 exitCode)
    refuseJob(bytes32 jobId)
    panicJob(bytes32 jobId, string lastError)
    timeoutJob(bytes32 jobId)
    setEnableRequestNewJob(bool enabled)
    withdrawAdmin(uint256 amount)
    """,
    "JobRepository": ACCESS_CONTROL + """
    METASCHEDULER_ROLE() view -> (bytes32)
    get(bytes32 jobId) view -> (Job job)
    getByCustomer(address customer) view -> (bytes32[])
    jobIdByCustomer(address customer, uint256 index) view -> (bytes32)
    jobIdCounter() view -> (uint256)
    """,
    "ProviderJobQueues": """
    hasNextClaimableJob(address provider) view -> (bool)
    hasCancellingJob(address provider) view -> (bool)
    hasTopUpJob(address provider) view -> (bool)
    getClaimableJobQueueSize(address provider) view -> (uint256)
    getCancellingJobQueueSize(address provider) view -> (uint256)
    getTopUpJobQueueSize(address provider) view -> (uint256)
    providerClaimableJobsQueues(address provider) view -> (int128 begin, int128 end)
    providerCancellingJobsQueues(address provider) view -> (int128 begin, int128 end)
    providerTopUpJobsQueues(address provider) view -> (int128 begin, int128 end)
    """,
    "Constants": OWNABLE + """
    minimumAmount() view -> (uint256)
    billDurationDeltaMinute() view -> (uint256)
    cancellationFeeMinute() view -> (uint256)
    claimJobTimeout() view -> (uint256)
    deepsquareCut() view -> (uint256)
    topUpSliceDurationMin() view -> (uint256)
    setMinimumAmount(uint256 amount)
    setBillDurationDeltaMinute(uint256 durationMinute)
    setCancellationFeeMinute(uint256 durationMinute)
    setClaimJobTimeout(uint64 durationMinute)
    setDeepsquareCut(uint256 percent)
    setTopUpSliceDurationMin(uint64 durationMinute)
    """,
    "ProviderManager": ACCESS_CONTROL + """
    METASCHEDULER_ROLE() view -> (bytes32)
    METASCHEDULER_CONTRACT_ROLE() view -> (bytes32)
    PROVIDER_REGISTRATION_TAX() view -> (uint256)
    register(ProviderHardware hardware, ProviderPrices prices, Label[] labels)
    approve(address provider)
    remove(address provider)
    ban(address provider)
    unban(address provider)
    getProvider(address provider) view -> (Provider)
    getWaitingForApprovalProvider(address provider) view -> (Provider)
    getProviderHardware(address provider) view -> (ProviderHardware)
    getProviderPrices(address provider) view -> (ProviderPrices)
    getLabels(address provider) view -> (Label[])
    isBanned(address provider) view -> (bool)
    isValidForScheduling(address provider) view -> (bool)
    isWaitingForApproval(address provider) view -> (bool)
    getJobCount(address provider) view -> (uint256)
    providers(address provider) view
        -> (address addr, ProviderHardware providerHardware, ProviderPrices providerPrices, bool isBanned)
    waitingApprovalProviders(address provider) view
        -> (address addr, ProviderHardware providerHardware, ProviderPrices providerPrices, bool isBanned)
    jobCountByProvider(address provider) view -> (uint256)
    head() view -> (uint256)
    tail() view -> (uint256)
    get(uint256 id) view -> (uint256 id, uint256 next, uint256 prev, bytes32 data)
    objects(uint256 id) view -> (uint256 id, uint256 next, uint256 prev, bytes32 data)
    elementCount() view -> (uint256)
    idCounter() view -> (uint256)
    fetchPage(uint256 cursor, uint256 howMany) view -> (bytes32[] data, uint256 actualLength, uint256 newCursor)
    """,
    "Credit": """
    name() view -> (string)
    symbol() view -> (string)
    decimals() view -> (uint8)
    totalSupply() view -> (uint256)
    balanceOf(address account) view -> (uint256)
    allowance(address owner, address spender) view -> (uint256)
    approve(address spender, uint256 value) -> (bool)
    transfer(address to, uint256 value) -> (bool)
    transferFrom(address from, address to, uint256 value) -> (bool)
    mint(address account, uint256 amount)
    permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
    nonces(address owner) view -> (uint256)
    DOMAIN_SEPARATOR() view -> (bytes32)
    """,
}  # fmt: skip

_ROLE_EVENTS = """
    RoleAdminChanged(bytes32 indexed role, bytes32 indexed previousAdminRole, bytes32 indexed newAdminRole)
    RoleGranted(bytes32 indexed role, address indexed account, address indexed sender)
    RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender)
"""
EVENTS = {
    "MetaScheduler": _ROLE_EVENTS + """
    NewJobRequestEvent(bytes32 jobId, address customer)
    ClaimJobEvent(address customer, address provider, bytes32 jobId, uint64 maxDurationMinute, JobDefinition definition)
    ClaimNextCancellingJobEvent(address customer, address provider, bytes32 jobId)
    ClaimNextTopUpJobEvent(bytes32 jobId, address provider, uint64 maxDurationMinute)
    JobRefusedEvent(bytes32 jobId, address provider, address customer)
    BilledTooMuchEvent(bytes32 jobId, address provider, uint256 billingAmount)
    """,
    "JobRepository": """
    JobCreated(bytes32 jobId)
    JobTransitionEvent(bytes32 jobId, JobStatus from, JobStatus to)
    """,
    "ProviderManager": _ROLE_EVENTS + """
    ProviderWaitingForApproval(address addr)
    ProviderApproved(address addr)
    ProviderRemoved(address addr)
    ProviderBanChanged(address addr, bool status)
    """,
    "Credit": """
    Transfer(address indexed from, address indexed to, uint256 value)
    Approval(address indexed owner, address indexed spender, uint256 value)
    """,
}  # fmt: skip

ERRORS = {
    "MetaScheduler": """
    SameStatusError()
    InvalidTransition(JobStatus from, JobStatus to)
    JobHotStatusOnly(JobStatus current)
    RunningColdStatusOnly(JobStatus current)
    MetaScheduledScheduledStatusOnly(JobStatus current)
    RunningScheduledStatusOnly(JobStatus current)
    CustomerOnly(address current, address expected)
    JobProviderOnly(address current, address expected)
    CustomerMetaSchedulerProviderOnly()
    NewJobRequestDisabled()
    InsufficientFunds(uint256 available, uint256 required)
    InvalidJobDefinition()
    ProviderNotJoined()
    NoSpendingAuthority()
    RemainingTimeAboveLimit(uint256 remaining, uint256 limit)
    InvalidJob()
    NoJob()
    OutOfBounds()
    """,
    "ProviderManager": """
    InvalidNodesCount()
    ArrayLengthMismatch()
    InvalidTotalMem()
    InvalidTotalCpus()
    NoProvider()
    WaitingApprovalOnly()
    Banned()
    AlreadyDone()
    """,
}

# The contract that serves each part.
PARTS = {
    "MetaScheduler": "MetaScheduler",
    "JobRepository": "MetaScheduler",
    "ProviderJobQueues": "MetaScheduler",
    "Constants": "MetaScheduler",
    "ProviderManager": "ProviderManager",
    "Credit": "Credit",
}

# Functions that are left out, by part; docs/explanation/contracts.md says why.
LEFT_OUT = {
    "JobRepository": (
        "create update setCost setCustomerAddr setDefinition setExitCode setHasCancelRequest setJobName setJobStatus"
        " setLastError setProviderAddr setTime"
    ),
    "ProviderJobQueues": (
        "pushClaimableJob pushCancellingJob pushTopUpJob popNextClaimableJob popNextCancellingJob popNextTopUpJob Empty"
    ),
    "ProviderManager": "incJobCount findIdForDataFrom NewHead NewTail ObjectCreated ObjectRemoved ObjectsLinked",
    "Tools": (
        "checkNewJobStatus convertCreditToDuration convertDurationToCredit getRemainingTime isDelegateTopable"
        " isJobCold isJobHot isJobDefinitionValid"
    ),
    "Credit": "increaseAllowance decreaseAllowance owner transferOwnership renounceOwnership OwnershipTransferred",
    "Faucets": "FaucetCredit FaucetNative creditUser claim",
}

_DECLARATION = re.compile(r"(\w+)\(([^)]*)\)( view)?(?:\s*-> \(([^)]*)\))?")


def abi_of(part: str) -> list[dict[str, Any]]:
    """Return the part's declarations as a JSON ABI for any client library."""
    entries = [_entry("function", *found) for found in _DECLARATION.findall(FUNCTIONS[part])]
    entries += [_entry("event", *found) for found in _DECLARATION.findall(EVENTS.get(part, ""))]
    return entries + [_entry("error", *found) for found in _DECLARATION.findall(ERRORS.get(part, ""))]


def _entry(kind: str, name: str, inputs: str, view: str, outputs: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": kind, "name": name, "inputs": _fields(inputs)}
    if kind == "event":
        return entry | {"anonymous": False, "inputs": [{"indexed": False} | field for field in entry["inputs"]]}
    if kind == "function":
        entry |= {"outputs": _fields(outputs), "stateMutability": "view" if view else "nonpayable"}
    return entry


def _fields(text: str) -> list[dict[str, Any]]:
    return [_field(*part.split()) for part in text.split(",") if part.strip()]


def _field(kind: str, *words: str) -> dict[str, Any]:
    """Return a field from its type, perhaps `indexed`, and its name; a result may have no name."""
    field: dict[str, Any] = {"name": words[-1] if words else ""}
    if words[:-1] == ("indexed",):
        field["indexed"] = True
    bare = kind.removesuffix("[]")
    if bare in ENUMS:
        return field | {"type": kind.replace(bare, "uint8")}
    if bare in STRUCTS:
        return field | {"type": kind.replace(bare, "tuple"), "components": _fields(STRUCTS[bare])}
    return field | {"type": kind}
