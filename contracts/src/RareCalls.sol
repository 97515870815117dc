// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    CustomerOnly,
    JobHotStatusOnly,
    JobProviderOnly,
    MetaScheduledScheduledStatusOnly,
    TimeoutTooEarly
} from "./Errors.sol";
import {JobRefusedEvent} from "./Events.sol";
import {IProviderManager} from "./IProviderManager.sol";
import {JobStatus} from "./Types.sol";
import {CutChanges} from "./base/CutChanges.sol";
import {Endings} from "./base/Endings.sol";
import {JobViews} from "./base/JobViews.sol";
import {ProviderQueues} from "./base/ProviderQueues.sol";
import {Standings} from "./base/Standings.sol";
import {TopUps} from "./base/TopUps.sol";
import {IdList} from "./libraries/IdList.sol";
import {JobWord} from "./libraries/JobWord.sol";
import {States} from "./libraries/States.sol";

/// The calls that a usual job does not need, and the views. The MetaScheduler hands over here what it does not do
/// itself, since both together are longer than one contract may be. This code then works on the storage of the
/// MetaScheduler: none of the two has a variable of its own, all are in the base contracts, which are the same. Called
/// directly it has no jobs, no roles and no credits.
contract RareCalls is TopUps, CutChanges, ProviderQueues, Standings, JobViews {
    using IdList for IdList.List;

    /// After bought time and this much more, a customer may take a job back from a provider that vanished.
    uint256 public constant TIMEOUT_GRACE = 1 days;

    constructor(IERC20 credit_, IProviderManager providerManager_) Endings(credit_, providerManager_) {}

    // ---------------------------------------------------------------- where clients find the rest

    /// The job repository: this contract.
    function jobs() external view returns (address) {
        return address(this);
    }

    /// The queues of the providers: this contract.
    function providerJobQueues() external view returns (address) {
        return address(this);
    }

    /// The constants of the grid: this contract.
    function constants() external view returns (address) {
        return address(this);
    }

    /// Opens or closes the door for new jobs; those that exist go on.
    function setEnableRequestNewJob(bool enabled) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _closed = !enabled;
    }

    /// Cancels a job. Before its claim: at once, with a full refund. From then on it is a request to the provider,
    /// which also ends the spending authority; when it stays unanswered for `claimJobTimeout`, a further call
    /// closes the job with a full refund. A further call before that changes nothing: the provider is told once.
    function cancelJob(bytes32 jobId) external {
        JobWord word = _word(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer) revert CustomerOnly(msg.sender, deal.customer);
        JobStatus status = word.status();
        if (!States.isHot(status)) revert JobHotStatusOnly(status);
        if (!States.isClaimed(status)) return _end(jobId, word, deal, JobStatus.CANCELLED, 0);
        if (!word.cancelRequested()) {
            _extras[jobId].cancelRequestedAt = uint40(block.timestamp);
            _words[jobId] = word.withExtra().withCancelRequest().withDelegateSpending(false);
            _cancelling[deal.provider].push(uint64(uint256(jobId)));
        } else if (block.timestamp >= _extras[jobId].cancelRequestedAt + _claimTimeout()) {
            ++_faults[deal.provider].timedOut;
            _end(jobId, word, deal, JobStatus.CANCELLED, 0);
        }
    }

    // ---------------------------------------------------------------- meta-scheduler

    /// Ends a hot job with a full refund, whatever ran.
    function panicJob(bytes32 jobId, string calldata lastError) external onlyRole(METASCHEDULER_ROLE) {
        JobWord word = _noteError(jobId, _word(jobId), bytes(lastError));
        _panic(jobId, word, _dealOf(jobId, word));
    }

    /// Takes a job from a provider that does not act. META_SCHEDULED: by anyone, after `claimJobTimeout`. Claimed:
    /// by the meta-scheduler when the provider is banned or silent, by the customer when bought time and a long
    /// grace have passed. A job that was RUNNING ends PANICKED, another one is PENDING again.
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

    /// Whether `claimNextJob` has something for this provider.
    function hasNextClaimableJob(address provider) external view override returns (bool) {
        return _lines[provider].valid() && _lines[provider].claimable() != 0;
    }

    /// Gives an assigned or claimed job back, at no cost; it is PENDING again, or CANCELLED if that was asked for.
    function refuseJob(bytes32 jobId) external {
        JobWord word = _word(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.provider) revert JobProviderOnly(msg.sender, deal.provider);
        JobStatus status = word.status();
        if (status != JobStatus.META_SCHEDULED && status != JobStatus.SCHEDULED) {
            revert MetaScheduledScheduledStatusOnly(status);
        }
        if (!word.cancelRequested()) ++_faults[msg.sender].refused;
        _giveBack(jobId, word, deal);
    }

    // ---------------------------------------------------------------- how jobs return

    /// Back to PENDING, free of its provider and terms; unless the customer asked for its end anyway.
    function _giveBack(bytes32 jobId, JobWord word, Deal memory deal) private {
        if (word.cancelRequested()) return _end(jobId, word, deal, JobStatus.CANCELLED, 0);
        _leave(deal.provider, jobId, word);
        _words[jobId] = _moved(jobId, word, JobStatus.PENDING).released().withExtra();
        _extras[jobId].lastRefuser = deal.provider;
        emit JobRefusedEvent(jobId, deal.provider, deal.customer);
    }

    /// From when the caller may time this job out. Reverts if the caller never may.
    function _mayTimeOutFrom(bytes32 jobId, JobWord word, Deal memory deal) private view returns (uint256) {
        if (word.status() == JobStatus.META_SCHEDULED) return word.assignedAt() + _claimTimeout();
        uint256 since = word.started() ? word.startedAt() : word.claimedAt();
        uint256 boughtUntil = since + uint256(_limitMinutes(deal)) * 1 minutes;
        if (msg.sender == deal.customer) return boughtUntil + TIMEOUT_GRACE;
        _checkRole(METASCHEDULER_ROLE);
        if (!_lines[deal.provider].valid()) return 0;
        uint256 requested = _extras[jobId].cancelRequestedAt;
        uint256 silentFrom = word.cancelRequested() ? Math.min(requested, boughtUntil) : boughtUntil;
        return silentFrom + _claimTimeout();
    }
}
