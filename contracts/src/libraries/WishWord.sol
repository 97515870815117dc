// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GiveUpTooSoon, InsufficientFunds, JobGivenUp, NoEarlierJob, RateAboveCeiling} from "../Errors.sol";
import {Wishes} from "../Types.sol";
import {Blob} from "./Blob.sol";

// The wishes of a job, in the bytes that its record ends with. From bit 0:
//
// | prefer 8 | giveUpAt 40 | minMinutes 32 | maxRatePerMinute 96 | afterJob 32 | afterAny 8 |
//
// 0 means no wishes: such a record ends without them. The last two fields are only in the records of jobs that wait for
// another job.
type WishWord is uint256;

using WishWords for WishWord global;

/// @notice Makes and reads a WishWord, and applies it to an assignment.
library WishWords {
    /// Bytes of the word in a record, without and with the job that it waits for.
    uint256 internal constant WIDTH = 22;
    uint256 internal constant LONG_WIDTH = 27;

    /// A job is pending at least this long before anyone may give it up. So its deposit is bound for a while.
    uint256 internal constant LEAST_WAIT = 5 minutes;

    uint256 private constant GIVE_UP_AT = 8;
    uint256 private constant MIN_MINUTES = 48;
    uint256 private constant MAX_RATE = 80;
    uint256 private constant AFTER_JOB = 176;
    uint256 private constant AFTER_ANY = 208;

    /// These wishes of a new job as a word. Reverts with GiveUpTooSoon, and with NoEarlierJob if the job to wait for is not
    /// one of the `lastJob` jobs so far.
    function wordOf(Wishes calldata asked, uint256 lastJob) internal view returns (WishWord) {
        uint256 earliest = block.timestamp + LEAST_WAIT;
        if (asked.giveUpAt != 0 && asked.giveUpAt < earliest) revert GiveUpTooSoon(asked.giveUpAt, earliest);
        if (asked.afterJob > lastJob) revert NoEarlierJob(asked.afterJob);
        uint256 chain = uint256(asked.afterJob) << AFTER_JOB;
        if (chain != 0 && asked.afterAny) chain |= 1 << AFTER_ANY;
        return WishWord.wrap(
            chain | uint256(asked.maxRatePerMinute) << MAX_RATE | uint256(asked.minMinutes) << MIN_MINUTES
                | uint256(asked.giveUpAt) << GIVE_UP_AT | asked.prefer
        );
    }

    /// The word of this width at this place of a blob.
    function read(address blob, uint256 place, uint256 width) internal view returns (WishWord) {
        (uint256 word,) = Blob.peek(blob, place);
        return WishWord.wrap(word >> 256 - 8 * width);
    }

    /// Bytes that the word needs in a record.
    function widthOf(WishWord word) internal pure returns (uint256) {
        return afterJob(word) == 0 ? WIDTH : LONG_WIDTH;
    }

    /// The word as clients read it.
    function asWishes(WishWord word) internal pure returns (Wishes memory) {
        uint256 bits = WishWord.unwrap(word);
        return Wishes(
            uint96(bits >> MAX_RATE),
            uint32(bits >> MIN_MINUTES),
            giveUpAt(word),
            uint8(bits),
            afterJob(word),
            afterAny(word)
        );
    }

    /// Time from which the job is given up; 0 for never.
    function giveUpAt(WishWord word) internal pure returns (uint40) {
        return uint40(WishWord.unwrap(word) >> GIVE_UP_AT);
    }

    /// Number of the job that must end first; 0 for none.
    function afterJob(WishWord word) internal pure returns (uint32) {
        return uint32(WishWord.unwrap(word) >> AFTER_JOB);
    }

    /// Whether any end of that job counts, not only FINISHED.
    function afterAny(WishWord word) internal pure returns (bool) {
        return WishWord.unwrap(word) >> AFTER_ANY != 0;
    }

    /// Highest rate that the customer accepts, in wei per minute; 0 for no such wish.
    function ceiling(WishWord word) internal pure returns (uint256) {
        return uint96(WishWord.unwrap(word) >> MAX_RATE);
    }

    /// The error for an assignment at this rate, with this deposit; empty if the wishes allow it.
    function refusal(WishWord word, uint256 rate, uint256 locked) internal view returns (bytes memory) {
        uint256 most = ceiling(word);
        if (most != 0 && rate > most) return abi.encodeWithSelector(RateAboveCeiling.selector, rate, most);
        uint256 required = rate * uint32(WishWord.unwrap(word) >> MIN_MINUTES);
        if (locked < required) return abi.encodeWithSelector(InsufficientFunds.selector, locked, required);
        uint256 end = giveUpAt(word);
        if (end != 0 && block.timestamp >= end) return abi.encodeWithSelector(JobGivenUp.selector, end);
        return "";
    }
}
