// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {InsufficientFunds} from "../Errors.sol";
import {JobSettledEvent} from "../Events.sol";
import {JobStore} from "./JobStore.sol";

/// Holds the deposits of jobs apart from the platform's cut: what a job locked goes to its provider, to the cut
/// and back to its customer, to the last wei, and nowhere else.
abstract contract Escrow is JobStore, AccessControl {
    using SafeERC20 for IERC20;
    using SafeCast for uint256;

    /// The token that jobs are paid in.
    IERC20 public immutable credit;

    /// Cut that was kept and not withdrawn yet, in wei.
    uint256 public platformCut;

    constructor(IERC20 credit_) {
        credit = credit_;
    }

    /// Pays `amount` wei of the platform's cut to the caller. Deposits are out of reach.
    function withdrawAdmin(uint256 amount) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (amount > platformCut) revert InsufficientFunds(platformCut, amount);
        platformCut -= amount;
        credit.safeTransfer(msg.sender, amount);
    }

    /// Takes `amount` wei from `payer`; the caller books it on a job.
    function _lock(address payer, uint256 amount) internal returns (uint128 locked) {
        locked = amount.toUint128();
        credit.safeTransferFrom(payer, address(this), amount);
    }

    /// Divides what the job locked. The job must have reached its final state already.
    function _settle(bytes32 jobId, Record storage record, uint64 billedMinutes) internal {
        uint256 locked = record.locked;
        uint256 cost = Math.min(uint256(billedMinutes) * record.ratePerMinute, locked);
        uint256 paid = cost * (100 - record.cutPercent) / 100;
        record.finalCost = uint128(cost);
        platformCut += cost - paid;
        emit JobSettledEvent(jobId, record.provider, record.customer, billedMinutes, paid, cost - paid, locked - cost);
        if (paid != 0) credit.safeTransfer(record.provider, paid);
        if (cost != locked) credit.safeTransfer(record.customer, locked - cost);
    }
}
