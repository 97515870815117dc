// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Limits of texts, so that no author can make a job too large to read.
library Texts {
    /// Maximum number of stored bytes of a job's error text.
    uint256 internal constant LONGEST_ERROR = 1024;
    /// Maximum number of bytes of a UTF-8 character after its first one.
    uint256 private constant LONGEST_REST = 3;

    /// The first LONGEST_ERROR bytes of a text. It is a little shorter where a UTF-8 character would be cut in two.
    function beginning(bytes calldata text) internal pure returns (bytes calldata) {
        uint256 end = text.length;
        if (end <= LONGEST_ERROR) return text;
        end = LONGEST_ERROR;
        while (end > LONGEST_ERROR - LONGEST_REST && uint8(text[end]) >> 6 == 2) {
            --end;
        }
        return text[:end];
    }
}
