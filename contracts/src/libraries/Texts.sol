// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Texts that others have to read: whoever writes one may not make a job too large to be read.
library Texts {
    /// Bytes that are kept of a job's error text.
    uint256 internal constant LONGEST_ERROR = 1024;
    /// Bytes of a UTF-8 character behind its first one, at most.
    uint256 private constant LONGEST_REST = 3;

    /// The first LONGEST_ERROR bytes of a text, or fewer, so that no UTF-8 character is cut in two.
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
