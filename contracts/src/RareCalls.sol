// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    CustomerOnly,
    MetaScheduledScheduledStatusOnly,
    NotGivenUp,
    PendingStatusOnly,
    TimeoutTooEarly
} from "./Errors.sol";
import {CancelReleasedEvent, JobRefusedEvent} from "./Events.sol";
import {JobStatus} from "./Types.sol";
import {CutChanges} from "./base/CutChanges.sol";
import {Endings} from "./base/Endings.sol";
import {JobViews} from "./base/JobViews.sol";
import {ProviderQueues} from "./base/ProviderQueues.sol";
import {SpendingLimits} from "./base/SpendingLimits.sol";
import {Standings} from "./base/Standings.sol";
import {IProviderManager} from "./interfaces/IProviderManager.sol";
import {IRareCalls} from "./interfaces/IRareCalls.sol";
import {Billing} from "./libraries/Billing.sol";
import {IdList} from "./libraries/IdList.sol";
import {JobWord} from "./libraries/JobWord.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {States} from "./libraries/States.sol";
import {WishWord} from "./libraries/WishWord.sol";

/// @notice The calls that a usual job does not need, and the views.
/// @dev One contract would be longer than the limit of EIP-170. So the MetaScheduler hands these calls over by
/// delegatecall, and this code works on the MetaScheduler's storage. Both contracts share their base contracts, which
/// declare all variables; neither declares one itself. A direct call to this contract finds no jobs, roles or credits.
contract RareCalls is CutChanges, ProviderQueues, SpendingLimits, Standings, JobViews {
    using IdList for IdList.List;
    using SafeERC20 for IERC20;

    /// @inheritdoc IRareCalls
    uint256 public constant TIMEOUT_GRACE = 1 days;

    /// @notice The MetaScheduler deploys this contract with its own arguments.
    /// @param credit_ Token that pays for jobs.
    /// @param providerManager_ Registry of the providers.
    constructor(IERC20 credit_, IProviderManager providerManager_) Endings(credit_, providerManager_) {}

    /// @inheritdoc IRareCalls
    uint256 public constant CANCEL_ANSWER_PERIOD = ANSWER_PERIOD;

    // ---------------------------------------------------------------- addresses of the other parts

    /// @inheritdoc IRareCalls
    function jobs() external view returns (address) {
        return address(this);
    }

    /// @inheritdoc IRareCalls
    function providerJobQueues() external view returns (address) {
        return address(this);
    }

    /// @inheritdoc IRareCalls
    function constants() external view returns (address) {
        return address(this);
    }

    /// @inheritdoc IRareCalls
    function setEnableRequestNewJob(bool enabled) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _closed = !enabled;
    }

    /// @inheritdoc IRareCalls
    function cancelJob(bytes32 jobId) external {
        JobWord word = _hotWord(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer) revert CustomerOnly(msg.sender, deal.customer);
        if (States.isClaimed(word.status())) {
            if (!word.cancelRequested()) return _requestCancel(jobId, word, deal.provider);
            uint256 requested = _extras[jobId].cancelRequestedAt;
            if (block.timestamp < requested + TIMEOUT_GRACE) return _release(jobId, word, deal, requested);
            ++_faults[deal.provider].timedOut;
        }
        _end(jobId, word.withCancelRequest(), deal, JobStatus.CANCELLED, 0);
    }

    /// @inheritdoc IRareCalls
    function giveUpJob(bytes32 jobId) external {
        Refusals.raise(_giveUp(jobId));
    }

    /// @inheritdoc IRareCalls
    function giveUpJobs(bytes32[] calldata jobIds) external {
        for (uint256 i; i < jobIds.length; ++i) {
            _skipIf(_giveUp(jobIds[i]), i, jobIds[i]);
        }
    }

    // ---------------------------------------------------------------- meta-scheduler

    /// @inheritdoc IRareCalls
    function panicJob(bytes32 jobId, string calldata lastError) external onlyRole(METASCHEDULER_ROLE) {
        JobWord word = _noteError(jobId, _hotWord(jobId), bytes(lastError));
        _panic(jobId, word, _dealOf(jobId, word));
    }

    /// @inheritdoc IRareCalls
    function timeoutJob(bytes32 jobId) external {
        JobWord word = _word(jobId);
        JobStatus status = word.status();
        if (!States.isClaimed(status)) States.check(status, JobStatus.PENDING);
        Deal memory deal = _dealOf(jobId, word);
        uint256 notBefore = _mayTimeOutFrom(jobId, word, deal);
        if (block.timestamp < notBefore) revert TimeoutTooEarly(notBefore);
        ++_faults[deal.provider].timedOut;
        if (status != JobStatus.RUNNING) return _giveBack(jobId, word, deal);
        _extras[jobId].lastError = "the provider did not report in time";
        word = word.withExtra();
        _end(jobId, word, deal, JobStatus.PANICKED, 0);
    }

    // ---------------------------------------------------------------- provider

    /// @inheritdoc IRareCalls
    function hasNextClaimableJob(address provider) external view returns (bool) {
        return _lines[provider].valid() && _lines[provider].claimable() != 0;
    }

    /// @inheritdoc IRareCalls
    function refuseJob(bytes32 jobId) external {
        JobWord word = _word(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.provider) Refusals.raise(_refusalOfOther(deal.provider));
        JobStatus status = word.status();
        if (status != JobStatus.META_SCHEDULED && status != JobStatus.SCHEDULED) {
            revert MetaScheduledScheduledStatusOnly(status);
        }
        if (!word.cancelRequested()) ++_faults[msg.sender].refused;
        _giveBack(jobId, word, deal);
    }

    // ---------------------------------------------------------------- how credits and jobs return

    /// Gives a job up and returns an empty error, or changes nothing and returns the error.
    function _giveUp(bytes32 jobId) private returns (bytes memory) {
        JobWord word = _word(jobId);
        JobStatus status = word.status();
        if (status != JobStatus.PENDING) return abi.encodeWithSelector(PendingStatusOnly.selector, status);
        WishWord wishes = _wishesOf(word);
        uint256 giveUpAt = wishes.giveUpAt();
        bool due = giveUpAt != 0 && block.timestamp >= giveUpAt;
        if (!due && !_waitsInVain(wishes)) return abi.encodeWithSelector(NotGivenUp.selector, giveUpAt);
        _end(jobId, word, _dealOf(jobId, word), JobStatus.CANCELLED, 0);
        return "";
    }

    /// Whether the job waits for another one to finish, which ended in another way.
    function _waitsInVain(WishWord wishes) private view returns (bool) {
        if (wishes.afterJob() == 0 || wishes.afterAny()) return false;
        JobStatus status = _words[_toId(wishes.afterJob())].status();
        return !States.isHot(status) && status != JobStatus.FINISHED;
    }

    /// Asks the provider to end the job.
    function _requestCancel(bytes32 jobId, JobWord word, address provider) private {
        _extras[jobId].cancelRequestedAt = uint40(block.timestamp);
        _words[jobId] = word.withExtra().withCancelRequest().withDelegateSpending(false);
        _cancelling[provider].push(uint64(uint256(jobId)));
    }

    /// Returns to the customer what no report can bill any more, if the time for the answer is over. A repeated call finds
    /// nothing more. The time added by a top-up is of no use now, so its hint goes too.
    function _release(bytes32 jobId, JobWord word, Deal memory deal, uint256 requested) private {
        uint256 answerDue = requested + ANSWER_PERIOD;
        if (block.timestamp < answerDue) return;
        uint256 held = _mostBillable(word, deal, answerDue);
        uint256 released = deal.locked - held;
        if (released == 0) return;
        Extra storage extra = _extras[jobId];
        (extra.released, extra.pendingTopUp) = (extra.released + uint96(released), 0);
        _toppedUp[deal.provider].remove(uint64(uint256(jobId)));
        emit CancelReleasedEvent(jobId, deal.customer, released, held, requested + TIMEOUT_GRACE);
        credit.safeTransfer(deal.customer, released);
    }

    /// The highest cost in wei that a report can have after a cancel request: the minutes until its answer was due, or
    /// the cancellation fee. A job that was not reported as RUNNING may have run since its claim.
    function _mostBillable(JobWord word, Deal memory deal, uint256 answerDue) private view returns (uint256) {
        uint256 most = Billing.startedMinutes(word.mayRunSince(), answerDue);
        most = Billing.charged(Math.max(most, _feeOf(word)), deal.locked, deal.rate);
        return Billing.cost(most, deal.rate, deal.locked);
    }

    /// Returns the job to PENDING, without provider and terms. If the customer requested a cancel, ends it instead.
    function _giveBack(bytes32 jobId, JobWord word, Deal memory deal) private {
        if (word.cancelRequested()) return _end(jobId, word, deal, JobStatus.CANCELLED, 0);
        if (word.hasExtra()) _extras[jobId].pendingTopUp = 0; // the next claim's limit includes it
        _leave(deal.provider, jobId, word);
        _words[jobId] = _moved(jobId, word, JobStatus.PENDING).released().withExtra();
        _extras[jobId].lastRefuser = deal.provider;
        emit JobRefusedEvent(jobId, deal.provider, deal.customer);
    }

    /// The first moment at which the caller may time this job out. Reverts if the caller never may.
    function _mayTimeOutFrom(bytes32 jobId, JobWord word, Deal memory deal) private view returns (uint256) {
        if (word.status() == JobStatus.META_SCHEDULED) return word.assignedAt() + _claimTimeout();
        bool waits = word.status() == JobStatus.SCHEDULED && !word.cancelRequested();
        if (msg.sender != deal.customer) {
            _checkRole(METASCHEDULER_ROLE);
            if (waits && !_lines[deal.provider].valid()) return 0;
        }
        uint256 silentFrom = word.mayRunSince() + uint256(_limitMinutes(deal)) * 1 minutes;
        if (word.cancelRequested()) silentFrom = Math.min(silentFrom, _extras[jobId].cancelRequestedAt);
        return silentFrom + TIMEOUT_GRACE;
    }
}
