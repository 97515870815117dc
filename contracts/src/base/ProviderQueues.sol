// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {NoJob, ProviderNotJoined} from "../Errors.sol";
import {ClaimNextCancellingJobEvent, ClaimNextTopUpJobEvent} from "../Events.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {IdList} from "../libraries/IdList.sol";
import {Lines} from "./Lines.sol";

/// @notice The three queues of a provider: new jobs, cancel requests and top-ups. The last two are hints. Each holds a
/// job once, and the job itself is the truth.
abstract contract ProviderQueues is Lines, IRareCalls {
    using IdList for IdList.List;

    /// @inheritdoc IRareCalls
    function claimNextCancellingJob() external {
        bytes32 jobId = _pop(_cancelling[msg.sender]);
        emit ClaimNextCancellingJobEvent(_customerOf(_word(jobId)), msg.sender, jobId);
    }

    /// @inheritdoc IRareCalls
    function claimNextTopUpJob() external {
        bytes32 jobId = _pop(_toppedUp[msg.sender]);
        Deal memory deal = _dealOf(jobId, _word(jobId));
        uint64 limit = _limitMinutes(deal);
        deal.locked -= _extras[jobId].pendingTopUp;
        _extras[jobId].pendingTopUp = 0;
        emit ClaimNextTopUpJobEvent(jobId, msg.sender, limit - _limitMinutes(deal));
    }

    /// @inheritdoc IRareCalls
    function hasCancellingJob(address provider) external view returns (bool) {
        return _cancelling[provider].size != 0;
    }

    /// @inheritdoc IRareCalls
    function hasTopUpJob(address provider) external view returns (bool) {
        return _toppedUp[provider].size != 0;
    }

    /// @inheritdoc IRareCalls
    function getClaimableJobQueueSize(address provider) external view returns (uint256) {
        return _lines[provider].claimable();
    }

    /// @inheritdoc IRareCalls
    function getCancellingJobQueueSize(address provider) external view returns (uint256) {
        return _cancelling[provider].size;
    }

    /// @inheritdoc IRareCalls
    function getTopUpJobQueueSize(address provider) external view returns (uint256) {
        return _toppedUp[provider].size;
    }

    /// @inheritdoc IRareCalls
    function providerClaimableJobsQueues(address provider) external view returns (int128, int128) {
        return (0, _asEnd(_lines[provider].claimable()));
    }

    /// @inheritdoc IRareCalls
    function providerCancellingJobsQueues(address provider) external view returns (int128, int128) {
        return (0, _asEnd(_cancelling[provider].size));
    }

    /// @inheritdoc IRareCalls
    function providerTopUpJobsQueues(address provider) external view returns (int128, int128) {
        return (0, _asEnd(_toppedUp[provider].size));
    }

    /// End of a queue with this size that begins at 0.
    function _asEnd(uint256 size) private pure returns (int128) {
        return int128(uint128(size));
    }

    /// Takes the oldest job off a queue. If it is empty, reverts with NoJob for a provider, ProviderNotJoined for others.
    function _pop(IdList.List storage queue) private returns (bytes32 jobId) {
        if (queue.size == 0) {
            if (!_lines[msg.sender].valid()) revert ProviderNotJoined();
            revert NoJob();
        }
        jobId = _toId(queue.head);
        queue.remove(queue.head);
    }
}
