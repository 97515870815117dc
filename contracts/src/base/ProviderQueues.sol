// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {NoJob} from "../Errors.sol";
import {ClaimNextCancellingJobEvent, ClaimNextTopUpJobEvent} from "../Events.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {Lines} from "./Lines.sol";

/// The three queues by which a provider learns of new jobs, cancel requests and top-ups. The last two are hints:
/// each holds a job once, and what counts is the job itself.
abstract contract ProviderQueues is Lines {
    using IdList for IdList.List;

    /// Takes the caller's oldest cancel request off its queue and tells of it.
    function claimNextCancellingJob() external {
        bytes32 jobId = _pop(_cancelling[msg.sender]);
        emit ClaimNextCancellingJobEvent(_customerOf(_word(jobId)), msg.sender, jobId);
    }

    /// Takes the caller's oldest top-up off its queue and tells the job's whole limit now.
    function claimNextTopUpJob() external {
        bytes32 jobId = _pop(_toppedUp[msg.sender]);
        JobWord word = _word(jobId);
        _extras[jobId].pendingTopUp = 0;
        emit ClaimNextTopUpJobEvent(jobId, msg.sender, _limitMinutes(_dealOf(jobId, word)));
    }

    /// Whether `claimNextJob` has something for this provider.
    function hasNextClaimableJob(address provider) external view virtual returns (bool);

    /// Whether `claimNextCancellingJob` has something for this provider.
    function hasCancellingJob(address provider) external view returns (bool) {
        return _cancelling[provider].size != 0;
    }

    /// Whether `claimNextTopUpJob` has something for this provider.
    function hasTopUpJob(address provider) external view returns (bool) {
        return _toppedUp[provider].size != 0;
    }

    /// How many jobs the provider can claim.
    function getClaimableJobQueueSize(address provider) external view returns (uint256) {
        return _lines[provider].claimable();
    }

    /// Of how many cancel requests the provider has not been told.
    function getCancellingJobQueueSize(address provider) external view returns (uint256) {
        return _cancelling[provider].size;
    }

    /// Of how many jobs with top-ups the provider has not been told.
    function getTopUpJobQueueSize(address provider) external view returns (uint256) {
        return _toppedUp[provider].size;
    }

    function _pop(IdList.List storage queue) private returns (bytes32 jobId) {
        if (queue.size == 0) revert NoJob();
        jobId = _toId(queue.head);
        queue.remove(queue.head);
    }
}
