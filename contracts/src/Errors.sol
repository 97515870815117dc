// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "./Types.sol";

/// All errors, one line each on when.

// --- state of a job
/// The job is already in the state asked for.
error SameStatusError();
/// The state machine has no such edge.
error InvalidTransition(JobStatus from, JobStatus to);
/// The job has ended.
error JobHotStatusOnly(JobStatus current);
/// Only a job that is META_SCHEDULED or SCHEDULED can be refused.
error MetaScheduledScheduledStatusOnly(JobStatus current);
/// Only a job that is SCHEDULED or RUNNING can be topped up.
error RunningScheduledStatusOnly(JobStatus current);
/// A provider reports RUNNING or an end, nothing else.
error RunningColdStatusOnly(JobStatus current);
/// The provider still has time: the job cannot be timed out before `notBefore` (unix seconds).
error TimeoutTooEarly(uint256 notBefore);

// --- who asks
/// The caller is not the job's customer.
error CustomerOnly(address current, address expected);
/// The caller is not the job's provider.
error JobProviderOnly(address current, address expected);
/// The caller is neither the job's customer, nor its provider, nor the meta-scheduler.
error CustomerMetaSchedulerProviderOnly();

// --- requests and assignment
/// New jobs are not accepted at the moment.
error NewJobRequestDisabled();
/// Less is locked than the minimum, or than one minute costs; or more is withdrawn than is there.
error InsufficientFunds(uint256 available, uint256 required);
/// One job cannot hold that much.
error TooMuchLocked(uint256 amount, uint256 most);
/// Tasks, CPUs per task or memory per CPU is zero.
error InvalidJobDefinition();
/// A job or a provider names more labels than others would have to read.
error TooManyLabels(uint256 count, uint256 most);
/// A job's definition, or a whole request, is longer than one contract's code can keep.
error BlobTooLong(uint256 length, uint256 most);
/// No job has this id.
error InvalidJob();
/// The provider is not approved, or banned.
error ProviderNotJoined();
/// The provider's nodes together have less than the job asks for.
error InsufficientHardware(address provider);

// --- top-ups
/// The customer gave no spending authority.
error NoSpendingAuthority();
/// More time is left than one slice: nothing to top up yet.
error RemainingTimeAboveLimit(uint256 remaining, uint256 limit);

// --- queues and lists
/// The queue is empty.
error NoJob();
/// The cursor is not in the list (any more): start again at 0.
error OutOfBounds();

// --- providers
/// The provider has more nodes than others would have to read.
error TooManyNodes(uint256 count, uint256 most);
/// A key or a value of a provider's label has more bytes than others would have to read.
error LabelTooLong(uint256 length, uint256 most);
/// Another proposal waits than the one that was looked at.
error ProposalChanged(bytes32 waiting, bytes32 expected);
/// The proposal changed lately: it cannot be approved by its address alone before `notBefore` (unix seconds).
error ProposalTooRecent(uint256 notBefore);
/// No nodes.
error InvalidNodesCount();
/// The arrays of the hardware differ in length.
error ArrayLengthMismatch();
/// All nodes together have no CPU.
error InvalidTotalCpus();
/// All nodes together have no memory.
error InvalidTotalMem();
/// The address neither joined nor proposed.
error NoProvider();
/// Nothing waits for approval.
error WaitingApprovalOnly();
/// The provider is banned.
error Banned();
/// The provider is already banned, or already not banned.
error AlreadyDone();

// --- constants
/// The value is outside of what this constant may be.
error InvalidConstant(uint256 value, uint256 least, uint256 most);
/// The new cut cannot take effect before `notBefore` (unix seconds); 0 when no notice was given.
error CutNotDue(uint256 notBefore);
