// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "./Types.sol";

// The events of jobs and of the platform's cut, except ClaimJobEvent, which IUsualCalls declares. No field is indexed,
// as existing clients expect.

/// @notice A job was requested.
/// @param jobId Id of the new job.
event JobCreated(bytes32 jobId);

/// @notice A job was requested; names its customer.
/// @param jobId Id of the new job.
/// @param customer Account that requested it.
event NewJobRequestEvent(bytes32 jobId, address customer);

/// @notice A job changed its state. Emitted at each change.
/// @param jobId Id of the job.
/// @param from State before.
/// @param to State from now on.
event JobTransitionEvent(bytes32 jobId, JobStatus from, JobStatus to);

/// @notice The provider took a cancel request off its queue.
/// @param customer Customer of the job.
/// @param provider Provider of the job.
/// @param jobId Id of the job.
event ClaimNextCancellingJobEvent(address customer, address provider, bytes32 jobId);

/// @notice The provider took a top-up off its queue.
/// @param jobId Id of the job.
/// @param provider Provider of the job.
/// @param maxDurationMinute Minutes that the job may run longer than its provider knew before. Add them to the limit
/// of ClaimJobEvent and of earlier events, or read the whole limit with `jobTerms`.
event ClaimNextTopUpJobEvent(bytes32 jobId, address provider, uint64 maxDurationMinute);

/// @notice The job is PENDING again: its provider refused it, or it timed out.
/// @param jobId Id of the job.
/// @param provider Provider that had the job.
/// @param customer Customer of the job.
event JobRefusedEvent(bytes32 jobId, address provider, address customer);

/// @notice The provider reported clearly more time than can have passed. The excess was not billed.
/// @param jobId Id of the job.
/// @param provider Provider of the job.
/// @param billingAmount Minutes that the provider reported.
event BilledTooMuchEvent(bytes32 jobId, address provider, uint256 billingAmount);

/// @notice The provider did not answer a cancel request in time. What no report can bill any more went back to the
/// customer. The rest stays locked until the provider reports, or until the customer cancels again from `heldUntil` on.
/// @param jobId Id of the job.
/// @param customer Customer of the job.
/// @param released Returned to the customer, in wei.
/// @param held Still locked, in wei.
/// @param heldUntil First moment at which the rest can come back without a report, in unix seconds.
event CancelReleasedEvent(bytes32 jobId, address customer, uint256 released, uint256 held, uint256 heldUntil);

/// @notice The job ended. The three amounts in wei together are all that it still held: the deposit with its top-ups,
/// without what CancelReleasedEvent names.
/// @param jobId Id of the job.
/// @param provider Provider of the job; 0 for none.
/// @param customer Customer of the job.
/// @param billedMinutes Minutes that were billed.
/// @param paid Paid to the provider.
/// @param cut Kept as the platform's cut.
/// @param refunded Returned to the customer.
event JobSettledEvent(
    bytes32 jobId, address provider, address customer, uint64 billedMinutes, uint256 paid, uint256 cut, uint256 refunded
);

/// @notice The owner gave notice of another cut.
/// @param percent The new cut in percent.
/// @param notBefore First moment at which it can take effect, in unix seconds.
event CutNotedEvent(uint256 percent, uint256 notBefore);

/// @notice Another cut is in force for assignments from now on.
/// @param percent The new cut in percent.
event CutChangedEvent(uint256 percent);

/// @notice An item of a batch lost a race and was skipped.
/// @param index Index of the item in the call.
/// @param jobId Id of the item's job.
/// @param reason Error with which the single call would have reverted, ABI-encoded.
event BatchItemSkippedEvent(uint256 index, bytes32 jobId, bytes reason);
