// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "../../src/Types.sol";
import {Billing} from "../../src/libraries/Billing.sol";
import {States} from "../../src/libraries/States.sol";

/// The formulas for all deposits and all rates. The proofs of whole contracts fix one rate and rely on these.
contract Formulas {
    function check_never_above_the_lock(uint32 charged, uint128 rate, uint96 locked) external pure {
        assert(Billing.cost(charged, rate, locked) <= locked);
    }

    /// So charged minutes always fit in 32 bits.
    function check_no_more_charged_than_billed_or_a_year(uint256 billed, uint128 rate, uint96 locked) external pure {
        uint256 charged = Billing.charged(billed, locked, rate);
        assert(charged <= billed);
        assert(charged <= Billing.MAX_LIMIT_MINUTES + 1);
    }

    function check_cold_has_no_way_out(JobStatus from, JobStatus to) external pure {
        assert(States.isHot(from) || States.refusal(from, to).length != 0);
    }
}
