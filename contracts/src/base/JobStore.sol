// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobCreated, JobTransitionEvent} from "../Events.sol";
import {InvalidJob} from "../Errors.sol";
import {JobStatus} from "../Types.sol";
import {Blob} from "../libraries/Blob.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord, JobWords} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Constants} from "./Constants.sol";

/// Keeps all jobs. A job is a record, which never changes and lies in a blob; a word, which is all that its usual life
/// changes; and an extra, which few jobs have.
abstract contract JobStore is Constants {
    // slot 0 | lastRefuser 160 | toppedUp 96 |                            wei
    // slot 1 | pendingTopUp 96 | cancelRequestedAt 40 | exitCode 64 |     wei
    // slot 2   lastError
    struct Extra {
        address lastRefuser;
        uint96 toppedUp;
        uint96 pendingTopUp;
        uint40 cancelRequestedAt;
        int64 exitCode;
        string lastError;
    }

    mapping(bytes32 jobId => JobWord) internal _words;
    mapping(bytes32 jobId => Extra) internal _extras;
    // eight ids a slot
    mapping(address customer => uint32[]) internal _idsOf;

    /// Keeps a record in a blob of its own, for the next job.
    function _createOne(bytes memory record, bool delegateSpending) internal returns (bytes32 jobId) {
        jobId = _create(++_lastBlob, JobRecord.HEADER, delegateSpending);
        Blob.write(bytes.concat(JobRecord.header(msg.sender), record));
    }

    /// Keeps many records in as few blobs as they need, for the next jobs in this order.
    function _createMany(bytes[] memory records, bool[] memory delegateSpending)
        internal
        returns (bytes32[] memory jobIds)
    {
        jobIds = new bytes32[](records.length);
        uint256 first;
        uint256 place = JobRecord.HEADER;
        uint256 blob = _lastBlob + 1;
        for (uint256 i; i < records.length; ++i) {
            if (place + records[i].length > Blob.LONGEST) {
                Blob.write(Blob.join(JobRecord.header(msg.sender), records, first, i));
                (first, place, blob) = (i, JobRecord.HEADER, blob + 1);
            }
            jobIds[i] = _create(blob, place, delegateSpending[i]);
            place += records[i].length;
        }
        _lastBlob = uint32(blob);
        Blob.write(Blob.join(JobRecord.header(msg.sender), records, first, records.length));
    }

    function _create(uint256 blob, uint256 place, bool delegateSpending) private returns (bytes32 jobId) {
        uint32 number = ++_lastJob;
        jobId = bytes32(uint256(number));
        _words[jobId] = JobWords.create(blob, place, delegateSpending);
        _idsOf[msg.sender].push(number);
        emit JobCreated(jobId);
    }

    /// The job's word; reverts with InvalidJob when there is no such job.
    function _word(bytes32 jobId) internal view returns (JobWord word) {
        word = _words[jobId];
        if (!word.exists()) revert InvalidJob();
    }

    /// The word of the job along an edge of the state machine; the caller stores it. No job moves but by this.
    function _moved(bytes32 jobId, JobWord word, JobStatus to) internal returns (JobWord) {
        JobStatus from = word.status();
        States.check(from, to);
        emit JobTransitionEvent(jobId, from, to);
        return word.moved(to);
    }

    function _blobOf(JobWord word) internal view returns (address) {
        return Blob.addressOf(address(this), word.blob());
    }

    function _customerOf(JobWord word) internal view returns (address) {
        return JobRecord.customerOf(_blobOf(word));
    }

    function _coreOf(JobWord word) internal view returns (JobRecord.Core memory) {
        return JobRecord.core(_blobOf(word), word.position());
    }

    /// What the job holds locked, in wei.
    function _lockedOf(bytes32 jobId, JobWord word, uint256 deposit) internal view returns (uint256) {
        return word.hasExtra() ? deposit + _extras[jobId].toppedUp : deposit;
    }
}
