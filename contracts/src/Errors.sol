// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "./Types.sol";

// The errors of all contracts, grouped by subject.

// ---------------------------------------------------------------- state of a job

/// @notice The job already has the requested state.
error SameStatusError();

/// @notice The state machine has no such edge.
/// @param from State of the job.
/// @param to Requested state.
error InvalidTransition(JobStatus from, JobStatus to);

/// @notice The job has ended.
/// @param current State of the job.
error JobHotStatusOnly(JobStatus current);

/// @notice Only a META_SCHEDULED or SCHEDULED job can be refused.
/// @param current State of the job.
error MetaScheduledScheduledStatusOnly(JobStatus current);

/// @notice Only a SCHEDULED or RUNNING job can be topped up.
/// @param current State of the job.
error RunningScheduledStatusOnly(JobStatus current);

/// @notice A provider may only report RUNNING or a cold state.
/// @param current State that was reported.
error RunningColdStatusOnly(JobStatus current);

/// @notice The provider still has time to act.
/// @param notBefore First moment at which the job can be timed out, in unix seconds.
error TimeoutTooEarly(uint256 notBefore);

/// @notice Only a PENDING job can be given up.
/// @param current State of the job.
error PendingStatusOnly(JobStatus current);

/// @notice The customer does not want the job to be given up yet.
/// @param giveUpAt First moment at which the job can be given up, in unix seconds; 0 for never.
error NotGivenUp(uint256 giveUpAt);

// ---------------------------------------------------------------- callers

/// @notice The caller is not the job's customer.
/// @param current The caller.
/// @param expected The job's customer.
error CustomerOnly(address current, address expected);

/// @notice The caller is not the job's provider.
/// @param current The caller.
/// @param expected The job's provider; 0 for none.
error JobProviderOnly(address current, address expected);

/// @notice The caller is neither the job's customer, nor its provider, nor the meta-scheduler.
error CustomerMetaSchedulerProviderOnly();

// ---------------------------------------------------------------- requests and assignment

/// @notice The grid accepts no new jobs at the moment.
error NewJobRequestDisabled();

/// @notice The amount is too small, or more is withdrawn than is available.
/// @dev Too small: a deposit below the minimum or below the rate per minute, or a top-up below its own minimum.
/// @param available Amount in wei.
/// @param required Amount in wei that the call needs.
error InsufficientFunds(uint256 available, uint256 required);

/// @notice One job cannot hold that much.
/// @param amount Amount in wei that the call would add.
/// @param most Most that a job can hold, in wei.
error TooMuchLocked(uint256 amount, uint256 most);

/// @notice The job has no tasks, no CPUs per task or no memory per CPU.
error InvalidJobDefinition();

/// @notice A job or a provider has more labels than others should have to read.
/// @param count Number of labels.
/// @param most Maximum number of labels.
error TooManyLabels(uint256 count, uint256 most);

/// @notice The name of a job's definition is longer than those who read or claim the job should pay for.
/// @param length Length in bytes.
/// @param most Maximum length in bytes.
error LocationTooLong(uint256 length, uint256 most);

/// @notice The texts and labels of a job are longer than those who read or claim it should pay for.
/// @param length Length in bytes.
/// @param most Maximum length in bytes.
error BlobTooLong(uint256 length, uint256 most);

/// @notice No job has this id.
error InvalidJob();

/// @notice The provider is not approved, or it is banned.
error ProviderNotJoined();

/// @notice All nodes of the provider together have less than the job needs.
/// @param provider Provider of the assignment.
error InsufficientHardware(address provider);

/// @notice The job would cost more per minute than its customer accepts.
/// @param rate Rate of the job at this provider, in wei per minute.
/// @param ceiling Highest rate that the customer accepts, in wei per minute. 0 means the prices of the time of the request,
/// which the provider has raised since.
error RateAboveCeiling(uint256 rate, uint256 ceiling);

/// @notice The customer gave the job up, so it is not assigned any more.
/// @param giveUpAt Time from which it is given up, in unix seconds.
error JobGivenUp(uint256 giveUpAt);

/// @notice The job would be given up too soon after its request.
/// @param giveUpAt Time of the request's wishes, in unix seconds.
/// @param earliest Earliest time that a request may name now, in unix seconds.
error GiveUpTooSoon(uint256 giveUpAt, uint256 earliest);

/// @notice The job waits for an earlier one, which has not ended as it should.
/// @param afterJob Number of the earlier job.
error JobWaits(uint32 afterJob);

/// @notice A new job can only wait for a job that exists already.
/// @param afterJob Number of the missing job.
error NoEarlierJob(uint32 afterJob);

// ---------------------------------------------------------------- top-ups

/// @notice The customer requested to cancel the job, so it takes no more credits.
error CancelRequested();

/// @notice The customer gave no spending authority.
error NoSpendingAuthority();

/// @notice Automatic top-ups have taken what the customer allowed for this job.
/// @param spendable Wei that they may still take.
/// @param required Wei of one minute.
error SpendingLimitReached(uint256 spendable, uint256 required);

/// @notice An automatic top-up comes too early, or after the end of the bought time.
/// @param remaining Minutes that remain.
/// @param limit Minutes from which on it is allowed.
error RemainingTimeAboveLimit(uint256 remaining, uint256 limit);

// ---------------------------------------------------------------- queues and lists

/// @notice The queue is empty.
error NoJob();

/// @notice The list does not contain the cursor (any more). Start again at 0.
error OutOfBounds();

// ---------------------------------------------------------------- providers

/// @notice The provider has more nodes than others should have to read.
/// @param count Number of nodes.
/// @param most Maximum number of nodes.
error TooManyNodes(uint256 count, uint256 most);

/// @notice A key or a value of a provider's label is longer than others should have to read.
/// @param length Length in bytes.
/// @param most Maximum length in bytes.
error LabelTooLong(uint256 length, uint256 most);

/// @notice The waiting proposal is not the one that the caller read.
/// @param waiting Hash of the waiting proposal.
/// @param expected Hash that the caller sent.
error ProposalChanged(bytes32 waiting, bytes32 expected);

/// @notice The proposal changed too recently for `approve`, which names no hash.
/// @param notBefore First moment at which `approve` takes it, in unix seconds.
error ProposalTooRecent(uint256 notBefore);

/// @notice The hardware has no nodes.
error InvalidNodesCount();

/// @notice The arrays of the hardware differ in length.
error ArrayLengthMismatch();

/// @notice All nodes together have no CPU.
error InvalidTotalCpus();

/// @notice All nodes together have no memory.
error InvalidTotalMem();

/// @notice The address never registered, or it was removed.
error NoProvider();

/// @notice No proposal of this provider waits for approval.
error WaitingApprovalOnly();

/// @notice The provider is banned.
error Banned();

/// @notice The provider already is banned, or already is not banned.
error AlreadyDone();

// ---------------------------------------------------------------- settings

/// @notice The value is outside of the setting's range.
/// @param value Value of the call.
/// @param least Lowest value.
/// @param most Highest value.
error InvalidConstant(uint256 value, uint256 least, uint256 most);

/// @notice The new cut cannot take effect yet.
/// @param notBefore First moment at which it can, in unix seconds; 0 when no notice is open.
error CutNotDue(uint256 notBefore);
