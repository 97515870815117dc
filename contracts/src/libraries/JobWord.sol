// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "../Types.sol";
import {Bits} from "./Bits.sol";

// Everything that changes in the usual life of a job, in one slot. A word of 0 means that the job does not exist.
// From bit 0:
//
// | status 4 | phase 2 | cancelRequested 1 | delegateSpending 1 | hasExtra 1 | position 15 | blob 32 | terms 24 |
// | changedInBlock 32 | since 32 | assignedFor 24 | waitedFor 24 | next 32 | previous 32 |
//
// * blob, position    where its definition and deposit lie: the number of the blob, the byte in it
// * changedInBlock    number of the block of its last change of state; a block above 2^32 - 1 counts as that
// * terms             number of the terms with its provider, prices and cut; 0 while it has no provider
// * phase             how far it came, which the status of a cold job does not say
// * since             META_SCHEDULED: time of its assignment; from its claim on: time of its claim
// * assignedFor       seconds from the assignment to the claim, at most 194 days
// * waitedFor         seconds from the claim to the start, at most 194 days; before its claim, minutes that it may run
// * next, previous    hot: its neighbours in its provider's line; cold: time of its end, and billed minutes
type JobWord is uint256;

using JobWords for JobWord global;

/// @notice Reads the fields of a JobWord, and makes changed copies. Times are unix seconds of 32 bits, until 2106.
library JobWords {
    // How far a job came.
    uint256 internal constant ASSIGNED = 1;
    uint256 internal constant CLAIMED = 2;
    uint256 internal constant STARTED = 3;

    uint256 private constant LONGEST_DELAY = type(uint24).max;
    uint256 private constant HIGHEST_BLOCK = type(uint32).max;

    // Where each field begins.
    uint256 private constant PHASE = 4;
    uint256 private constant CANCEL_REQUESTED = 6;
    uint256 private constant DELEGATE_SPENDING = 7;
    uint256 private constant HAS_EXTRA = 8;
    uint256 private constant POSITION = 9;
    uint256 private constant BLOB = 24;
    uint256 private constant TERMS = 56;
    uint256 private constant CHANGED_IN_BLOCK = 80;
    uint256 private constant SINCE = 112;
    uint256 private constant ASSIGNED_FOR = 144;
    uint256 private constant WAITED_FOR = 168;
    uint256 private constant NEXT = 192;
    uint256 private constant PREVIOUS = 224;

    /// A new job, PENDING.
    function create(uint256 blob_, uint256 position_, bool delegateSpending_) internal view returns (JobWord) {
        uint256 word = blob_ << BLOB | position_ << POSITION | _height() << CHANGED_IN_BLOCK;
        return JobWord.wrap(delegateSpending_ ? word | 1 << DELEGATE_SPENDING : word);
    }

    // ---------------------------------------------------------------- fields

    function exists(JobWord word) internal pure returns (bool) {
        return JobWord.unwrap(word) != 0;
    }

    function status(JobWord word) internal pure returns (JobStatus) {
        return JobStatus(JobWord.unwrap(word) & 15);
    }

    function cancelRequested(JobWord word) internal pure returns (bool) {
        return _get(word, CANCEL_REQUESTED, 1) != 0;
    }

    function delegateSpending(JobWord word) internal pure returns (bool) {
        return _get(word, DELEGATE_SPENDING, 1) != 0;
    }

    function hasExtra(JobWord word) internal pure returns (bool) {
        return _get(word, HAS_EXTRA, 1) != 0;
    }

    function position(JobWord word) internal pure returns (uint256) {
        return _get(word, POSITION, 15);
    }

    function blob(JobWord word) internal pure returns (uint256) {
        return _get(word, BLOB, 32);
    }

    function terms(JobWord word) internal pure returns (uint256) {
        return _get(word, TERMS, 24);
    }

    function changedInBlock(JobWord word) internal pure returns (uint256) {
        return _get(word, CHANGED_IN_BLOCK, 32);
    }

    function started(JobWord word) internal pure returns (bool) {
        return _get(word, PHASE, 2) == STARTED;
    }

    /// Time of its assignment; 0 while it is not assigned.
    function assignedAt(JobWord word) internal pure returns (uint256) {
        return _get(word, SINCE, 32) - _get(word, ASSIGNED_FOR, 24);
    }

    /// Time of its claim; 0 while it is not claimed.
    function claimedAt(JobWord word) internal pure returns (uint256) {
        return _get(word, PHASE, 2) < CLAIMED ? 0 : _get(word, SINCE, 32);
    }

    /// Time of its start; 0 while it has not started.
    function startedAt(JobWord word) internal pure returns (uint256) {
        return started(word) ? mayRunSince(word) : 0;
    }

    /// Earliest time at which it can have started: the time of its start, or of its claim before that. Only valid for a
    /// claimed job.
    function mayRunSince(JobWord word) internal pure returns (uint256) {
        return _get(word, SINCE, 32) + _get(word, WAITED_FOR, 24);
    }

    /// Minutes that it may run. Only valid for a META_SCHEDULED job.
    function limitMinutes(JobWord word) internal pure returns (uint256) {
        return _get(word, WAITED_FOR, 24);
    }

    /// The job behind it in its provider's line; 0 for none. Only valid for a hot job.
    function next(JobWord word) internal pure returns (uint256) {
        return _get(word, NEXT, 32);
    }

    /// The job before it in its provider's line; 0 for none. Only valid for a hot job.
    function previous(JobWord word) internal pure returns (uint256) {
        return _get(word, PREVIOUS, 32);
    }

    /// Time of its end. Only valid for a cold job.
    function endedAt(JobWord word) internal pure returns (uint256) {
        return _get(word, NEXT, 32);
    }

    /// Minutes that were billed. Only valid for a cold job.
    function billedMinutes(JobWord word) internal pure returns (uint256) {
        return _get(word, PREVIOUS, 32);
    }

    // ---------------------------------------------------------------- changed copies

    /// In another state from this block on.
    function moved(JobWord word, JobStatus to) internal view returns (JobWord) {
        word = _set(word, CHANGED_IN_BLOCK, 32, _height());
        return JobWord.wrap(JobWord.unwrap(word) & ~uint256(15) | uint256(to));
    }

    function withCancelRequest(JobWord word) internal pure returns (JobWord) {
        return _set(word, CANCEL_REQUESTED, 1, 1);
    }

    function withDelegateSpending(JobWord word, bool allowed) internal pure returns (JobWord) {
        return _set(word, DELEGATE_SPENDING, 1, allowed ? 1 : 0);
    }

    function withExtra(JobWord word) internal pure returns (JobWord) {
        return _set(word, HAS_EXTRA, 1, 1);
    }

    function withNext(JobWord word, uint256 id) internal pure returns (JobWord) {
        return _set(word, NEXT, 32, id);
    }

    function withPrevious(JobWord word, uint256 id) internal pure returns (JobWord) {
        return _set(word, PREVIOUS, 32, id);
    }

    /// Assigned now, under terms with which it may run `limitMinutes_`.
    function assigned(JobWord word, uint256 terms_, uint256 limitMinutes_) internal view returns (JobWord) {
        word = _set(_set(word, TERMS, 24, terms_), WAITED_FOR, 24, limitMinutes_);
        return _set(_set(word, SINCE, 32, block.timestamp), PHASE, 2, ASSIGNED);
    }

    /// Claimed now.
    function claimed(JobWord word) internal view returns (JobWord) {
        uint256 wasAssignedFor = _delay(_get(word, SINCE, 32), block.timestamp);
        word = _set(_set(word, ASSIGNED_FOR, 24, wasAssignedFor), WAITED_FOR, 24, 0);
        return _set(_set(word, SINCE, 32, block.timestamp), PHASE, 2, CLAIMED);
    }

    /// Started at `time`, but not before its claim.
    function startedFrom(JobWord word, uint256 time) internal pure returns (JobWord) {
        return _set(_set(word, WAITED_FOR, 24, _delay(_get(word, SINCE, 32), time)), PHASE, 2, STARTED);
    }

    /// Without provider, terms, phase and times.
    function released(JobWord word) internal pure returns (JobWord) {
        word = _set(_set(word, TERMS, 24, 0), PHASE, 2, 0);
        uint256 kept = JobWord.unwrap(word) & (1 << SINCE) - 1;
        return JobWord.wrap(kept);
    }

    /// Ended now, outside of its provider's line.
    function ended(JobWord word, uint256 billedMinutes_) internal view returns (JobWord) {
        return _set(_set(word, NEXT, 32, block.timestamp), PREVIOUS, 32, billedMinutes_);
    }

    /// Number of this block, at most HIGHEST_BLOCK.
    function _height() private view returns (uint256) {
        return block.number < HIGHEST_BLOCK ? block.number : HIGHEST_BLOCK;
    }

    /// Seconds between two times, at most LONGEST_DELAY.
    function _delay(uint256 from, uint256 to) private pure returns (uint256) {
        if (to <= from) return 0;
        return to - from < LONGEST_DELAY ? to - from : LONGEST_DELAY;
    }

    function _get(JobWord word, uint256 from, uint256 bits) private pure returns (uint256) {
        return Bits.get(JobWord.unwrap(word), from, bits);
    }

    function _set(JobWord word, uint256 from, uint256 bits, uint256 value) private pure returns (JobWord) {
        return JobWord.wrap(Bits.set(JobWord.unwrap(word), from, bits, value));
    }
}
