// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Bits} from "./Bits.sol";

// A provider's line of jobs and its standing. Most calls need both, so they share one slot. From bit 0:
//
// | first 32 | last 32 | nextToClaim 32 | claimable 32 | claimed 32 | terms 24 | raisedAt 32 | valid 8 | started 32 |
//
// * first, last            the ends of the line; 0 when it is empty
// * nextToClaim            the mark: the first job that is not claimed; 0 for none
// * claimable, claimed     number of jobs behind and before the mark
// * terms                  number of the terms of the next assignment
// * raisedAt               time of its first approval, or of the last one that raised a price
// * valid                  whether jobs may be assigned to this provider and claimed by it
// * started                number of jobs that it started so far
type LineWord is uint256;

using LineWords for LineWord global;

/// @notice Reads the fields of a LineWord, and makes changed copies.
library LineWords {
    // Where each field begins.
    uint256 private constant FIRST = 0;
    uint256 private constant LAST = 32;
    uint256 private constant NEXT_TO_CLAIM = 64;
    uint256 private constant CLAIMABLE = 96;
    uint256 private constant CLAIMED = 128;
    uint256 private constant TERMS = 160;
    uint256 private constant RAISED_AT = 184;
    uint256 private constant VALID = 216;
    uint256 private constant STARTED = 224;

    // ---------------------------------------------------------------- fields

    /// The job at the head of the line; 0 for none.
    function first(LineWord line) internal pure returns (uint256) {
        return _get(line, FIRST, 32);
    }

    /// The job at the end of the line; 0 for none.
    function last(LineWord line) internal pure returns (uint256) {
        return _get(line, LAST, 32);
    }

    /// The job that is claimed next; 0 for none.
    function nextToClaim(LineWord line) internal pure returns (uint256) {
        return _get(line, NEXT_TO_CLAIM, 32);
    }

    /// Number of jobs that wait for their claim.
    function claimable(LineWord line) internal pure returns (uint256) {
        return _get(line, CLAIMABLE, 32);
    }

    /// Number of claimed jobs that have not ended.
    function claimed(LineWord line) internal pure returns (uint256) {
        return _get(line, CLAIMED, 32);
    }

    /// Number of the terms of the next assignment; 0 before the provider's first approval.
    function terms(LineWord line) internal pure returns (uint256) {
        return _get(line, TERMS, 24);
    }

    /// Time of its first approval, or of the last one that raised a price.
    function raisedAt(LineWord line) internal pure returns (uint256) {
        return _get(line, RAISED_AT, 32);
    }

    /// Whether the provider is approved and not banned.
    function valid(LineWord line) internal pure returns (bool) {
        return _get(line, VALID, 8) != 0;
    }

    /// Number of jobs that the provider started so far.
    function started(LineWord line) internal pure returns (uint256) {
        return _get(line, STARTED, 32);
    }

    // ---------------------------------------------------------------- changed copies

    /// With another job at its head.
    function withFirst(LineWord line, uint256 id) internal pure returns (LineWord) {
        return _set(line, FIRST, 32, id);
    }

    /// With another job at its end.
    function withLast(LineWord line, uint256 id) internal pure returns (LineWord) {
        return _set(line, LAST, 32, id);
    }

    /// With the mark at another job.
    function withNextToClaim(LineWord line, uint256 id) internal pure returns (LineWord) {
        return _set(line, NEXT_TO_CLAIM, 32, id);
    }

    /// With another number of jobs behind the mark.
    function withClaimable(LineWord line, uint256 count) internal pure returns (LineWord) {
        return _set(line, CLAIMABLE, 32, count);
    }

    /// With another number of jobs before the mark.
    function withClaimed(LineWord line, uint256 count) internal pure returns (LineWord) {
        return _set(line, CLAIMED, 32, count);
    }

    /// With other terms for the next assignments.
    function withTerms(LineWord line, uint256 number) internal pure returns (LineWord) {
        return _set(line, TERMS, 24, number);
    }

    /// With prices that were raised now.
    function withRaise(LineWord line) internal view returns (LineWord) {
        return _set(line, RAISED_AT, 32, block.timestamp);
    }

    /// Open or closed for jobs.
    function withValid(LineWord line, bool valid_) internal pure returns (LineWord) {
        return _set(line, VALID, 8, valid_ ? 1 : 0);
    }

    /// With one more job started.
    function withOneMoreStarted(LineWord line) internal pure returns (LineWord) {
        return _set(line, STARTED, 32, started(line) + 1);
    }

    function _get(LineWord line, uint256 from, uint256 width) private pure returns (uint256) {
        return Bits.get(LineWord.unwrap(line), from, width);
    }

    function _set(LineWord line, uint256 from, uint256 width, uint256 value) private pure returns (LineWord) {
        return LineWord.wrap(Bits.set(LineWord.unwrap(line), from, width, value));
    }
}
