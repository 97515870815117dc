// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {
    CancelRequested,
    CustomerMetaSchedulerProviderOnly,
    InsufficientFunds,
    NoSpendingAuthority,
    RemainingTimeAboveLimit,
    RunningScheduledStatusOnly,
    SpendingLimitReached
} from "../Errors.sol";
import {IUsualCalls} from "../interfaces/IUsualCalls.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Endings} from "./Endings.sol";

/// @notice More credits for a claimed job, by hand or automatically. A top-up never lowers the job's limit.
abstract contract TopUps is Endings, IUsualCalls {
    using IdList for IdList.List;

    /// @inheritdoc IUsualCalls
    function topUpJob(bytes32 jobId, uint256 amount) external {
        JobWord word = _word(jobId);
        if (!States.isClaimed(word.status())) revert RunningScheduledStatusOnly(word.status());
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer && amount < deal.rate) revert InsufficientFunds(amount, deal.rate);
        _topUp(jobId, word, deal, msg.sender, amount);
    }

    /// @inheritdoc IUsualCalls
    function topUpJobDelegate(bytes32 jobId) external {
        JobWord word = _word(jobId);
        Deal memory deal = _dealOf(jobId, word);
        if (msg.sender != deal.customer && msg.sender != deal.provider && !hasRole(METASCHEDULER_ROLE, msg.sender)) {
            revert CustomerMetaSchedulerProviderOnly();
        }
        if (!word.delegateSpending()) revert NoSpendingAuthority();
        if (!States.isClaimed(word.status())) revert RunningScheduledStatusOnly(word.status());
        uint256 slice = _topUpSliceDurationMin;
        _checkWindow(word, deal, Math.min(slice, TOP_UP_WINDOW));
        uint256 most = _spendable(jobId, word);
        if (most < deal.rate) revert SpendingLimitReached(most, deal.rate);
        uint256 amount = Math.min(slice * deal.rate, most);
        (_extras[jobId].spendable, _extras[jobId].limited) = (uint96(most - amount), true);
        _topUp(jobId, word, deal, deal.customer, amount);
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

    /// Reverts unless the bought time ends within `window` minutes. Only full minutes since the start count as used.
    function _checkWindow(JobWord word, Deal memory deal, uint256 window) private view {
        uint256 bought = _limitMinutes(deal);
        bool runs = word.started() && block.timestamp >= word.startedAt();
        uint256 used = runs ? (block.timestamp - word.startedAt()) / 1 minutes : 0;
        if (used > bought) revert RemainingTimeAboveLimit(0, window);
        if (bought - used > window) revert RemainingTimeAboveLimit(bought - used, window);
    }
}
