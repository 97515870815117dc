// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GiveUpTooSoon, InsufficientFunds, JobGivenUp, RateAboveCeiling} from "../Errors.sol";
import {Wishes} from "../Types.sol";
import {Blob} from "./Blob.sol";

// The wishes of a job, in the bytes that its record ends with. From bit 0:
//
// | prefer 8 | giveUpAt 40 | minMinutes 32 | maxRatePerMinute 96 |
//
// 0 means no wishes: such a record ends without them.
type WishWord is uint256;

using WishWords for WishWord global;

/// @notice Makes and reads a WishWord, and applies it to an assignment.
library WishWords {
    /// Bytes of the word in a record.
    uint256 internal constant WIDTH = 22;

    /// A job is pending at least this long before anyone may give it up. So its deposit is bound for a while.
    uint256 internal constant LEAST_WAIT = 5 minutes;

    uint256 private constant GIVE_UP_AT = 8;
    uint256 private constant MIN_MINUTES = 48;
    uint256 private constant MAX_RATE = 80;

    /// These wishes of a new job as a word. Reverts with GiveUpTooSoon.
    function wordOf(Wishes calldata asked) internal view returns (WishWord) {
        uint256 earliest = block.timestamp + LEAST_WAIT;
        if (asked.giveUpAt != 0 && asked.giveUpAt < earliest) revert GiveUpTooSoon(asked.giveUpAt, earliest);
        return WishWord.wrap(
            uint256(asked.maxRatePerMinute) << MAX_RATE | uint256(asked.minMinutes) << MIN_MINUTES
                | uint256(asked.giveUpAt) << GIVE_UP_AT | asked.prefer
        );
    }

    /// The word at this place of a blob; 0 for none.
    function read(address blob, uint256 place) internal view returns (WishWord) {
        if (place == 0) return WishWord.wrap(0);
        (uint256 word,) = Blob.peek(blob, place);
        return WishWord.wrap(word >> 256 - 8 * WIDTH);
    }

    /// The word as clients read it.
    function asWishes(WishWord word) internal pure returns (Wishes memory) {
        uint256 bits = WishWord.unwrap(word);
        return Wishes(uint96(bits >> MAX_RATE), uint32(bits >> MIN_MINUTES), giveUpAt(word), uint8(bits));
    }

    /// Time from which the job is given up; 0 for never.
    function giveUpAt(WishWord word) internal pure returns (uint40) {
        return uint40(WishWord.unwrap(word) >> GIVE_UP_AT);
    }

    /// The error for an assignment at this rate, with this deposit; empty if the wishes allow it.
    function refusal(WishWord word, uint256 rate, uint256 locked) internal view returns (bytes memory) {
        uint256 ceiling = WishWord.unwrap(word) >> MAX_RATE;
        if (ceiling != 0 && rate > ceiling) return abi.encodeWithSelector(RateAboveCeiling.selector, rate, ceiling);
        uint256 required = rate * uint32(WishWord.unwrap(word) >> MIN_MINUTES);
        if (locked < required) return abi.encodeWithSelector(InsufficientFunds.selector, locked, required);
        uint256 end = giveUpAt(word);
        if (end != 0 && block.timestamp >= end) return abi.encodeWithSelector(JobGivenUp.selector, end);
        return "";
    }
}
