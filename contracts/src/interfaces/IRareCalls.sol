// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Job, JobTerms, ProviderRecord, Wishes} from "../Types.sol";

/// @title The part of the surface that RareCalls serves through the MetaScheduler's fallback
/// @notice The calls that a usual job does not need, and the views.
interface IRareCalls {
    // ---------------------------------------------------------------- addresses of the other parts

    /// @notice Address of the job repository.
    /// @return The MetaScheduler's own address.
    function jobs() external view returns (address);

    /// @notice Address of the providers' queues.
    /// @return The MetaScheduler's own address.
    function providerJobQueues() external view returns (address);

    /// @notice Address of the grid's settings.
    /// @return The MetaScheduler's own address.
    function constants() external view returns (address);

    // ---------------------------------------------------------------- admin and owner

    /// @notice Opens or closes the grid for new jobs. Existing jobs continue. Only an admin may.
    /// @param enabled True to accept new jobs.
    function setEnableRequestNewJob(bool enabled) external;

    /// @notice Highest cut that the owner may set.
    /// @return Percent of a job's cost.
    function MAX_DEEPSQUARE_CUT() external view returns (uint256);

    /// @notice Time between the notice of a new cut and the first moment at which it can take effect.
    /// @return Duration in seconds.
    function CUT_NOTICE_PERIOD() external view returns (uint256);

    /// @notice Gives notice of another cut. Only the owner may.
    /// @dev A later notice replaces an earlier one and starts the period again. Reverts with InvalidConstant above the
    /// highest cut.
    /// @param percent The new cut, at most MAX_DEEPSQUARE_CUT.
    function setDeepsquareCut(uint256 percent) external;

    /// @notice Puts the announced cut in force for assignments from now on. Anyone may call this after the notice period.
    /// @dev Reverts with CutNotDue before the end of the period, and when no notice is open.
    function applyDeepsquareCut() external;

    /// @notice The announced cut, and the first moment at which it can take effect.
    /// @return percent The new cut; 0 when no notice is open.
    /// @return notBefore Unix seconds; 0 when no notice is open.
    function nextDeepsquareCut() external view returns (uint256 percent, uint256 notBefore);

    // ---------------------------------------------------------------- customer

    /// @notice Cancels a job of the caller, or requests it.
    /// @dev Before the claim, the job ends at once with a full refund. From then on this is a request to the provider,
    /// which also ends the spending authority. If the provider does not answer within `claimJobTimeout`, a further call
    /// returns what no report can bill any more. TIMEOUT_GRACE after the request, a further call ends the job and returns
    /// the rest. A further call at another time changes nothing: the request is queued once.
    /// @param jobId Id of the job.
    function cancelJob(bytes32 jobId) external;

    /// @notice Ends a PENDING job as CANCELLED with a full refund: from the time on that its customer wished, or when it waits
    /// for a job to finish that ended in another way. Anyone may.
    /// @dev Reverts with PendingStatusOnly, or with NotGivenUp in all other cases.
    /// @param jobId Id of the job.
    function giveUpJob(bytes32 jobId) external;

    /// @notice Gives many jobs up, and skips each that `giveUpJob` would refuse.
    /// @dev Emits BatchItemSkippedEvent for a skipped job. A job that does not exist reverts.
    /// @param jobIds Ids of the jobs.
    function giveUpJobs(bytes32[] calldata jobIds) external;

    /// @notice Minutes before the end of the bought time from which on an automatic top-up is allowed.
    /// @return Duration in minutes.
    function TOP_UP_WINDOW_MINUTES() external view returns (uint256);

    /// @notice Allows or forbids automatic top-ups of a job of the caller. They may take as much as the deposit at the
    /// request, from now on and in total. `setSpendingLimit` allows another amount.
    /// @param jobId Id of the job.
    /// @param delegateSpendingAuthority True to allow them.
    function setDelegateSpendingAuthority(bytes32 jobId, bool delegateSpendingAuthority) external;

    /// @notice Allows automatic top-ups of a job of the caller up to an amount, from now on and in total.
    /// @param jobId Id of the job.
    /// @param limit Amount in wei; 0 forbids them.
    function setSpendingLimit(bytes32 jobId, uint256 limit) external;

    /// @notice What automatic top-ups of a job may still take.
    /// @param jobId Id of the job.
    /// @return Amount in wei; zero without spending authority, and after the job's end.
    function spendable(bytes32 jobId) external view returns (uint256);

    // ---------------------------------------------------------------- time-outs and panics

    /// @notice Time for which a silent provider keeps its claim on the bill of a job that may have run. It begins with the
    /// cancel request, or when the bought time ends. No account can change it.
    /// @return Duration in seconds.
    function TIMEOUT_GRACE() external view returns (uint256);

    /// @notice Time that a provider has to answer a cancel request. Minutes after it are not billed. No account can change it.
    /// @return Duration in seconds.
    function CANCEL_ANSWER_PERIOD() external view returns (uint256);

    /// @notice Takes a job from a provider that does not act.
    /// @dev META_SCHEDULED: by anyone, after `claimJobTimeout`. Claimed: by the meta-scheduler or the customer,
    /// TIMEOUT_GRACE after the cancel request or the bought time. SCHEDULED without a cancel request: by the
    /// meta-scheduler at once when the provider is banned or removed. A RUNNING job ends PANICKED. Another job returns to
    /// PENDING, or ends CANCELLED if its customer requested that. Reverts with TimeoutTooEarly.
    /// @param jobId Id of the job.
    function timeoutJob(bytes32 jobId) external;

    /// @notice Ends a hot job with a full refund for any run time. Needs METASCHEDULER_ROLE.
    /// @param jobId Id of the job.
    /// @param lastError Error text for the customer. Its first 1024 bytes are kept.
    function panicJob(bytes32 jobId, string calldata lastError) external;

    // ---------------------------------------------------------------- provider

    /// @notice Gives an assigned or claimed job of the caller back, at no cost for the customer.
    /// @dev The job returns to PENDING, or ends CANCELLED if its customer requested that.
    /// @param jobId Id of the job.
    function refuseJob(bytes32 jobId) external;

    /// @notice Takes the caller's oldest cancel request off its queue and emits it.
    /// @dev Reverts with NoJob if the queue is empty.
    function claimNextCancellingJob() external;

    /// @notice Takes the caller's oldest top-up off its queue and emits the minutes that it added.
    /// @dev Reverts with NoJob if the queue is empty.
    function claimNextTopUpJob() external;

    /// @notice Whether `claimNextJob` has a job for the provider.
    /// @param provider The provider's address.
    /// @return True if a job waits and the provider may claim.
    function hasNextClaimableJob(address provider) external view returns (bool);

    /// @notice Whether `claimNextCancellingJob` has a request for the provider.
    /// @param provider The provider's address.
    /// @return True if a cancel request waits.
    function hasCancellingJob(address provider) external view returns (bool);

    /// @notice Whether `claimNextTopUpJob` has a top-up for the provider.
    /// @param provider The provider's address.
    /// @return True if a top-up waits.
    function hasTopUpJob(address provider) external view returns (bool);

    /// @notice Number of jobs that wait for the provider's claim.
    /// @param provider The provider's address.
    /// @return Number of jobs.
    function getClaimableJobQueueSize(address provider) external view returns (uint256);

    /// @notice Number of cancel requests in the provider's queue.
    /// @param provider The provider's address.
    /// @return Number of jobs.
    function getCancellingJobQueueSize(address provider) external view returns (uint256);

    /// @notice Number of topped-up jobs in the provider's queue.
    /// @param provider The provider's address.
    /// @return Number of jobs.
    function getTopUpJobQueueSize(address provider) external view returns (uint256);

    /// @notice The jobs that wait for the provider's claim, as the bounds of a queue.
    /// @param provider The provider's address.
    /// @return begin Always 0.
    /// @return end Number of jobs.
    function providerClaimableJobsQueues(address provider) external view returns (int128 begin, int128 end);

    /// @notice The cancel requests in the provider's queue, as its bounds.
    /// @param provider The provider's address.
    /// @return begin Always 0.
    /// @return end Number of jobs.
    function providerCancellingJobsQueues(address provider) external view returns (int128 begin, int128 end);

    /// @notice The topped-up jobs in the provider's queue, as its bounds.
    /// @param provider The provider's address.
    /// @return begin Always 0.
    /// @return end Number of jobs.
    function providerTopUpJobsQueues(address provider) external view returns (int128 begin, int128 end);

    // ---------------------------------------------------------------- provider registry

    /// @notice Copies from the ProviderManager whether a provider may take jobs, and its offer.
    /// @dev The ProviderManager calls it at each change. Anyone may, because it only copies the registry's values.
    /// @param provider The provider's address.
    function noteStanding(address provider) external;

    /// @notice Time since when the provider's prices are at most what they are now. A job without a ceiling of its own goes
    /// to this provider only if it was requested later.
    /// @param provider The provider's address.
    /// @return Unix seconds; zero before the first approval.
    function raisedAt(address provider) external view returns (uint256);

    /// @notice Numbers of jobs that the provider started, refused, panicked and let time out.
    /// @param provider The provider's address.
    /// @return The four counters; all 0 for an unknown address.
    function recordOf(address provider) external view returns (ProviderRecord memory);

    // ---------------------------------------------------------------- jobs as clients read them

    /// @notice The whole job. Reverts with InvalidJob if it does not exist.
    /// @param jobId Id of the job.
    /// @return job The job.
    function get(bytes32 jobId) external view returns (Job memory job);

    /// @notice The terms that were fixed when the job was assigned.
    /// @param jobId Id of the job.
    /// @return terms The terms; all 0 but `lastRefuser` while no provider has the job.
    function jobTerms(bytes32 jobId) external view returns (JobTerms memory terms);

    /// @notice Several jobs with their terms and wishes.
    /// @param ids Ids of the jobs.
    /// @return jobs_ The jobs, in the order of `ids`.
    /// @return terms Their terms, in the same order.
    /// @return wishes Their wishes, in the same order; all 0 for none.
    function getMany(bytes32[] calldata ids)
        external
        view
        returns (Job[] memory jobs_, JobTerms[] memory terms, Wishes[] memory wishes);

    /// @notice The PENDING ones of `howMany` consecutive jobs, with their terms and wishes.
    /// @dev For all PENDING jobs, continue with `first + howMany` up to `jobIdCounter`.
    /// @param first Number of the first job to look at; ids count from 1.
    /// @param howMany Number of jobs to look at.
    /// @return jobs_ The PENDING jobs among them, in the order of their ids.
    /// @return terms Their terms, in the same order. A PENDING job has only `lastRefuser`.
    /// @return wishes Their wishes, in the same order; all 0 for none.
    function pendingJobs(uint256 first, uint256 howMany)
        external
        view
        returns (Job[] memory jobs_, JobTerms[] memory terms, Wishes[] memory wishes);

    /// @notice Ids of all jobs of a customer. For a customer with many jobs see `getByCustomerPaged`.
    /// @param customer The customer's address.
    /// @return Ids, oldest first.
    function getByCustomer(address customer) external view returns (bytes32[] memory);

    /// @notice Ids of some jobs of a customer.
    /// @param customer The customer's address.
    /// @param from Index of the first job; 0 is the oldest.
    /// @param howMany Maximum number of ids.
    /// @return Ids, oldest first; empty when there are fewer jobs.
    function getByCustomerPaged(address customer, uint256 from, uint256 howMany)
        external
        view
        returns (bytes32[] memory);

    /// @notice Id of one job of a customer. Reverts with OutOfBounds if the customer has fewer jobs.
    /// @param customer The customer's address.
    /// @param index Index of the job; 0 is the oldest.
    /// @return Id of the job.
    function jobIdByCustomer(address customer, uint256 index) external view returns (bytes32);

    /// @notice Ids of jobs that the provider has claimed and that have not ended, by pages.
    /// @dev Reverts with OutOfBounds if the job at `cursor` has ended.
    /// @param provider The provider's address.
    /// @param cursor Id of the first job of the page; 0 is the oldest claim.
    /// @param howMany Maximum number of ids.
    /// @return ids Ids in the order of their claim.
    /// @return nextCursor First job of the next page; 0 for none.
    function hotJobsOf(address provider, bytes32 cursor, uint256 howMany)
        external
        view
        returns (bytes32[] memory ids, bytes32 nextCursor);
}
