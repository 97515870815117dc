// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {InsufficientFunds, InvalidConstant} from "../Errors.sol";
import {ISettings} from "../interfaces/ISettings.sol";
import {Endings} from "./Endings.sol";

/// @notice The settings as clients read them and as the owner changes them, and the payment of the platform's cut.
/// @dev Only RareCalls has them: each function of the MetaScheduler makes the calls of a usual job dearer.
abstract contract Settings is Endings, ISettings {
    using SafeERC20 for IERC20;

    /// @inheritdoc ISettings
    function minimumAmount() external view returns (uint256) {
        return _minimumAmount;
    }

    /// @inheritdoc ISettings
    function jobIdCounter() external view returns (uint256) {
        return _lastJob;
    }

    /// @inheritdoc ISettings
    function enableRequestNewJob() external view returns (bool) {
        return !_closed;
    }

    /// @inheritdoc ISettings
    function platformCut() external view returns (uint256) {
        return _platformCut;
    }

    /// @inheritdoc ISettings
    function setMinimumAmount(uint256 amount) external onlyOwner {
        _minimumAmount = uint96(_within(amount, 0, type(uint96).max));
    }

    /// @inheritdoc ISettings
    function setBillDurationDeltaMinute(uint256 durationMinute) external onlyOwner {
        _billDurationDeltaMinute = uint32(_within(durationMinute, 0, 1 days / 60));
    }

    /// @inheritdoc ISettings
    function setCancellationFeeMinute(uint256 durationMinute) external onlyOwner {
        _cancellationFeeMinute = uint32(_within(durationMinute, 0, 60));
    }

    /// @inheritdoc ISettings
    function setClaimJobTimeout(uint64 durationMinute) external onlyOwner {
        _claimJobTimeout = uint32(_within(durationMinute, 1, 7 days / 60));
    }

    /// @inheritdoc ISettings
    function setTopUpSliceDurationMin(uint64 durationMinute) external onlyOwner {
        _topUpSliceDurationMin = uint32(_within(durationMinute, 1, 1 days / 60));
    }

    /// @inheritdoc ISettings
    function deepsquareCut() external view returns (uint8) {
        return _deepsquareCut;
    }

    /// @inheritdoc ISettings
    function billDurationDeltaMinute() external view returns (uint32) {
        return _billDurationDeltaMinute;
    }

    /// @inheritdoc ISettings
    function cancellationFeeMinute() external view returns (uint32) {
        return _cancellationFeeMinute;
    }

    /// @inheritdoc ISettings
    function claimJobTimeout() external view returns (uint32) {
        return _claimJobTimeout;
    }

    /// @inheritdoc ISettings
    function topUpSliceDurationMin() external view returns (uint32) {
        return _topUpSliceDurationMin;
    }

    /// @inheritdoc ISettings
    function withdrawAdmin(uint256 amount) external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint256 cut = _platformCut;
        if (amount > cut) revert InsufficientFunds(cut, amount);
        _platformCut = uint112(cut - amount);
        credit.safeTransfer(msg.sender, amount);
    }

    /// The value, if it is within its range. Reverts with InvalidConstant otherwise.
    function _within(uint256 value, uint256 least, uint256 most) internal pure returns (uint256) {
        if (value < least || value > most) revert InvalidConstant(value, least, most);
        return value;
    }
}
