// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Fields of a word: `width` bits from bit `from` on.
library Bits {
    /// The value of the field.
    function get(uint256 word, uint256 from, uint256 width) internal pure returns (uint256) {
        return word >> from & (1 << width) - 1;
    }

    /// The word with another value in the field, cut to its width.
    function set(uint256 word, uint256 from, uint256 width, uint256 value) internal pure returns (uint256) {
        uint256 mask = (1 << width) - 1;
        return word & ~(mask << from) | (value & mask) << from;
    }
}
