// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";

/// Errors as values: a single call reverts with one, a batch skips its item and tells it in an event. Empty is none.
library Refusals {
    /// An error without arguments.
    function plain(bytes4 selector) internal pure returns (bytes memory) {
        return abi.encodePacked(selector);
    }

    /// Reverts with the error, if it is one.
    function raise(bytes memory refusal) internal pure {
        if (refusal.length != 0) LowLevelCall.bubbleRevert(refusal);
    }
}
