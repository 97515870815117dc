// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "./Types.sol";

/// All events of jobs but ClaimJobEvent, which the MetaScheduler declares. None is indexed, as existing clients expect.

/// A job was asked for.
event JobCreated(bytes32 jobId);

/// The same, with who asked.
event NewJobRequestEvent(bytes32 jobId, address customer);

/// Every change of state.
event JobTransitionEvent(bytes32 jobId, JobStatus from, JobStatus to);

/// The provider has heard of a cancel request.
event ClaimNextCancellingJobEvent(address customer, address provider, bytes32 jobId);

/// `maxDurationMinute` is the job's whole limit now, counted from its start.
event ClaimNextTopUpJobEvent(bytes32 jobId, address provider, uint64 maxDurationMinute);

/// The job is PENDING again: refused, or not claimed in time.
event JobRefusedEvent(bytes32 jobId, address provider, address customer);

/// The provider reported (here: in minutes) clearly more than it can have run. It was not billed.
event BilledTooMuchEvent(bytes32 jobId, address provider, uint256 billingAmount);

/// The job's end: paid to the provider, kept as cut, refunded to the customer; together all that was locked.
event JobSettledEvent(
    bytes32 jobId, address provider, address customer, uint64 billedMinutes, uint256 paid, uint256 cut, uint256 refunded
);

/// The owner gave notice of another cut (in percent), which can take effect from `notBefore` (unix seconds) on.
event CutNotedEvent(uint256 percent, uint256 notBefore);

/// Another cut (in percent) is in force for assignments from now on.
event CutChangedEvent(uint256 percent);

/// An item of a batch lost a race and was skipped: its index in the call, its job, and the error of the single call.
event BatchItemSkippedEvent(uint256 index, bytes32 jobId, bytes reason);
