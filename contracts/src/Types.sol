// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// All shared types. Money is in wei of credit, times in unix seconds, durations in minutes, memory in MB.

/// @notice States of a job. The first four are hot, the others cold and final.
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

/// @notice Where a job's output goes, for information only. No known client uses the fourth value.
enum StorageType {
    TRANSFER,
    HTTP,
    S3,
    RESERVED,
    NONE
}

/// @notice A label of a provider, or a required label of a job.
struct Label {
    string key;
    string value;
}

/// @notice A condition on a provider's label, matched off chain. `op` is ASCII, padded with zero bytes.
struct Affinity {
    Label label;
    bytes2 op;
}

/// @notice What a job runs, and on which resources. `gpus` counts for the whole job; the others multiply:
/// ntasks x cpusPerTask CPUs with memPerCpu MB each.
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

/// @notice The fields of a definition that decide its price and whether a provider can hold it.
struct Sizes {
    uint64 gpus;
    uint64 memPerCpu;
    uint64 cpusPerTask;
    uint64 ntasks;
}

/// @notice Money of a job: `maxCost` is its deposit with all top-ups, `finalCost` is its cost at the end.
struct JobCost {
    uint256 maxCost;
    uint256 finalCost;
    uint256 pendingTopUp;
    bool delegateSpendingAuthority;
}

/// @notice Times of a job; 0 for those that have not come. `start` is `end` if the job ended without running.
/// `cancelRequestTimestamp` is `end` if the cancel took effect at once.
struct JobTime {
    uint256 submit;
    uint256 start;
    uint256 end;
    uint256 cancelRequestTimestamp;
    uint256 blockNumberStateChange;
    uint256 panicTimestamp;
}

/// @notice A job as clients read it.
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

/// @notice Conditions of a customer for the assignment of a job. A field of 0 asks for nothing, and a job whose fields are
/// all 0 has no wishes. The contract keeps all but `prefer`: it refuses an assignment above `maxRatePerMinute` wei, one that
/// buys less than `minMinutes`, and any at or after `giveUpAt`, in unix seconds. From then on, anyone may end the job while
/// it is PENDING. `giveUpAt` is at least 5 minutes after the request. `prefer` is only for the scheduler: 0 balanced,
/// 1 price, 2 start, 3 speed. The job is assigned only when job `afterJob`, an earlier one, is FINISHED, or with `afterAny`
/// when it has ended in any way. If it ended in another way than FINISHED, anyone may end the job without `afterAny`.
struct Wishes {
    uint96 maxRatePerMinute;
    uint32 minMinutes;
    uint40 giveUpAt;
    uint8 prefer;
    uint32 afterJob;
    bool afterAny;
}

/// @notice What the assignment of a job fixed. Without one, all fields but `lastRefuser` are 0. `feeMinutes` is the minimum
/// bill of a cancel while it runs. `startedAt` is 0 unless the job ran. `released` is what came back to the customer before the end, in wei: `maxCost` has the rest.
struct JobTerms {
    uint256 ratePerMinute;
    uint64 limitMinutes;
    uint64 assignedAt;
    uint64 claimedAt;
    uint64 startedAt;
    uint8 cutPercent;
    address lastRefuser;
    uint256 released;
    uint8 feeMinutes;
}

/// @notice Hardware of a provider. Each array has one number per node.
struct ProviderHardware {
    uint64 nodes;
    uint64[] gpusPerNode;
    uint64[] cpusPerNode;
    uint64[] memPerNode;
}

/// @notice Prices of a provider in wei per minute: of a GPU, of a CPU, of a MB of memory.
struct ProviderPrices {
    uint256 gpuPricePerMin;
    uint256 cpuPricePerMin;
    uint256 memPricePerMin;
}

/// @notice A provider with one version of its offer.
struct Provider {
    address addr;
    ProviderHardware providerHardware;
    ProviderPrices providerPrices;
    Label[] labels;
    bool isBanned;
}

/// @notice A provider in a page: its approved version if it has one, otherwise its proposal.
struct ProviderEntry {
    Provider provider;
    bool approved;
    bool waitingForApproval;
    ProviderRecord record;
}

/// @notice Numbers of jobs that one provider started, refused, panicked and let time out.
struct ProviderRecord {
    uint64 started;
    uint64 refused;
    uint64 panicked;
    uint64 timedOut;
}

/// @notice Sums over all nodes of a provider.
struct HardwareTotals {
    uint64 gpus;
    uint64 cpus;
    uint64 mem;
}

/// @notice An item of `requestNewJobs`.
struct JobRequest {
    JobDefinition definition;
    uint256 lockedCredits;
    bytes32 jobName;
    bool delegateSpendingAuthority;
}

/// @notice An item of `metaScheduleJobs`.
struct Assignment {
    bytes32 jobId;
    address provider;
}

/// @notice An item of `providerSetJobStatuses`.
struct StatusReport {
    bytes32 jobId;
    JobStatus next;
    uint64 durationMinute;
    string lastError;
    int64 exitCode;
}

/// @notice The customer's signature by which the MetaScheduler may take `value` wei until `deadline` (EIP-2612).
struct Permit {
    uint256 value;
    uint256 deadline;
    uint8 v;
    bytes32 r;
    bytes32 s;
}
