// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    CustomerOnly,
    InsufficientFunds,
    InsufficientHardware,
    InvalidJobDefinition,
    JobHotStatusOnly,
    JobProviderOnly,
    MetaScheduledScheduledStatusOnly,
    NewJobRequestDisabled,
    ProviderNotJoined,
    RunningColdStatusOnly,
    TimeoutTooEarly
} from "./Errors.sol";
import {BilledTooMuchEvent, ClaimJobEvent, JobRefusedEvent, NewJobRequestEvent} from "./Events.sol";
import {IProviderManager} from "./IProviderManager.sol";
import {Fault, HardwareTotals, JobDefinition, JobStatus, ProviderPrices} from "./Types.sol";
import {Escrow} from "./base/Escrow.sol";
import {ProviderQueues} from "./base/ProviderQueues.sol";
import {TopUps} from "./base/TopUps.sol";
import {Billing} from "./libraries/Billing.sol";
import {IdList} from "./libraries/IdList.sol";
import {States} from "./libraries/States.sol";

/// The market of jobs: takes a customer's job and credits, lets the meta-scheduler assign it to a provider, the
/// provider claim it, report it and be paid for what ran. Also serves as the job repository, the provider queues
/// and the constants of the grid, which clients find from here.
contract MetaScheduler is TopUps, ProviderQueues {
    using IdList for IdList.List;

    /// After bought time and this much more, a customer may take a job back from a provider that vanished.
    uint256 public constant TIMEOUT_GRACE = 1 days;

    IProviderManager public immutable providerManager;

    /// Whether new jobs are accepted.
    bool public enableRequestNewJob = true;

    /// The deployer is admin and owner; METASCHEDULER_ROLE is to be granted. This contract must be given
    /// METASCHEDULER_CONTRACT_ROLE at `providerManager_`.
    constructor(IERC20 credit_, IProviderManager providerManager_) Escrow(credit_) {
        providerManager = providerManager_;
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
    }

    // ---------------------------------------------------------------- where clients find the rest

    function jobs() external view returns (address) {
        return address(this);
    }

    function providerJobQueues() external view returns (address) {
        return address(this);
    }

    function constants() external view returns (address) {
        return address(this);
    }

    /// Opens or closes the door for new jobs; those that exist go on.
    function setEnableRequestNewJob(bool enabled) external onlyRole(DEFAULT_ADMIN_ROLE) {
        enableRequestNewJob = enabled;
    }

    // ---------------------------------------------------------------- customer

    /// Asks for a job and locks `lockedCredits` wei for it, which this contract must be allowed to take.
    function requestNewJob(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority
    ) external returns (bytes32 jobId) {
        if (!enableRequestNewJob) revert NewJobRequestDisabled();
        if (lockedCredits < minimumAmount) revert InsufficientFunds(lockedCredits, minimumAmount);
        if (definition.ntasks == 0 || definition.cpusPerTask == 0 || definition.memPerCpu == 0) {
            revert InvalidJobDefinition();
        }
        jobId = _create(definition, _lock(msg.sender, lockedCredits), jobName, delegateSpendingAuthority);
        emit NewJobRequestEvent(jobId, msg.sender);
    }

    /// Cancels a job. Before its claim: at once, with a full refund. From then on it is a request to the provider,
    /// which also ends the spending authority; when it stays unanswered for `claimJobTimeout`, a further call
    /// closes the job with a full refund.
    function cancelJob(bytes32 jobId) external {
        Record storage record = _record(jobId);
        if (msg.sender != record.customer) revert CustomerOnly(msg.sender, record.customer);
        if (!States.isHot(record.status)) revert JobHotStatusOnly(record.status);
        if (!States.isClaimed(record.status)) return _end(jobId, record, JobStatus.CANCELLED, 0);
        if (!record.hasCancelRequest) {
            record.hasCancelRequest = true;
            record.cancelRequestedAt = uint40(block.timestamp);
            record.delegateSpending = false;
        } else if (block.timestamp >= record.cancelRequestedAt + _claimTimeout()) {
            providerManager.incFaultCount(record.provider, Fault.TIMED_OUT);
            return _end(jobId, record, JobStatus.CANCELLED, 0);
        }
        _cancelling[record.provider].push(uint64(uint256(jobId)));
    }

    // ---------------------------------------------------------------- meta-scheduler

    /// Assigns a PENDING job to a provider and fixes its rate per minute and the platform's cut.
    function metaSchedule(bytes32 jobId, address provider) external onlyRole(METASCHEDULER_ROLE) {
        Record storage record = _record(jobId);
        States.check(record.status, JobStatus.META_SCHEDULED);
        if (!providerManager.isValidForScheduling(provider)) revert ProviderNotJoined();
        (ProviderPrices memory prices, HardwareTotals memory totals) = providerManager.offer(provider);
        JobDefinition memory definition = record.definition;
        if (!Billing.fits(definition, totals)) revert InsufficientHardware(provider);
        uint128 rate = Billing.ratePerMinute(definition, prices);
        if (record.locked < rate) revert InsufficientFunds(record.locked, rate);
        record.provider = provider;
        record.assignedAt = uint40(block.timestamp);
        record.ratePerMinute = rate;
        record.cutPercent = deepsquareCut;
        _move(jobId, record, JobStatus.META_SCHEDULED);
    }

    /// Ends a hot job with a full refund, whatever ran.
    function panicJob(bytes32 jobId, string calldata lastError) external onlyRole(METASCHEDULER_ROLE) {
        Record storage record = _record(jobId);
        record.lastError = lastError;
        _panic(jobId, record);
    }

    /// Takes a job from a provider that does not act. META_SCHEDULED: by anyone, after `claimJobTimeout`. Claimed:
    /// by the meta-scheduler when the provider is banned or silent, by the customer when bought time and a long
    /// grace have passed. A job that was RUNNING ends PANICKED, another one is PENDING again.
    function timeoutJob(bytes32 jobId) external {
        Record storage record = _record(jobId);
        JobStatus status = record.status;
        if (!States.isClaimed(status)) States.check(status, JobStatus.PENDING);
        uint256 notBefore = _mayTimeOutFrom(record);
        if (block.timestamp < notBefore) revert TimeoutTooEarly(notBefore);
        providerManager.incFaultCount(record.provider, Fault.TIMED_OUT);
        if (status != JobStatus.RUNNING) return _giveBack(jobId, record);
        record.lastError = "the provider did not report in time";
        _end(jobId, record, JobStatus.PANICKED, 0);
    }

    // ---------------------------------------------------------------- provider

    /// Whether `claimNextJob` has something for this provider.
    function hasNextClaimableJob(address provider) external view override returns (bool) {
        return _claimable[provider].size != 0 && providerManager.isValidForScheduling(provider);
    }

    /// Takes the job that was assigned to the caller first.
    function claimNextJob() external {
        if (!providerManager.isValidForScheduling(msg.sender)) revert ProviderNotJoined();
        bytes32 jobId = _first(_claimable[msg.sender]);
        Record storage record = _record(jobId);
        record.claimedAt = uint40(block.timestamp);
        _move(jobId, record, JobStatus.SCHEDULED);
        emit ClaimJobEvent(record.customer, msg.sender, jobId, _limitMinutes(record), record.definition);
    }

    /// Gives an assigned or claimed job back, at no cost; it is PENDING again, or CANCELLED if that was asked for.
    function refuseJob(bytes32 jobId) external {
        Record storage record = _ownRecord(jobId);
        if (record.status != JobStatus.META_SCHEDULED && record.status != JobStatus.SCHEDULED) {
            revert MetaScheduledScheduledStatusOnly(record.status);
        }
        if (!record.hasCancelRequest) providerManager.incFaultCount(msg.sender, Fault.REFUSED);
        _giveBack(jobId, record);
    }

    /// Reports that a job runs (since `durationMinute` minutes) or how it ended (after `durationMinute` minutes),
    /// with a text for the customer and Slurm's wait status. An end settles the job.
    function providerSetJobStatus(
        bytes32 jobId,
        JobStatus next,
        uint64 durationMinute,
        string calldata lastError,
        int64 exitCode
    ) external {
        Record storage record = _ownRecord(jobId);
        if (next < JobStatus.RUNNING) revert RunningColdStatusOnly(next);
        States.check(record.status, next);
        record.lastError = lastError;
        record.exitCode = exitCode;
        if (next == JobStatus.RUNNING) {
            record.startedAt = uint40(Billing.startOf(durationMinute, record.claimedAt));
            _move(jobId, record, next);
            providerManager.incJobCount(msg.sender);
        } else if (next == JobStatus.PANICKED) {
            _panic(jobId, record);
        } else {
            _end(jobId, record, next, _billableMinutes(jobId, record, next, durationMinute));
        }
    }

    // ---------------------------------------------------------------- how jobs end or return

    function _panic(bytes32 jobId, Record storage record) private {
        if (States.isClaimed(record.status)) providerManager.incFaultCount(record.provider, Fault.PANICKED);
        _end(jobId, record, JobStatus.PANICKED, 0);
    }

    function _end(bytes32 jobId, Record storage record, JobStatus status, uint64 billedMinutes) private {
        _move(jobId, record, status);
        record.endedAt = uint40(block.timestamp);
        _settle(jobId, record, billedMinutes);
    }

    /// Back to PENDING, free of its provider and terms; unless the customer asked for its end anyway.
    function _giveBack(bytes32 jobId, Record storage record) private {
        if (record.hasCancelRequest) return _end(jobId, record, JobStatus.CANCELLED, 0);
        address provider = record.provider;
        _move(jobId, record, JobStatus.PENDING);
        record.lastRefuser = provider;
        record.provider = address(0);
        record.assignedAt = 0;
        record.claimedAt = 0;
        record.ratePerMinute = 0;
        record.cutPercent = 0;
        emit JobRefusedEvent(jobId, provider, record.customer);
    }

    /// min(reported, started minutes since the start), up to now or, after a cancel request, at most to the end of
    /// the time for its answer. A job cancelled on request while RUNNING costs at least the cancellation fee.
    function _billableMinutes(bytes32 jobId, Record storage record, JobStatus next, uint64 reported)
        private
        returns (uint64)
    {
        if (record.status != JobStatus.RUNNING) return 0;
        uint256 until = block.timestamp;
        if (record.hasCancelRequest) until = Math.min(until, record.cancelRequestedAt + _claimTimeout());
        uint256 observed = Billing.startedMinutes(record.startedAt, until);
        if (reported > observed + billDurationDeltaMinute) emit BilledTooMuchEvent(jobId, msg.sender, reported);
        uint256 billed = Math.min(reported, observed);
        if (next == JobStatus.CANCELLED && record.hasCancelRequest) {
            billed = Math.max(billed, Math.min(cancellationFeeMinute, _limitMinutes(record)));
        }
        return uint64(billed);
    }

    /// From when the caller may time this job out. Reverts if the caller never may.
    function _mayTimeOutFrom(Record storage record) private view returns (uint256) {
        if (record.status == JobStatus.META_SCHEDULED) return record.assignedAt + _claimTimeout();
        uint256 since = record.startedAt != 0 ? record.startedAt : record.claimedAt;
        uint256 boughtUntil = since + uint256(_limitMinutes(record)) * 1 minutes;
        if (msg.sender == record.customer) return boughtUntil + TIMEOUT_GRACE;
        _checkRole(METASCHEDULER_ROLE);
        if (!providerManager.isValidForScheduling(record.provider)) return 0;
        uint256 silentFrom = record.hasCancelRequest ? Math.min(record.cancelRequestedAt, boughtUntil) : boughtUntil;
        return silentFrom + _claimTimeout();
    }

    function _ownRecord(bytes32 jobId) private view returns (Record storage record) {
        record = _record(jobId);
        if (msg.sender != record.provider) revert JobProviderOnly(msg.sender, record.provider);
    }
}
