// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {TooMuchLocked} from "../Errors.sol";
import {JobSettledEvent} from "../Events.sol";
import {JobStatus} from "../Types.sol";
import {ISharedCalls} from "../interfaces/ISharedCalls.sol";
import {Billing} from "../libraries/Billing.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {Lines} from "./Lines.sol";

/// @notice Holds the deposits of jobs apart from the platform's cut. A deposit goes to the job's provider, to the cut
/// and back to the job's customer, to the last wei, and nowhere else.
abstract contract Escrow is Lines, AccessControl {
    using SafeERC20 for IERC20;

    /// @inheritdoc ISharedCalls
    IERC20 public immutable credit;

    /// @notice Sets the token.
    /// @param credit_ Token that pays for jobs.
    constructor(IERC20 credit_) {
        credit = credit_;
    }

    /// `amount` in the width of a deposit. Reverts if the job would hold too much with it.
    function _lockable(uint256 held, uint256 amount) internal pure returns (uint96) {
        if (amount > Billing.MAX_LOCKED || held + amount > Billing.MAX_LOCKED) {
            revert TooMuchLocked(amount, Billing.MAX_LOCKED);
        }
        return uint96(amount);
    }

    /// Takes `amount` wei from `payer`. The caller books it on jobs.
    function _lock(address payer, uint256 amount) internal {
        credit.safeTransferFrom(payer, address(this), amount);
    }

    /// Ends a job in a cold state and divides its deposit. All bookings precede all payments.
    function _end(bytes32 jobId, JobWord word, Deal memory deal, JobStatus status, uint256 billed) internal {
        uint256 charged = Billing.charged(billed, deal.locked, deal.rate);
        _words[jobId] = _moved(jobId, word, status).ended(charged);
        if (deal.provider != address(0)) _leave(deal.provider, jobId, word);
        uint256 cost = Billing.cost(charged, deal.rate, deal.locked);
        uint256 cut = cost * deal.cutPercent / 100;
        uint256 paid = cost - cut;
        if (cut != 0) _platformCut += uint112(cut);
        emit JobSettledEvent(jobId, deal.provider, deal.customer, uint64(billed), paid, cut, deal.locked - cost);
        if (paid != 0) credit.safeTransfer(deal.provider, paid);
        if (cost != deal.locked) credit.safeTransfer(deal.customer, deal.locked - cost);
    }
}
