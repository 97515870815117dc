// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Bits} from "./Bits.sol";

// The ids of a customer's jobs in one slot, as runs of consecutive ids. From bit 0:
//
// | jobs 32 | older 32 | newest run 48 | run 48 | run 48 | oldest run 48 |       each run | first 32 | count 16 |
//
// * jobs      number of ids, including those in older words
// * older     number of the blob with the word that was full before this one; 0 for none
//
// A full word moves into the blob of the next request, and the slot begins again. So a request costs the same for any
// number of jobs. Reading all ids reads one blob per four requests.
type IdRuns is uint256;

using IdRunsFields for IdRuns global;

/// @notice Reads the fields of an IdRuns, and makes longer ones.
library IdRunsFields {
    /// Number of runs in a word.
    uint256 internal constant RUNS = 4;

    uint256 private constant OLDER = 32;
    uint256 private constant NEWEST = 64;
    uint256 private constant RUN = 48;

    /// Number of all ids.
    function jobs(IdRuns ids) internal pure returns (uint256) {
        return Bits.get(IdRuns.unwrap(ids), 0, 32);
    }

    /// Number of the blob with the word before this one; 0 for none.
    function older(IdRuns ids) internal pure returns (uint256) {
        return Bits.get(IdRuns.unwrap(ids), OLDER, 32);
    }

    /// The `index`-th newest run: its first id and its length; both 0 for none.
    function run(IdRuns ids, uint256 index) internal pure returns (uint256 first, uint256 count) {
        uint256 place = NEWEST + RUN * index;
        return (Bits.get(IdRuns.unwrap(ids), place, 32), Bits.get(IdRuns.unwrap(ids), place + 32, 16));
    }

    /// Adds `count` ids from `first` on. If the word is `full`, the new word holds only these ids, and the caller must
    /// store the old word in the blob with this number.
    function with(IdRuns ids, uint256 first, uint256 count, uint256 blob)
        internal
        pure
        returns (IdRuns longer, bool full)
    {
        assert(count <= type(uint16).max); // a request of that many fits in no block
        uint256 all = jobs(ids) + count;
        uint256 word = IdRuns.unwrap(ids);
        (uint256 newest, uint256 length) = run(ids, 0);
        if (newest + length == first && length + count <= type(uint16).max) {
            word = Bits.set(word, NEWEST + 32, 16, length + count);
            return (IdRuns.wrap(Bits.set(word, 0, 32, all)), false);
        }
        (uint256 oldest,) = run(ids, RUNS - 1);
        full = oldest != 0;
        uint256 runs = (full ? 0 : word >> NEWEST << RUN) | first | count << 32;
        longer = IdRuns.wrap(all | (full ? blob : older(ids)) << OLDER | runs << NEWEST);
    }
}
