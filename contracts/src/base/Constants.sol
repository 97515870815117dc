// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {InvalidConstant} from "../Errors.sol";
import {ISharedCalls} from "../interfaces/ISharedCalls.sol";

/// @notice The settings that the owner may change, and the counters in the same slots. A changed setting applies to
/// jobs from then on. A job's rate and cut stay as they were assigned.
abstract contract Constants is Ownable, ISharedCalls {
    // slot read and written with each request | minimumAmount 96 | lastJob 32 | lastBlob 32 | closed 8 |
    uint96 private _minimumAmount = 100 ether;
    /// Id of the last job; ids count from 1.
    uint32 internal _lastJob;
    /// Number of the last contract that this one created.
    uint32 internal _lastBlob = 1; // the first one is RareCalls
    /// True while the grid refuses new jobs.
    bool internal _closed;

    // slot used with each settlement | platformCut 112 | cut 8 | alarm 32 | fee 32 | claim timeout 32 | slice 32 |
    /// The platform's cut that was not withdrawn yet, in wei.
    uint112 internal _platformCut;
    /// @inheritdoc ISharedCalls
    uint8 public deepsquareCut = 20;
    /// @inheritdoc ISharedCalls
    uint32 public billDurationDeltaMinute = 15;
    /// @inheritdoc ISharedCalls
    uint32 public cancellationFeeMinute = 5;
    /// @inheritdoc ISharedCalls
    uint32 public claimJobTimeout = 10;
    /// @inheritdoc ISharedCalls
    uint32 public topUpSliceDurationMin = 30;

    /// @notice Makes the deployer the owner.
    constructor() Ownable(msg.sender) {}

    /// @inheritdoc ISharedCalls
    function minimumAmount() public view returns (uint256) {
        return _minimumAmount;
    }

    /// @inheritdoc ISharedCalls
    function jobIdCounter() external view returns (uint256) {
        return _lastJob;
    }

    /// @inheritdoc ISharedCalls
    function enableRequestNewJob() external view returns (bool) {
        return !_closed;
    }

    /// @inheritdoc ISharedCalls
    function platformCut() external view returns (uint256) {
        return _platformCut;
    }

    /// @inheritdoc ISharedCalls
    function setMinimumAmount(uint256 amount) external onlyOwner {
        _minimumAmount = uint96(_within(amount, 0, type(uint96).max));
    }

    /// @inheritdoc ISharedCalls
    function setBillDurationDeltaMinute(uint256 durationMinute) external onlyOwner {
        billDurationDeltaMinute = uint32(_within(durationMinute, 0, 1 days / 60));
    }

    /// @inheritdoc ISharedCalls
    function setCancellationFeeMinute(uint256 durationMinute) external onlyOwner {
        cancellationFeeMinute = uint32(_within(durationMinute, 0, 60));
    }

    /// @inheritdoc ISharedCalls
    function setClaimJobTimeout(uint64 durationMinute) external onlyOwner {
        claimJobTimeout = uint32(_within(durationMinute, 1, 7 days / 60));
    }

    /// @inheritdoc ISharedCalls
    function setTopUpSliceDurationMin(uint64 durationMinute) external onlyOwner {
        topUpSliceDurationMin = uint32(_within(durationMinute, 1, 1 days / 60));
    }

    /// `claimJobTimeout` in seconds.
    function _claimTimeout() internal view returns (uint256) {
        return uint256(claimJobTimeout) * 1 minutes;
    }

    /// The value, if it is within its range. Reverts with InvalidConstant otherwise.
    function _within(uint256 value, uint256 least, uint256 most) internal pure returns (uint256) {
        if (value < least || value > most) revert InvalidConstant(value, least, most);
        return value;
    }
}
