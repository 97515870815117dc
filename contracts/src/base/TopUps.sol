// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    CancelRequested,
    CustomerMetaSchedulerProviderOnly,
    CustomerOnly,
    InsufficientFunds,
    NoSpendingAuthority,
    RemainingTimeAboveLimit,
    RunningScheduledStatusOnly
} from "../Errors.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Endings} from "./Endings.sol";

/// @notice More credits for a claimed job, by hand or automatically. A top-up never lowers the job's limit.
abstract contract TopUps is Endings, IRareCalls {
    using IdList for IdList.List;

    /// @inheritdoc IRareCalls
    function topUpJob(bytes32 jobId, uint256 amount) external {
        JobWord word = _word(jobId);
        if (!States.isClaimed(word.status())) revert RunningScheduledStatusOnly(word.status());
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer && amount < deal.rate) revert InsufficientFunds(amount, deal.rate);
        _topUp(jobId, word, deal, msg.sender, amount);
    }

    /// @inheritdoc IRareCalls
    function topUpJobDelegate(bytes32 jobId) external {
        JobWord word = _word(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer && msg.sender != deal.provider && !hasRole(METASCHEDULER_ROLE, msg.sender)) {
            revert CustomerMetaSchedulerProviderOnly();
        }
        if (!word.delegateSpending()) revert NoSpendingAuthority();
        if (!States.isClaimed(word.status())) revert RunningScheduledStatusOnly(word.status());
        uint256 slice = _topUpSliceDurationMin;
        uint256 remaining = _remainingMinutes(word, deal);
        if (remaining > slice) revert RemainingTimeAboveLimit(remaining, slice);
        _topUp(jobId, word, deal, deal.customer, slice * deal.rate);
    }

    /// @inheritdoc IRareCalls
    function setDelegateSpendingAuthority(bytes32 jobId, bool delegateSpendingAuthority) external {
        JobWord word = _hotWord(jobId);
        address customer = _customerOf(word);
        if (msg.sender != customer) revert CustomerOnly(msg.sender, customer);
        _words[jobId] = word.withDelegateSpending(delegateSpendingAuthority);
    }

    /// Books and takes a top-up. Queues a hint only if the job may run longer, so each hint costs at least a minute.
    function _topUp(bytes32 jobId, JobWord word, Deal memory deal, address payer, uint256 amount) private {
        if (word.cancelRequested()) revert CancelRequested();
        if (amount == 0) revert InsufficientFunds(0, 1);
        uint96 added = _lockable(deal.locked, amount);
        Extra storage extra = _extras[jobId];
        extra.toppedUp += added;
        extra.pendingTopUp += added;
        _words[jobId] = word.withExtra();
        uint64 limit = _limitMinutes(deal);
        deal.locked += added;
        if (_limitMinutes(deal) > limit) _toppedUp[deal.provider].push(uint64(uint256(jobId)));
        _lock(payer, amount);
    }

    /// Remaining minutes of the bought time. Only full minutes since the start count as used.
    function _remainingMinutes(JobWord word, Deal memory deal) private view returns (uint256) {
        uint256 bought = _limitMinutes(deal);
        if (!word.started() || block.timestamp < word.startedAt()) return bought;
        uint256 used = (block.timestamp - word.startedAt()) / 1 minutes;
        return used < bought ? bought - used : 0;
    }
}
