// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {CutNotDue, InvalidConstant} from "../src/Errors.sol";
import {CutChangedEvent, CutNotedEvent} from "../src/Events.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// The platform's cut only changes after a notice, and never exceeds its bound.
contract CutChangesTest is Grid {
    function test_a_notice_changes_nothing_until_its_period_is_over() external {
        vm.assertEq(rare.CUT_NOTICE_PERIOD(), 7 days, "period");
        uint256 due = block.timestamp + 7 days;
        vm.expectEmit(address(grid));
        emit CutNotedEvent(50, due);
        rare.setDeepsquareCut(50);
        checkNext(50, due);
        vm.assertEq(rare.deepsquareCut(), 20, "not in force yet");
        vm.assertEq(rare.jobTerms(assigned(1000 ether)).cutPercent, 20, "assigned before");
        skip(7 days - 1);
        vm.expectRevert(abi.encodeWithSelector(CutNotDue.selector, due));
        rare.applyDeepsquareCut();
        skip(1);
        vm.expectEmit(address(grid));
        emit CutChangedEvent(50);
        vm.prank(stranger);
        rare.applyDeepsquareCut();
        vm.assertEq(rare.deepsquareCut(), 50, "in force");
        vm.assertEq(rare.jobTerms(assigned(1000 ether)).cutPercent, 50, "assigned after");
        checkNext(0, 0);
    }

    function test_a_notice_is_used_once_and_a_later_one_replaces_it() external {
        vm.expectRevert(abi.encodeWithSelector(CutNotDue.selector, 0));
        rare.applyDeepsquareCut();
        rare.setDeepsquareCut(40);
        skip(7 days);
        rare.setDeepsquareCut(30);
        uint256 due = block.timestamp + 7 days;
        vm.expectRevert(abi.encodeWithSelector(CutNotDue.selector, due));
        rare.applyDeepsquareCut();
        skip(7 days);
        rare.applyDeepsquareCut();
        vm.assertEq(rare.deepsquareCut(), 30, "the later notice");
        vm.expectRevert(abi.encodeWithSelector(CutNotDue.selector, 0));
        rare.applyDeepsquareCut();
    }

    function test_a_cut_of_zero_takes_effect_too() external {
        changeCut(0);
        vm.assertEq(rare.deepsquareCut(), 0, "no cut");
    }

    function test_no_cut_is_above_the_bound_and_only_the_owner_gives_notice() external {
        vm.assertEq(rare.MAX_DEEPSQUARE_CUT(), 50, "bound");
        vm.expectRevert(abi.encodeWithSelector(InvalidConstant.selector, 51, 0, 50));
        rare.setDeepsquareCut(51);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, operator));
        vm.prank(operator);
        rare.setDeepsquareCut(1);
    }

    function checkNext(uint256 percent, uint256 notBefore) private view {
        (uint256 nextPercent, uint256 nextNotBefore) = rare.nextDeepsquareCut();
        vm.assertEq(nextPercent, percent, "next cut");
        vm.assertEq(nextNotBefore, notBefore, "not before");
    }
}
