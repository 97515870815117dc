// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    InsufficientFunds,
    InsufficientHardware,
    InvalidJobDefinition,
    JobProviderOnly,
    NewJobRequestDisabled,
    NoJob,
    ProviderNotJoined,
    RunningColdStatusOnly
} from "./Errors.sol";
import {BatchItemSkippedEvent, BilledTooMuchEvent, ClaimJobEvent, NewJobRequestEvent} from "./Events.sol";
import {IProviderManager} from "./IProviderManager.sol";
import {RareCalls} from "./RareCalls.sol";
import {Assignment, HardwareTotals, JobDefinition, JobRequest, JobStatus, StatusReport} from "./Types.sol";
import {Endings} from "./base/Endings.sol";
import {Billing} from "./libraries/Billing.sol";
import {JobRecord} from "./libraries/JobRecord.sol";
import {JobWord} from "./libraries/JobWord.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {States} from "./libraries/States.sol";

/// The market of jobs: takes a customer's job and credits, lets the meta-scheduler assign it to a provider, the
/// provider claim it, report it and be paid for what ran. Also serves as the job repository, the provider queues
/// and the constants of the grid, which clients find from here.
contract MetaScheduler is Endings {
    using Address for address;

    address private immutable _rare;

    /// The deployer is admin and owner; METASCHEDULER_ROLE is to be granted. This contract must be given
    /// METASCHEDULER_CONTRACT_ROLE at `providerManager_`.
    constructor(IERC20 credit_, IProviderManager providerManager_) Endings(credit_, providerManager_) {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
        _rare = address(new RareCalls(credit_, providerManager_));
    }

    /// What this contract does not do itself is done by RareCalls, on the storage of this one.
    fallback(bytes calldata call) external returns (bytes memory) {
        return _rare.functionDelegateCall(call);
    }

    // ---------------------------------------------------------------- customer

    /// Asks for a job and locks `lockedCredits` wei for it, which this contract must be allowed to take.
    function requestNewJob(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority
    ) external returns (bytes32 jobId) {
        bytes memory record = _checkedRecord(definition, lockedCredits, jobName);
        _lock(msg.sender, lockedCredits);
        jobId = _createOne(record, delegateSpendingAuthority);
        emit NewJobRequestEvent(jobId, msg.sender);
    }

    /// Asks for many jobs at once, all or none; their ids follow each other.
    function requestNewJobs(JobRequest[] calldata requests) external returns (bytes32[] memory jobIds) {
        bytes[] memory records = new bytes[](requests.length);
        bool[] memory delegateSpending = new bool[](requests.length);
        uint256 locked;
        for (uint256 i; i < requests.length; ++i) {
            JobRequest calldata request = requests[i];
            records[i] = _checkedRecord(request.definition, request.lockedCredits, request.jobName);
            delegateSpending[i] = request.delegateSpendingAuthority;
            locked += request.lockedCredits;
        }
        _lock(msg.sender, locked);
        jobIds = _createMany(records, delegateSpending);
        for (uint256 i; i < jobIds.length; ++i) {
            emit NewJobRequestEvent(jobIds[i], msg.sender);
        }
    }

    // ---------------------------------------------------------------- meta-scheduler

    /// Assigns a PENDING job to a provider and fixes its rate per minute and the platform's cut.
    function metaSchedule(bytes32 jobId, address provider) external onlyRole(METASCHEDULER_ROLE) {
        Refusals.raise(_assign(jobId, provider));
    }

    /// Assigns many jobs. One that cannot be assigned (any more) is skipped with an event; an unknown one reverts.
    function metaScheduleJobs(Assignment[] calldata assignments) external onlyRole(METASCHEDULER_ROLE) {
        for (uint256 i; i < assignments.length; ++i) {
            bytes32 jobId = assignments[i].jobId;
            _skipIf(_assign(jobId, assignments[i].provider), i, jobId);
        }
    }

    // ---------------------------------------------------------------- provider

    /// Takes the job that was assigned to the caller first.
    function claimNextJob() external {
        claimNextJobs(1);
    }

    /// Takes up to `most` jobs, in the order of their assignment; at least one.
    function claimNextJobs(uint256 most) public {
        if (!providerManager.isValidForScheduling(msg.sender)) revert ProviderNotJoined();
        uint256 claimable = _lines[msg.sender].claimable;
        if (claimable == 0 || most == 0) revert NoJob();
        for (uint256 left = Math.min(most, claimable); left != 0; --left) {
            _claim();
        }
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
        Refusals.raise(_report(StatusReport(jobId, next, durationMinute, lastError, exitCode)));
    }

    /// Reports on many jobs. A job that is not the caller's (any more) or has moved on meanwhile is skipped with an
    /// event; an unknown one, and a state that no provider reports, revert.
    function providerSetJobStatuses(StatusReport[] calldata reports) external {
        for (uint256 i; i < reports.length; ++i) {
            _skipIf(_report(reports[i]), i, reports[i].jobId);
        }
    }

    // ---------------------------------------------------------------- one item of a call or of a batch

    function _skipIf(bytes memory refusal, uint256 index, bytes32 jobId) private {
        if (refusal.length != 0) emit BatchItemSkippedEvent(index, jobId, refusal);
    }

    function _checkedRecord(JobDefinition calldata definition, uint256 lockedCredits, bytes32 jobName)
        private
        view
        returns (bytes memory)
    {
        if (_closed) revert NewJobRequestDisabled();
        if (lockedCredits < minimumAmount()) revert InsufficientFunds(lockedCredits, minimumAmount());
        if (definition.ntasks == 0 || definition.cpusPerTask == 0 || definition.memPerCpu == 0) {
            revert InvalidJobDefinition();
        }
        return JobRecord.encode(definition, _lockable(0, lockedCredits), jobName);
    }

    function _assign(bytes32 jobId, address provider) private returns (bytes memory refusal) {
        JobWord word = _word(jobId);
        refusal = States.refusal(word.status(), JobStatus.META_SCHEDULED);
        if (refusal.length != 0) return refusal;
        (bool valid, uint32 version, HardwareTotals memory totals) = providerManager.standingOf(provider);
        if (!valid) return Refusals.plain(ProviderNotJoined.selector);
        JobRecord.Core memory core = _coreOf(word);
        if (!Billing.fits(core.sizes, totals)) return abi.encodeWithSelector(InsufficientHardware.selector, provider);
        (uint256 terms, uint256 rate) = _termsFor(provider, version, core.sizes);
        uint256 locked = _lockedOf(jobId, word, core.deposit);
        if (locked < rate) return abi.encodeWithSelector(InsufficientFunds.selector, locked, rate);
        word = _moved(jobId, word, JobStatus.META_SCHEDULED).assigned(terms);
        _words[jobId] = _enter(provider, jobId, word);
    }

    function _claim() private {
        (bytes32 jobId, JobWord word) = _pass(msg.sender);
        _words[jobId] = _moved(jobId, word, JobStatus.SCHEDULED).claimed();
        JobRecord.Core memory core = _coreOf(word);
        uint256 locked = _lockedOf(jobId, word, core.deposit);
        uint64 limit = Billing.limitMinutes(locked, _rateOf(word, core.sizes));
        (JobDefinition memory definition,) = JobRecord.definitionOf(_blobOf(word), word.position(), core);
        emit ClaimJobEvent(core.customer, msg.sender, jobId, limit, definition);
    }

    function _report(StatusReport memory report) private returns (bytes memory refusal) {
        (bytes32 jobId, JobStatus next) = (report.jobId, report.next);
        JobWord word = _word(jobId);
        address provider = _providerOf(word);
        if (msg.sender != provider) return abi.encodeWithSelector(JobProviderOnly.selector, msg.sender, provider);
        if (next < JobStatus.RUNNING) revert RunningColdStatusOnly(next);
        refusal = States.refusal(word.status(), next);
        if (refusal.length != 0) return refusal;
        word = _noteOutcome(jobId, word, report);
        if (next == JobStatus.RUNNING) {
            uint256 start = Billing.startOf(report.durationMinute, word.claimedAt());
            _words[jobId] = _moved(jobId, word, next).startedFrom(start);
            providerManager.incJobCount(msg.sender);
            return "";
        }
        Deal memory deal = _dealOf(jobId, word);
        if (next == JobStatus.PANICKED) _panic(jobId, word, deal);
        else _end(jobId, word, deal, next, _billableMinutes(word, deal, report));
    }

    /// Keeps the text and the exit code, which most jobs do not have.
    function _noteOutcome(bytes32 jobId, JobWord word, StatusReport memory report) private returns (JobWord) {
        if (bytes(report.lastError).length == 0 && report.exitCode == 0 && !word.hasExtra()) return word;
        _extras[jobId].exitCode = report.exitCode;
        return _noteError(jobId, word, report.lastError);
    }

    /// min(reported, started minutes since the start), up to now or, after a cancel request, at most to the end of
    /// the time for its answer. A job cancelled on request while RUNNING costs at least the cancellation fee.
    function _billableMinutes(JobWord word, Deal memory deal, StatusReport memory report)
        private
        returns (uint256 billed)
    {
        if (word.status() != JobStatus.RUNNING) return 0;
        uint256 until = block.timestamp;
        bool requested = word.cancelRequested();
        if (requested) until = Math.min(until, _extras[report.jobId].cancelRequestedAt + _claimTimeout());
        uint256 observed = Billing.startedMinutes(word.startedAt(), until);
        uint256 reported = report.durationMinute;
        if (reported > observed + billDurationDeltaMinute) {
            emit BilledTooMuchEvent(report.jobId, msg.sender, reported);
        }
        billed = Math.min(reported, observed);
        if (report.next == JobStatus.CANCELLED && requested) {
            billed = Math.max(billed, Math.min(cancellationFeeMinute, _limitMinutes(deal)));
        }
    }
}
