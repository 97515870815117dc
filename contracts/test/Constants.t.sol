// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {InvalidConstant} from "../src/Errors.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// The owner's settings: defaults and bounds. No other account can set them.
contract ConstantsTest is Grid {
    function test_defaults() external view {
        vm.assertEq(rare.minimumAmount(), 100 ether, "minimumAmount");
        vm.assertEq(rare.billDurationDeltaMinute(), 15, "billDurationDeltaMinute");
        vm.assertEq(rare.cancellationFeeMinute(), 5, "cancellationFeeMinute");
        vm.assertEq(rare.claimJobTimeout(), 10, "claimJobTimeout");
        vm.assertEq(rare.deepsquareCut(), 20, "deepsquareCut");
        vm.assertEq(rare.topUpSliceDurationMin(), 30, "topUpSliceDurationMin");
        vm.assertEq(rare.CANCEL_ANSWER_PERIOD(), 10 minutes, "no setting");
        vm.assertEq(rare.TOP_UP_WINDOW_MINUTES(), 10, "no setting");
        vm.assertEq(grid.owner(), address(this), "owner");
    }

    function test_only_the_owner_sets_constants_and_only_within_bounds() external {
        check(rare.setMinimumAmount.selector, rare.minimumAmount.selector, 0, type(uint96).max);
        check(rare.setBillDurationDeltaMinute.selector, rare.billDurationDeltaMinute.selector, 0, 1440);
        check(rare.setCancellationFeeMinute.selector, rare.cancellationFeeMinute.selector, 0, 60);
        check(rare.setClaimJobTimeout.selector, rare.claimJobTimeout.selector, 1, 10_080);
        check(rare.setTopUpSliceDurationMin.selector, rare.topUpSliceDurationMin.selector, 1, 1440);
    }

    function check(bytes4 setter, bytes4 getter, uint256 least, uint256 most) private {
        checkSet(setter, getter, least);
        checkSet(setter, getter, most);
        checkRefused(setter, most + 1, abi.encodeWithSelector(InvalidConstant.selector, most + 1, least, most));
        if (least > 0) checkRefused(setter, 0, abi.encodeWithSelector(InvalidConstant.selector, 0, least, most));
        vm.prank(operator);
        checkRefused(setter, most, abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, operator));
    }

    function checkSet(bytes4 setter, bytes4 getter, uint256 value) private {
        (bool passed,) = address(grid).call(abi.encodeWithSelector(setter, value));
        vm.assertTrue(passed, "set");
        (, bytes memory answer) = address(grid).call(abi.encodeWithSelector(getter));
        vm.assertEq(abi.decode(answer, (uint256)), value, "value");
    }

    function checkRefused(bytes4 setter, uint256 value, bytes memory refusal) private {
        (bool passed, bytes memory answer) = address(grid).call(abi.encodeWithSelector(setter, value));
        vm.assertTrue(!passed, "refused");
        vm.assertEq(answer, refusal, "error");
    }
}
