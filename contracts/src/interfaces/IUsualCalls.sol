// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Assignment, JobDefinition, JobRequest, JobStatus, Permit, StatusReport, Wishes} from "../Types.sol";

/// @title The part of the surface that the MetaScheduler serves itself
/// @notice The calls that a usual job needs, one by one and in batches: request, assignment, claim and report.
/// @dev A batch of assignments or reports skips an item that lost a race and emits BatchItemSkippedEvent for it.
interface IUsualCalls {
    /// @notice The provider has claimed the job.
    /// @dev JobRecord writes this event straight from the record.
    /// @param customer Customer of the job.
    /// @param provider Provider that claimed it.
    /// @param jobId Id of the job.
    /// @param maxDurationMinute Minutes that the job may run.
    /// @param definition What the customer asked for.
    event ClaimJobEvent(
        address customer, address provider, bytes32 jobId, uint64 maxDurationMinute, JobDefinition definition
    );

    // ---------------------------------------------------------------- customer

    /// @notice Requests one job of the caller and locks its deposit.
    /// @dev The caller must have allowed this contract to take the deposit. Reverts with NewJobRequestDisabled,
    /// InvalidJobDefinition, InsufficientFunds, TooMuchLocked, TooManyLabels or BlobTooLong.
    /// @param definition What to run, and on which resources.
    /// @param lockedCredits Deposit in wei, at least `minimumAmount`.
    /// @param jobName Name for the customer, padded with zero bytes.
    /// @param delegateSpendingAuthority Whether automatic top-ups are allowed.
    /// @return jobId Id of the new job.
    function requestNewJob(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority
    ) external returns (bytes32 jobId);

    /// @notice Requests one job as `requestNewJob` does, with a signature instead of an earlier allowance.
    /// @dev Another account that sees the signature can use it first. The allowance exists then as well, so this call
    /// still succeeds.
    /// @param definition What to run, and on which resources.
    /// @param lockedCredits Deposit in wei, at least `minimumAmount`.
    /// @param jobName Name for the customer, padded with zero bytes.
    /// @param delegateSpendingAuthority Whether automatic top-ups are allowed.
    /// @param permit The caller's signature, by which this contract may take the deposit.
    /// @return jobId Id of the new job.
    function requestNewJobWithPermit(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Permit calldata permit
    ) external returns (bytes32 jobId);

    /// @notice Requests many jobs of the caller at once: all or none.
    /// @param requests The jobs with their deposits.
    /// @return jobIds Ids of the new jobs, which are consecutive.
    function requestNewJobs(JobRequest[] calldata requests) external returns (bytes32[] memory jobIds);

    /// @notice Requests one job as `requestNewJob` does, with conditions for its assignment.
    /// @dev Wishes that are all 0 take no space, and the job is as one of `requestNewJob`. Reverts with GiveUpTooSoon if
    /// `giveUpAt` is less than 5 minutes away.
    /// @param definition What to run, and on which resources.
    /// @param lockedCredits Deposit in wei, at least `minimumAmount`.
    /// @param jobName Name for the customer, padded with zero bytes.
    /// @param delegateSpendingAuthority Whether automatic top-ups are allowed.
    /// @param wishes Conditions for the assignment. They never change.
    /// @return jobId Id of the new job.
    function requestNewJobWithWishes(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Wishes calldata wishes
    ) external returns (bytes32 jobId);

    /// @notice Requests one job as `requestNewJobWithWishes` does, with a signature instead of an earlier allowance.
    /// @dev See `requestNewJobWithPermit`.
    /// @param definition What to run, and on which resources.
    /// @param lockedCredits Deposit in wei, at least `minimumAmount`.
    /// @param jobName Name for the customer, padded with zero bytes.
    /// @param delegateSpendingAuthority Whether automatic top-ups are allowed.
    /// @param wishes Conditions for the assignment. They never change.
    /// @param permit The caller's signature, by which this contract may take the deposit.
    /// @return jobId Id of the new job.
    function requestNewJobWithWishesAndPermit(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Wishes calldata wishes,
        Permit calldata permit
    ) external returns (bytes32 jobId);

    /// @notice Requests many jobs of the caller at once, each with conditions for its assignment: all or none.
    /// @dev Reverts with ArrayLengthMismatch unless each job has wishes.
    /// @param requests The jobs with their deposits.
    /// @param wishes The wishes of each job, in the same order.
    /// @return jobIds Ids of the new jobs, which are consecutive.
    function requestNewJobsWithWishes(JobRequest[] calldata requests, Wishes[] calldata wishes)
        external
        returns (bytes32[] memory jobIds);

    /// @notice Locks more credits on a claimed job. Anyone may; the caller pays. The customer gets the rest. Reverts
    /// with CancelRequested after a cancel request.
    /// @dev The customer adds at least 1 wei, any other account at least a minute at the job's rate. Less reverts with
    /// InsufficientFunds. Only a claimed job can be topped up, so a rate always exists.
    /// @param jobId Id of the job.
    /// @param amount Amount in wei.
    function topUpJob(bytes32 jobId, uint256 amount) external;

    /// @notice Buys one slice of time from the customer's allowance, for a job with spending authority. Takes less if the
    /// customer's limit has less left.
    /// @dev The customer, the provider and the meta-scheduler may call this. Reverts with RemainingTimeAboveLimit unless the
    /// bought time ends within TOP_UP_WINDOW_MINUTES, and after its end. Reverts with SpendingLimitReached if the limit
    /// buys no minute any more.
    /// @param jobId Id of the job.
    function topUpJobDelegate(bytes32 jobId) external;

    // ---------------------------------------------------------------- meta-scheduler

    /// @notice Assigns a PENDING job to a provider and fixes its rate per minute and the platform's cut.
    /// @dev Needs METASCHEDULER_ROLE. Reverts with ProviderNotJoined, InsufficientHardware, InsufficientFunds if the
    /// deposit does not buy a minute or the minutes that the customer wants, RateAboveCeiling or JobGivenUp.
    /// @param jobId Id of the job.
    /// @param provider Provider that gets the job.
    function metaSchedule(bytes32 jobId, address provider) external;

    /// @notice Assigns many jobs and skips each that cannot be assigned.
    /// @dev Needs METASCHEDULER_ROLE. A job that does not exist reverts.
    /// @param assignments The jobs, each with its provider.
    function metaScheduleJobs(Assignment[] calldata assignments) external;

    // ---------------------------------------------------------------- provider

    /// @notice Claims the job that was assigned to the caller first.
    function claimNextJob() external;

    /// @notice Claims several jobs in the order of their assignment.
    /// @dev Reverts with NoJob if there is none, and with ProviderNotJoined if the caller may not claim.
    /// @param most Maximum number of jobs.
    function claimNextJobs(uint256 most) external;

    /// @notice Reports that a job of the caller runs or how it ended. An end settles the job.
    /// @param jobId Id of the job.
    /// @param next RUNNING, or the cold state in which the job ended.
    /// @param durationMinute Minutes that the job has run so far.
    /// @param lastError Error text for the customer, empty for none. Its first 1024 bytes are kept.
    /// @param exitCode Wait status of the job in Slurm.
    function providerSetJobStatus(
        bytes32 jobId,
        JobStatus next,
        uint64 durationMinute,
        string calldata lastError,
        int64 exitCode
    ) external;

    /// @notice Reports on many jobs and skips each that has another provider or another state by now.
    /// @dev A job that does not exist reverts. A state that no provider may report reverts too.
    /// @param reports The jobs, each with the arguments of `providerSetJobStatus`.
    function providerSetJobStatuses(StatusReport[] calldata reports) external;
}
