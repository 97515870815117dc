// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {InvalidTransition, JobHotStatusOnly, SameStatusError} from "../Errors.sol";
import {JobStatus} from "../Types.sol";
import {Refusals} from "./Refusals.sol";

/// @notice The state machine of a job. A test compares it with the table in `contracts/matrix.json`.
library States {
    // One row of 16 bits per hot state, from the lowest: PENDING, META_SCHEDULED, SCHEDULED, RUNNING.
    // Bit n of a row: the state may become n.     PANI OOC FAIL FINI CANC RUNN SCHE META PEND
    uint256 private constant PENDING_TO = 274; //     1   0    0    0    1    0    0    1    0
    uint256 private constant META_TO = 277; //        1   0    0    0    1    0    1    0    1
    uint256 private constant SCHEDULED_TO = 345; //   1   0    1    0    1    1    0    0    1
    uint256 private constant RUNNING_TO = 496; //     1   1    1    1    1    0    0    0    0
    uint256 private constant EDGES = PENDING_TO | (META_TO << 16) | (SCHEDULED_TO << 32) | (RUNNING_TO << 48);

    /// Whether a job in this state may still change.
    function isHot(JobStatus status) internal pure returns (bool) {
        return status <= JobStatus.RUNNING;
    }

    /// Whether its provider has claimed the job and it has not ended.
    function isClaimed(JobStatus status) internal pure returns (bool) {
        return status == JobStatus.SCHEDULED || status == JobStatus.RUNNING;
    }

    /// Reverts unless `from` may become `to`.
    function check(JobStatus from, JobStatus to) internal pure {
        Refusals.raise(refusal(from, to));
    }

    /// The error that says why `from` may not become `to`; empty if it may.
    function refusal(JobStatus from, JobStatus to) internal pure returns (bytes memory) {
        if ((EDGES >> (uint256(from) * 16 + uint256(to))) & 1 != 0) return "";
        if (from == to) return Refusals.plain(SameStatusError.selector);
        if (!isHot(from)) return abi.encodeWithSelector(JobHotStatusOnly.selector, from);
        return abi.encodeWithSelector(InvalidTransition.selector, from, to);
    }
}
