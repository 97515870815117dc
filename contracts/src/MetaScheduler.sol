// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    InsufficientFunds,
    InsufficientHardware,
    JobWaits,
    NoJob,
    ProviderNotJoined,
    RateAboveCeiling,
    RunningColdStatusOnly
} from "./Errors.sol";
import {BilledTooMuchEvent} from "./Events.sol";
import {RareCalls} from "./RareCalls.sol";
import {Assignment, JobStatus, StatusReport} from "./Types.sol";
import {Endings} from "./base/Endings.sol";
import {Requests} from "./base/Requests.sol";
import {TopUps} from "./base/TopUps.sol";
import {IProviderManager} from "./interfaces/IProviderManager.sol";
import {IUsualCalls} from "./interfaces/IUsualCalls.sol";
import {Billing} from "./libraries/Billing.sol";
import {JobRecord} from "./libraries/JobRecord.sol";
import {JobWord} from "./libraries/JobWord.sol";
import {LineWord} from "./libraries/LineWord.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {States} from "./libraries/States.sol";
import {Terms} from "./libraries/Terms.sol";
import {WishWord} from "./libraries/WishWord.sol";

/// @notice The market of jobs. A customer requests jobs and locks credits for them. The meta-scheduler assigns each
/// job to a provider. The provider claims it, reports on it and is paid for the minutes that it ran.
/// @dev IMetaScheduler shows everything that clients can call here.
contract MetaScheduler is Requests, TopUps {
    using Address for address;

    /// Address of RareCalls.
    address private immutable _rare;

    /// @notice Makes the deployer admin and owner, and deploys RareCalls.
    /// @dev An admin must then grant METASCHEDULER_ROLE here, and METASCHEDULER_CONTRACT_ROLE for this contract at
    /// `providerManager_`.
    /// @param credit_ Token that pays for jobs.
    /// @param providerManager_ Registry of the providers.
    constructor(IERC20 credit_, IProviderManager providerManager_) Endings(credit_, providerManager_) {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
        _rare = address(new RareCalls(credit_, providerManager_));
    }

    /// @notice Hands every other call to RareCalls, which runs on the storage of this contract.
    /// @param call The call as the client sent it.
    /// @return The answer of RareCalls.
    fallback(bytes calldata call) external returns (bytes memory) {
        return _rare.functionDelegateCall(call);
    }

    // ---------------------------------------------------------------- meta-scheduler

    /// @inheritdoc IUsualCalls
    function metaSchedule(bytes32 jobId, address provider) external onlyRole(METASCHEDULER_ROLE) {
        Refusals.raise(_assign(jobId, provider));
    }

    /// @inheritdoc IUsualCalls
    function metaScheduleJobs(Assignment[] calldata assignments) external onlyRole(METASCHEDULER_ROLE) {
        for (uint256 i; i < assignments.length; ++i) {
            Assignment calldata wanted = assignments[i];
            bytes32 jobId = wanted.jobId;
            _skipIf(_assign(jobId, wanted.provider), i, jobId);
        }
    }

    // ---------------------------------------------------------------- provider

    /// @inheritdoc IUsualCalls
    function claimNextJob() external {
        claimNextJobs(1);
    }

    /// @inheritdoc IUsualCalls
    function claimNextJobs(uint256 most) public {
        LineWord line = _lines[msg.sender];
        if (!line.valid()) revert ProviderNotJoined();
        uint256 count = Math.min(most, line.claimable());
        if (count == 0) revert NoJob();
        bytes32 jobId = _toId(line.nextToClaim());
        line = line.withClaimable(line.claimable() - count).withClaimed(line.claimed() + count);
        for (; count != 0; --count) {
            jobId = _claim(jobId);
        }
        _lines[msg.sender] = line.withNextToClaim(uint256(jobId));
    }

    /// @inheritdoc IUsualCalls
    function providerSetJobStatus(
        bytes32 jobId,
        JobStatus next,
        uint64 durationMinute,
        string calldata lastError,
        int64 exitCode
    ) external {
        Refusals.raise(_report(jobId, next, durationMinute, lastError, exitCode));
    }

    /// @inheritdoc IUsualCalls
    function providerSetJobStatuses(StatusReport[] calldata reports) external {
        for (uint256 i; i < reports.length; ++i) {
            StatusReport calldata told = reports[i];
            bytes32 jobId = told.jobId;
            _skipIf(_report(jobId, told.next, told.durationMinute, told.lastError, told.exitCode), i, jobId);
        }
    }

    // ---------------------------------------------------------------- one item of a call or of a batch

    /// Assigns a job and returns an empty error, or changes nothing and returns the error.
    function _assign(bytes32 jobId, address provider) private returns (bytes memory refusal) {
        JobWord word = _word(jobId);
        refusal = States.refusal(word.status(), JobStatus.META_SCHEDULED);
        if (refusal.length != 0) return refusal;
        LineWord line = _lines[provider];
        if (!line.valid()) return Refusals.plain(ProviderNotJoined.selector);
        uint256 number = line.terms();
        Terms memory terms = _terms[number];
        JobRecord.Core memory core = _coreOf(word);
        if (!terms.seller.holds(core.sizes)) return abi.encodeWithSelector(InsufficientHardware.selector, provider);
        uint256 rate = terms.tariff.rateOf(core.sizes);
        uint256 locked = _lockedOf(jobId, word, core.deposit);
        if (locked < rate) return abi.encodeWithSelector(InsufficientFunds.selector, locked, rate);
        refusal = _refusalOfWishes(core, line, rate, locked);
        if (refusal.length != 0) return refusal;
        if (!terms.tariff.charges(_deepsquareCut, _cancellationFeeMinute)) {
            terms.tariff = terms.tariff.withCharges(_deepsquareCut, _cancellationFeeMinute);
            number = _newTerms(terms);
            line = line.withTerms(number);
        }
        word = _move(jobId, word, JobStatus.META_SCHEDULED).assigned(number, Billing.limitMinutes(locked, rate));
        (_lines[provider], _words[jobId]) = _enter(line, jobId, word);
    }

    /// The error for an assignment that breaks the job's wishes. A job without a ceiling of its own goes only to prices that
    /// were in force when it was requested, or lower.
    function _refusalOfWishes(JobRecord.Core memory core, LineWord line, uint256 rate, uint256 locked)
        private
        view
        returns (bytes memory refusal)
    {
        WishWord wishes = core.wishes;
        if (wishes.ceiling() == 0 && line.raisedAt() >= core.submittedAt) {
            return abi.encodeWithSelector(RateAboveCeiling.selector, rate, 0);
        }
        if (WishWord.unwrap(wishes) == 0) return "";
        uint32 earlier = wishes.afterJob();
        if (earlier != 0) {
            JobStatus status = _words[_toId(earlier)].status();
            bool ready = wishes.afterAny() ? !States.isHot(status) : status == JobStatus.FINISHED;
            if (!ready) return abi.encodeWithSelector(JobWaits.selector, earlier);
        }
        return wishes.refusal(rate, locked);
    }

    /// Claims the first waiting job and returns the one behind it. The caller moves the mark.
    function _claim(bytes32 jobId) private returns (bytes32 nextJob) {
        JobWord word = _words[jobId];
        nextJob = _toId(word.next());
        _words[jobId] = _moved(jobId, word, JobStatus.SCHEDULED).claimed();
        address blob = _blobOf(word);
        (address customer,) = JobRecord.headerOf(blob);
        uint256[4] memory fields = [uint160(customer), uint160(msg.sender), uint256(jobId), word.limitMinutes()];
        JobRecord.logDefinition(ClaimJobEvent.selector, fields, blob, word.position());
    }

    /// Reports on a job and returns an empty error, or changes nothing and returns the error.
    function _report(bytes32 jobId, JobStatus next, uint64 ranMinutes, string calldata lastError, int64 exitCode)
        private
        returns (bytes memory refusal)
    {
        JobWord word = _word(jobId);
        refusal = _refusalOfReport(word, next);
        if (refusal.length != 0) return refusal;
        bool usual = bytes(lastError).length == 0 && exitCode == 0 && !word.hasExtra();
        if (!usual) word = _noteOutcome(jobId, word, lastError, exitCode);
        if (next == JobStatus.RUNNING) _start(jobId, word, ranMinutes);
        else _finish(jobId, word, next, ranMinutes);
    }

    function _refusalOfReport(JobWord word, JobStatus next) private view returns (bytes memory) {
        address provider = _providerOf(word);
        if (msg.sender != provider) return _refusalOfOther(provider);
        if (next < JobStatus.RUNNING) revert RunningColdStatusOnly(next);
        return States.refusal(word.status(), next);
    }

    /// Stores the error text and the exit code, which few jobs have.
    function _noteOutcome(bytes32 jobId, JobWord word, string calldata lastError, int64 exitCode)
        private
        returns (JobWord)
    {
        _extras[jobId].exitCode = exitCode;
        return _noteError(jobId, word.withExtra(), bytes(lastError));
    }

    /// Marks the job as RUNNING for `ranMinutes` so far. The caller has checked the edge.
    function _start(bytes32 jobId, JobWord word, uint64 ranMinutes) private {
        uint256 start = Billing.startOf(ranMinutes, word.claimedAt());
        _words[jobId] = _move(jobId, word, JobStatus.RUNNING).startedFrom(start);
        _lines[msg.sender] = _lines[msg.sender].withOneMoreStarted();
    }

    /// Ends the job after `ranMinutes`.
    function _finish(bytes32 jobId, JobWord word, JobStatus next, uint64 ranMinutes) private {
        Deal memory deal = _dealOf(jobId, word);
        if (next == JobStatus.PANICKED) return _panic(jobId, word, deal);
        bool running = word.status() == JobStatus.RUNNING;
        _end(jobId, word, deal, next, running ? _billableMinutes(jobId, word, deal, next, ranMinutes) : 0);
    }

    /// Returns min(reported, started minutes since the start). This is zero if the job ends as it starts. Minutes count until
    /// now, but after a cancel request only until the time for its answer ends. A cancel of a RUNNING job on request costs at least the cancellation fee.
    function _billableMinutes(bytes32 jobId, JobWord word, Deal memory deal, JobStatus next, uint256 reported)
        private
        returns (uint256 billed)
    {
        uint256 until = block.timestamp;
        bool requested = word.cancelRequested();
        if (requested) until = Math.min(until, _extras[jobId].cancelRequestedAt + ANSWER_PERIOD);
        uint256 observed = Billing.startedMinutes(word.startedAt(), until);
        if (reported > observed + _billDurationDeltaMinute) {
            emit BilledTooMuchEvent(jobId, msg.sender, reported);
        }
        billed = Math.min(reported, observed);
        if (next == JobStatus.CANCELLED && requested) {
            billed = Math.max(billed, Math.min(_feeOf(word), _limitMinutes(deal)));
        }
    }
}
