// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CancelRequested, TimeoutTooEarly} from "../src/Errors.sol";
import {JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Plays what customers and providers try while a cancel request, or an end, stays without a report. Measures the gain
/// of both sides over honest behaviour, and the unpaid run time. The honest provider answers a cancel request at once,
/// and reports an end at once. `attacks.json` and docs/explanation/contracts.md list the figures.
contract UnansweredTest is Grid {
    // 2000 credits buy 136 minutes; each cancel comes after 20 of them
    uint256 private constant DEPOSIT = 2000 ether;
    uint256 private constant BOUGHT = 136;

    // credits of both sides before the attack, and what honest behaviour makes of them
    int256[2] private honest;
    uint256[2] private before;

    function test_blocking_for_ten_minutes() external {
        bytes32 id = blocked(10 minutes);
        report(id, JobStatus.CANCELLED, 30);
        check("blocking_for_ten_minutes", id, 30);
    }

    function test_blocking_for_an_hour() external {
        bytes32 id = blocked(60 minutes);
        report(id, JobStatus.CANCELLED, 80);
        check("blocking_for_an_hour", id, 80);
        check("vanishing_for_an_hour", id, 80);
    }

    function test_blocking_until_the_bought_time_ends() external {
        bytes32 id = blocked((BOUGHT - 20) * 1 minutes);
        report(id, JobStatus.OUT_OF_CREDITS, uint64(BOUGHT));
        check("blocking_until_the_bought_time_ends", id, BOUGHT);
    }

    function test_blocking_for_a_day() external {
        bytes32 id = blocked(1 days);
        checkStatus(id, JobStatus.CANCELLED);
        check("blocking_for_a_day", id, BOUGHT);
        check("vanishing_forever", id, BOUGHT);
    }

    function test_blocking_the_report_of_the_start_too() external {
        honestCancel();
        bytes32 id = claimed(DEPOSIT);
        skip(20 minutes);
        cancel(id);
        skip(10 minutes);
        cancel(id);
        skip(50 minutes);
        report(id, JobStatus.RUNNING, 80);
        report(id, JobStatus.CANCELLED, 80);
        check("blocking_the_report_of_the_start_too", id, 80);
    }

    function test_asking_the_operator_while_it_blocks() external {
        bytes32 id = blocked(60 minutes);
        vm.expectRevert(abi.encodeWithSelector(TimeoutTooEarly.selector, block.timestamp - 1 hours + 1 days));
        vm.prank(operator);
        rare.timeoutJob(id);
        report(id, JobStatus.CANCELLED, 80);
        check("asking_the_operator_while_it_blocks", id, 80);
    }

    function test_topping_up_while_it_blocks() external {
        honestCancel();
        bytes32 id = running(DEPOSIT);
        vm.prank(customer);
        grid.topUpJob(id, DEPOSIT);
        skip(20 minutes);
        cancel(id);
        skip(10 minutes);
        cancel(id);
        vm.expectRevert(CancelRequested.selector);
        vm.prank(customer);
        grid.topUpJob(id, DEPOSIT);
        skip(50 minutes);
        report(id, JobStatus.CANCELLED, 80);
        check("topping_up_while_it_blocks", id, 80);
    }

    function test_reporting_after_a_day() external {
        bytes32 id = blocked(10 minutes);
        skip(2 days);
        report(id, JobStatus.CANCELLED, uint64(BOUGHT));
        check("reporting_after_a_day", id, BOUGHT);
    }

    function test_ignoring_the_cancel_to_bill_more() external {
        bytes32 id = blocked(10 minutes);
        skip(106 minutes);
        report(id, JobStatus.OUT_OF_CREDITS, type(uint64).max);
        check("ignoring_the_cancel_to_bill_more", id, BOUGHT);
    }

    function test_reporting_an_end_hours_late() external {
        bytes32 id = ended();
        skip(12 hours);
        vm.expectRevert(abi.encodeWithSelector(TimeoutTooEarly.selector, block.timestamp + 12 hours));
        vm.prank(operator);
        rare.timeoutJob(id);
        report(id, JobStatus.OUT_OF_CREDITS, uint64(BOUGHT));
        check("reporting_an_end_hours_late", id, BOUGHT);
    }

    function test_blocking_the_report_of_the_end_for_a_day() external {
        bytes32 id = ended();
        skip(1 days);
        vm.prank(operator);
        rare.timeoutJob(id);
        check("blocking_the_report_of_the_end_for_a_day", id, BOUGHT);
    }

    /// A job whose cancel request had no answer for this time. The customer calls again after 10 minutes, and at the
    /// end of that time.
    function blocked(uint256 time) private returns (bytes32 id) {
        honestCancel();
        id = running(DEPOSIT);
        skip(20 minutes);
        cancel(id);
        skip(10 minutes);
        cancel(id);
        skip(time - 10 minutes);
        cancel(id);
    }

    /// A job whose bought time is over.
    function ended() private returns (bytes32 id) {
        begin();
        id = running(DEPOSIT);
        skip(BOUGHT * 1 minutes);
        report(id, JobStatus.OUT_OF_CREDITS, uint64(BOUGHT));
        honest = changes();
        begin();
        id = running(DEPOSIT);
        skip(BOUGHT * 1 minutes);
    }

    function honestCancel() private {
        begin();
        bytes32 id = running(DEPOSIT);
        skip(20 minutes);
        cancel(id);
        report(id, JobStatus.CANCELLED, 20);
        honest = changes();
        begin();
    }

    function begin() private {
        before = [credit.balanceOf(customer), credit.balanceOf(provider)];
    }

    function changes() private view returns (int256[2] memory) {
        return [
            int256(credit.balanceOf(customer)) - int256(before[0]),
            int256(credit.balanceOf(provider)) - int256(before[1])
        ];
    }

    function check(string memory attack, bytes32 id, uint256 ran) private view {
        bytes memory noted = vm.parseJson(vm.readFile("attacks.json"), string.concat(".unanswered.", attack));
        int256[] memory listed = abi.decode(noted, (int256[]));
        int256[2] memory found = changes();
        vm.assertEq(found[0] - honest[0], listed[0] * 0.01 ether, string.concat(attack, ": customer"));
        vm.assertEq(found[1] - honest[1], listed[1] * 0.01 ether, string.concat(attack, ": provider"));
        vm.assertEq(ran - rare.get(id).cost.finalCost / RATE, uint256(listed[2]), string.concat(attack, ": unpaid"));
        vm.assertEq(credit.balanceOf(address(grid)), rare.platformCut(), "nothing stays locked");
    }
}
