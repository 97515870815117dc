// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";

/// @notice Errors as values. A single call reverts with the error; a batch skips the item and emits it. Empty is none.
library Refusals {
    /// An error without arguments.
    function plain(bytes4 selector) internal pure returns (bytes memory) {
        return abi.encodePacked(selector);
    }

    /// Reverts with the error unless it is empty.
    function raise(bytes memory refusal) internal pure {
        if (refusal.length != 0) LowLevelCall.bubbleRevert(refusal);
    }
}
