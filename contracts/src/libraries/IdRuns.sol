// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Bits} from "./Bits.sol";

/// The ids of a customer's jobs, as runs of ids that follow each other, in one slot. From bit 0:
///
/// | jobs 32 | older 32 | newest run 48 | run 48 | run 48 | oldest run 48 |       each run | first 32 | count 16 |
///
/// jobs      how many ids there are, those in older words with them
/// older     the blob in which the word stands that was full before this one, 0 for none
///
/// When the word is full, it is kept in the blob of the next request, and the slot begins anew: a request costs the
/// same however many jobs its customer has, and reading all of them is reading one blob for each four requests.
type IdRuns is uint256;

using IdRunsFields for IdRuns global;

/// Reads the fields of an IdRuns, and makes longer ones.
library IdRunsFields {
    uint256 internal constant RUNS = 4;

    uint256 private constant OLDER = 32;
    uint256 private constant NEWEST = 64;
    uint256 private constant RUN = 48;

    /// How many ids there are in all.
    function jobs(IdRuns ids) internal pure returns (uint256) {
        return Bits.get(IdRuns.unwrap(ids), 0, 32);
    }

    /// Number of the blob that keeps the word before this one, 0 for none.
    function older(IdRuns ids) internal pure returns (uint256) {
        return Bits.get(IdRuns.unwrap(ids), OLDER, 32);
    }

    /// The `index`-th newest run: its first id and its length, both 0 for none.
    function run(IdRuns ids, uint256 index) internal pure returns (uint256 first, uint256 count) {
        uint256 place = NEWEST + RUN * index;
        return (Bits.get(IdRuns.unwrap(ids), place, 32), Bits.get(IdRuns.unwrap(ids), place + 32, 16));
    }

    /// With `count` more ids from `first` on. `full`: the word had no room, the new one holds only these, and the
    /// caller keeps the old one in the blob of that number.
    function with(IdRuns ids, uint256 first, uint256 count, uint256 blob)
        internal
        pure
        returns (IdRuns longer, bool full)
    {
        assert(count <= type(uint16).max); // a request of as many is beyond any block
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
