// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {InvalidConstant} from "../Errors.sol";

/// The figures that the owner may change, and the counters that are used with them. They bind jobs from then on; a
/// job's rate and cut stay as assigned.
abstract contract Constants is Ownable {
    // slot read and written with each request | minimumAmount 96 | lastJob 32 | lastBlob 32 | closed 8 |
    uint96 private _minimumAmount = 100 ether;
    /// Number of the last job; numbers start at 1.
    uint32 internal _lastJob;
    /// Number of the last contract that this one made.
    uint32 internal _lastBlob = 1; // the first is the contract of the views
    /// Whether new jobs are refused.
    bool internal _closed;

    // slot used with each settlement | platformCut 112 | cut 8 | alarm 32 | fee 32 | claim timeout 32 | slice 32 |
    /// Cut that was kept and not withdrawn yet, in wei.
    uint112 internal _platformCut;
    /// Percent of a job's cost that the platform keeps. Changed by notice only, see CutChanges.
    uint8 public deepsquareCut = 20;
    /// Minutes by which a report may exceed what can have run before BilledTooMuchEvent; never billed.
    uint32 public billDurationDeltaMinute = 15;
    /// Least minutes billed for a RUNNING job that its customer cancelled.
    uint32 public cancellationFeeMinute = 5;
    /// Minutes that a provider has to claim a job, and to answer a cancellation.
    uint32 public claimJobTimeout = 10;
    /// Minutes that one automatic top-up buys, and below which it is allowed.
    uint32 public topUpSliceDurationMin = 30;

    constructor() Ownable(msg.sender) {}

    /// Least that a job must lock, in wei.
    function minimumAmount() public view returns (uint256) {
        return _minimumAmount;
    }

    /// Id of the last job; ids count from 1.
    function jobIdCounter() external view returns (uint256) {
        return _lastJob;
    }

    /// Whether new jobs are accepted.
    function enableRequestNewJob() external view returns (bool) {
        return !_closed;
    }

    /// Cut that was kept and not withdrawn yet, in wei.
    function platformCut() external view returns (uint256) {
        return _platformCut;
    }

    /// Sets the least that a job must lock, in wei.
    function setMinimumAmount(uint256 amount) external onlyOwner {
        _minimumAmount = uint96(_within(amount, 0, type(uint96).max));
    }

    /// Sets from which excess on BilledTooMuchEvent is emitted.
    function setBillDurationDeltaMinute(uint256 durationMinute) external onlyOwner {
        billDurationDeltaMinute = uint32(_within(durationMinute, 0, 1 days / 60));
    }

    /// Sets the least bill of a RUNNING job that its customer cancelled.
    function setCancellationFeeMinute(uint256 durationMinute) external onlyOwner {
        cancellationFeeMinute = uint32(_within(durationMinute, 0, 60));
    }

    /// Sets how long a provider has to claim a job and to answer a cancel request.
    function setClaimJobTimeout(uint64 durationMinute) external onlyOwner {
        claimJobTimeout = uint32(_within(durationMinute, 1, 7 days / 60));
    }

    /// Sets what one automatic top-up buys.
    function setTopUpSliceDurationMin(uint64 durationMinute) external onlyOwner {
        topUpSliceDurationMin = uint32(_within(durationMinute, 1, 1 days / 60));
    }

    /// `claimJobTimeout` in seconds.
    function _claimTimeout() internal view returns (uint256) {
        return uint256(claimJobTimeout) * 1 minutes;
    }

    function _within(uint256 value, uint256 least, uint256 most) internal pure returns (uint256) {
        if (value < least || value > most) revert InvalidConstant(value, least, most);
        return value;
    }
}
