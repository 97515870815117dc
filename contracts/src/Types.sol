// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// All shared types. Money is wei of credit, times are unix seconds, durations minutes, memory MB.

/// States of a job; the first four are hot, the rest cold and final.
enum JobStatus {
    PENDING,
    META_SCHEDULED,
    SCHEDULED,
    RUNNING,
    CANCELLED,
    FINISHED,
    FAILED,
    OUT_OF_CREDITS,
    PANICKED
}

/// Where a job's output goes; informational. The fourth value is not used by any known client.
enum StorageType {
    TRANSFER,
    HTTP,
    S3,
    RESERVED,
    NONE
}

struct Label {
    string key;
    string value;
}

/// A condition on a provider's label; `op` is ASCII, padded with zero bytes. Matched off chain.
struct Affinity {
    Label label;
    bytes2 op;
}

/// `gpus` is for the whole job; the rest multiplies: ntasks x cpusPerTask CPUs, memPerCpu MB each.
struct JobDefinition {
    uint64 gpus;
    uint64 memPerCpu;
    uint64 cpusPerTask;
    uint64 ntasks;
    string batchLocationHash;
    StorageType storageType;
    Label[] uses;
    Affinity[] affinity;
}

/// What of a definition its price and its place depend on.
struct Sizes {
    uint64 gpus;
    uint64 memPerCpu;
    uint64 cpusPerTask;
    uint64 ntasks;
}

/// `maxCost` is what the job holds locked (top-ups included), `finalCost` what it cost in the end.
struct JobCost {
    uint256 maxCost;
    uint256 finalCost;
    uint256 pendingTopUp;
    bool delegateSpendingAuthority;
}

/// A time that has not come is 0.
struct JobTime {
    uint256 submit;
    uint256 start;
    uint256 end;
    uint256 cancelRequestTimestamp;
    uint256 blockNumberStateChange;
    uint256 panicTimestamp;
}

/// A job as clients read it.
struct Job {
    bytes32 jobId;
    JobStatus status;
    address customerAddr;
    address providerAddr;
    JobDefinition definition;
    JobCost cost;
    JobTime time;
    bytes32 jobName;
    bool hasCancelRequest;
    string lastError;
    int64 exitCode;
}

/// What was fixed when the job was assigned; all 0 while nobody is, but for `lastRefuser`.
struct JobTerms {
    uint256 ratePerMinute;
    uint64 limitMinutes;
    uint64 assignedAt;
    uint64 claimedAt;
    uint8 cutPercent;
    address lastRefuser;
}

/// One figure per node in each array.
struct ProviderHardware {
    uint64 nodes;
    uint64[] gpusPerNode;
    uint64[] cpusPerNode;
    uint64[] memPerNode;
}

struct ProviderPrices {
    uint256 gpuPricePerMin;
    uint256 cpuPricePerMin;
    uint256 memPricePerMin;
}

struct Provider {
    address addr;
    ProviderHardware providerHardware;
    ProviderPrices providerPrices;
    Label[] labels;
    bool isBanned;
}

/// A provider in a page: the approved version if there is one, else the proposal.
struct ProviderEntry {
    Provider provider;
    bool approved;
    bool waitingForApproval;
    ProviderRecord record;
}

/// What a provider did so far: jobs started, refused, panicked, timed out.
struct ProviderRecord {
    uint64 started;
    uint64 refused;
    uint64 panicked;
    uint64 timedOut;
}

/// Sums over a provider's nodes.
struct HardwareTotals {
    uint64 gpus;
    uint64 cpus;
    uint64 mem;
}

/// An item of `requestNewJobs`.
struct JobRequest {
    JobDefinition definition;
    uint256 lockedCredits;
    bytes32 jobName;
    bool delegateSpendingAuthority;
}

/// An item of `metaScheduleJobs`.
struct Assignment {
    bytes32 jobId;
    address provider;
}

/// An item of `providerSetJobStatuses`.
struct StatusReport {
    bytes32 jobId;
    JobStatus next;
    uint64 durationMinute;
    string lastError;
    int64 exitCode;
}

/// The customer's signature by which the MetaScheduler may take up to `value` wei until `deadline` (EIP-2612).
struct Permit {
    uint256 value;
    uint256 deadline;
    uint8 v;
    bytes32 r;
    bytes32 s;
}
