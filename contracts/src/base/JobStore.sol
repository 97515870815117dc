// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobCreated, JobTransitionEvent} from "../Events.sol";
import {InvalidJob, JobHotStatusOnly} from "../Errors.sol";
import {JobDefinition, JobRequest, JobStatus} from "../Types.sol";
import {Blob, Pen, Pens} from "../libraries/Blob.sol";
import {IdRuns} from "../libraries/IdRuns.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord, JobWords} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {WishWord} from "../libraries/WishWord.sol";
import {Constants} from "./Constants.sol";

/// @notice Stores all jobs. A job is a record, a word and perhaps an extra. The record never changes and is in a
/// blob. The word is all that the usual life of a job changes. Few jobs have an extra.
abstract contract JobStore is Constants {
    // slot 0 | lastRefuser 160 | toppedUp 96 |                            wei
    // slot 1 | pendingTopUp 96 | cancelRequestedAt 40 | exitCode 64 |     wei
    // slot 2 | released 96 | spendable 96 | limited 8 |                    wei
    // slot 3   lastError
    struct Extra {
        address lastRefuser;
        uint96 toppedUp;
        uint96 pendingTopUp;
        uint40 cancelRequestedAt;
        int64 exitCode;
        uint96 released;
        uint96 spendable; // what automatic top-ups may still take, if it is `limited`
        bool limited; // until then they may take as much as the deposit
        string lastError;
    }

    mapping(bytes32 jobId => JobWord) internal _words;
    mapping(bytes32 jobId => Extra) internal _extras;
    /// The newest job ids of each customer.
    mapping(address customer => IdRuns) internal _idsOf;

    /// Stores one job of the caller in a blob of its own.
    function _createOne(
        JobDefinition calldata definition,
        uint256 deposit,
        bytes32 name,
        bool delegateSpending,
        WishWord wishes
    ) internal returns (bytes32 jobId) {
        (uint32 number, uint32 blob) = (_lastJob + 1, _lastBlob + 1);
        (_lastJob, _lastBlob) = (number, blob);
        (IdRuns full, bool isFull) = _list(number, 1, blob);
        Pen start = Pens.begin();
        Pen pen = _beginBlob(start, full, isFull);
        jobId = _create(number, blob, Blob.lengthOf(start, pen), delegateSpending);
        Blob.keep(start, JobRecord.put(pen, definition, deposit, name, wishes));
    }

    /// Stores many jobs of the caller, in this order, in as few blobs as they need. `wishes` is empty for none at all.
    function _createMany(JobRequest[] calldata requests, WishWord[] memory wishes)
        internal
        returns (bytes32[] memory jobIds)
    {
        jobIds = new bytes32[](requests.length);
        (uint32 number, uint32 blob) = (_lastJob, _lastBlob + 1);
        (IdRuns full, bool isFull) = _list(uint256(number) + 1, requests.length, blob);
        Pen start = Pens.begin();
        Pen pen = _beginBlob(start, full, isFull);
        for (uint256 i; i < requests.length; ++i) {
            JobRequest calldata request = requests[i];
            Pen before = pen;
            pen = _putRequest(before, request, wishes.length == 0 ? WishWord.wrap(0) : wishes[i]);
            if (Blob.lengthOf(start, pen) > Blob.LONGEST) {
                (before, pen) = _nextBlob(start, before, pen);
                ++blob;
            }
            jobIds[i] = _create(++number, blob, Blob.lengthOf(start, before), request.delegateSpendingAuthority);
        }
        (_lastJob, _lastBlob) = (number, blob);
        Blob.keep(start, pen);
    }

    function _putRequest(Pen pen, JobRequest calldata request, WishWord wishes) private pure returns (Pen) {
        return JobRecord.put(pen, request.definition, request.lockedCredits, request.jobName, wishes);
    }

    /// Stores the blob from `start` to `last`. Begins another one at the same place, with the record that followed.
    function _nextBlob(Pen start, Pen last, Pen end) private returns (Pen first, Pen pen) {
        Blob.keep(start, last);
        first = Pen.wrap(Pen.unwrap(start) + Blob.MAKER_LENGTH + JobRecord.HEADER);
        pen = first.moveHere(last, end);
    }

    /// Begins a blob of the caller. It also gets the caller's older ids if their slot is full.
    function _beginBlob(Pen start, IdRuns older, bool withOlder) private view returns (Pen pen) {
        pen = JobRecord.putHeader(Blob.begin(start));
        if (withOlder) pen = pen.number(IdRuns.unwrap(older), 32);
    }

    /// Appends `count` ids from `first` on to the caller's ids. If their slot was `full`, its old content `before` must
    /// be stored in the blob with this number.
    function _list(uint256 first, uint256 count, uint256 blob) private returns (IdRuns before, bool full) {
        before = _idsOf[msg.sender];
        (_idsOf[msg.sender], full) = before.with(first, count, blob);
    }

    function _create(uint256 number, uint256 blob, uint256 place, bool delegateSpending)
        private
        returns (bytes32 jobId)
    {
        jobId = bytes32(number);
        _words[jobId] = JobWords.create(blob, place, delegateSpending);
        emit JobCreated(jobId);
    }

    /// The job's word. Reverts with InvalidJob if the job does not exist.
    function _word(bytes32 jobId) internal view returns (JobWord word) {
        word = _words[jobId];
        if (!word.exists()) revert InvalidJob();
    }

    /// The job's word. Reverts with JobHotStatusOnly if the job has ended.
    function _hotWord(bytes32 jobId) internal view returns (JobWord word) {
        word = _word(jobId);
        if (!States.isHot(word.status())) revert JobHotStatusOnly(word.status());
    }

    /// Moves the job along an edge of the state machine, after a check. The caller stores the word.
    function _moved(bytes32 jobId, JobWord word, JobStatus to) internal returns (JobWord) {
        States.check(word.status(), to);
        return _move(jobId, word, to);
    }

    /// Moves the job along an edge that the caller has checked. All changes of state pass here.
    function _move(bytes32 jobId, JobWord word, JobStatus to) internal returns (JobWord) {
        emit JobTransitionEvent(jobId, word.status(), to);
        return word.moved(to);
    }

    /// Address of the blob with the job's record.
    function _blobOf(JobWord word) internal view returns (address) {
        return Blob.addressOf(address(this), word.blob());
    }

    /// The job's customer.
    function _customerOf(JobWord word) internal view returns (address customer) {
        (customer,) = JobRecord.headerOf(_blobOf(word));
    }

    /// The numbers of the job's record.
    function _coreOf(JobWord word) internal view returns (JobRecord.Core memory) {
        return JobRecord.core(_blobOf(word), word.position());
    }

    /// The job's wishes; 0 for none.
    function _wishesOf(JobWord word) internal view returns (WishWord) {
        return _coreOf(word).wishes;
    }

    /// What automatic top-ups may still take, if the job has spending authority.
    function _spendable(bytes32 jobId, JobWord word) internal view returns (uint256) {
        Extra storage extra = _extras[jobId];
        return word.hasExtra() && extra.limited ? extra.spendable : _coreOf(word).deposit;
    }

    /// The wei that the job holds: its deposit with its top-ups, without the amount released to its customer.
    function _lockedOf(bytes32 jobId, JobWord word, uint256 deposit) internal view returns (uint256) {
        if (!word.hasExtra()) return deposit;
        Extra storage extra = _extras[jobId];
        return deposit + extra.toppedUp - extra.released;
    }
}
