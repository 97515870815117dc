// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {NoJob} from "../Errors.sol";
import {ClaimNextCancellingJobEvent, ClaimNextTopUpJobEvent} from "../Events.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobStore} from "./JobStore.sol";

/// The three queues by which a provider learns of new jobs, cancel requests and top-ups. The last two are hints:
/// each holds a job once, and what counts is the job itself.
abstract contract ProviderQueues is JobStore {
    using IdList for IdList.List;

    /// Takes the caller's oldest cancel request off its queue and tells of it.
    function claimNextCancellingJob() external {
        bytes32 jobId = _pop(_cancelling[msg.sender]);
        emit ClaimNextCancellingJobEvent(_record(jobId).customer, msg.sender, jobId);
    }

    /// Takes the caller's oldest top-up off its queue and tells the job's whole limit now.
    function claimNextTopUpJob() external {
        bytes32 jobId = _pop(_toppedUp[msg.sender]);
        Record storage record = _record(jobId);
        record.pendingTopUp = 0;
        emit ClaimNextTopUpJobEvent(jobId, msg.sender, _limitMinutes(record));
    }

    /// Whether `claimNextJob` has something for this provider.
    function hasNextClaimableJob(address provider) external view virtual returns (bool);

    function hasCancellingJob(address provider) external view returns (bool) {
        return _cancelling[provider].size != 0;
    }

    function hasTopUpJob(address provider) external view returns (bool) {
        return _toppedUp[provider].size != 0;
    }

    function getClaimableJobQueueSize(address provider) external view returns (uint256) {
        return _claimable[provider].size;
    }

    function getCancellingJobQueueSize(address provider) external view returns (uint256) {
        return _cancelling[provider].size;
    }

    function getTopUpJobQueueSize(address provider) external view returns (uint256) {
        return _toppedUp[provider].size;
    }

    function _first(IdList.List storage queue) internal view returns (bytes32) {
        if (queue.size == 0) revert NoJob();
        return _toId(queue.head);
    }

    function _pop(IdList.List storage queue) private returns (bytes32 jobId) {
        jobId = _first(queue);
        queue.remove(queue.head);
    }
}
