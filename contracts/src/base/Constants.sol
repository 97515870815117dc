// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {ISharedCalls} from "../interfaces/ISharedCalls.sol";

/// @notice The settings that the owner may change, and the counters in the same slots. Settings serves them to clients.
abstract contract Constants is Ownable, ISharedCalls {
    /// Seconds that a provider has to answer a cancel request. Minutes after them are not billed. No account can change
    /// this, because bills depend on it.
    uint256 internal constant ANSWER_PERIOD = 10 minutes;

    /// Minutes before the end of the bought time from which on an automatic top-up is allowed.
    uint256 internal constant TOP_UP_WINDOW = 10;

    // slot read and written with each request | minimumAmount 96 | lastJob 32 | lastBlob 32 | closed 8 |
    /// Minimum deposit of a job, in wei.
    uint96 internal _minimumAmount = 100 ether;
    /// Id of the last job; ids count from 1.
    uint32 internal _lastJob;
    /// Number of the last contract that this one created.
    uint32 internal _lastBlob = 1; // the first one is RareCalls
    /// True while the grid refuses new jobs.
    bool internal _closed;

    // slot used with each settlement | platformCut 112 | cut 8 | alarm 32 | fee 32 | claim timeout 32 | slice 32 |
    /// The platform's cut that was not withdrawn yet, in wei.
    uint112 internal _platformCut;
    /// Cut of the platform in percent, which changes by notice only.
    uint8 internal _deepsquareCut = 20;
    /// Minutes by which a report may exceed the possible run time before an event reports it.
    uint32 internal _billDurationDeltaMinute = 15;
    /// Minimum bill of a RUNNING job that its customer cancelled, in minutes.
    uint32 internal _cancellationFeeMinute = 5;
    /// Minutes in which a provider has to claim a job.
    uint32 internal _claimJobTimeout = 10;
    /// Minutes that one automatic top-up buys.
    uint32 internal _topUpSliceDurationMin = 30;

    /// @notice Makes the deployer the owner.
    constructor() Ownable(msg.sender) {}

    /// `_claimJobTimeout` in seconds.
    function _claimTimeout() internal view returns (uint256) {
        return uint256(_claimJobTimeout) * 1 minutes;
    }
}
