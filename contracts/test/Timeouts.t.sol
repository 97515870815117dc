// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobHotStatusOnly, SameStatusError, TimeoutTooEarly} from "../src/Errors.sol";
import {JobRefusedEvent, JobSettledEvent} from "../src/Events.sol";
import {JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Time-outs of a provider that does not act: permissions, times, and the job's next state.
contract TimeoutsTest is Grid {
    // 200 credits buy 13 minutes
    uint256 private constant BOUGHT = 13 minutes;

    function test_any_account_times_out_an_unclaimed_job_after_the_deadline() external {
        bytes32 id = assigned(200 ether);
        uint256 due = block.timestamp + 10 minutes;
        checkTooEarly(id, stranger, due);
        vm.expectEmit(address(grid));
        emit JobRefusedEvent(id, provider, customer);
        vm.prank(stranger);
        rare.timeoutJob(id);
        checkStatus(id, JobStatus.PENDING);
        vm.assertEq(rare.jobTerms(id).lastRefuser, provider, "last refuser");
        vm.assertEq(manager.getRecord(provider).timedOut, 1, "counted");
        vm.assertTrue(!rare.hasNextClaimableJob(provider), "not in the queue");
    }

    function test_the_role_times_out_a_claimed_job_of_a_silent_provider() external {
        bytes32 id = claimed(200 ether);
        checkTooEarly(id, operator, block.timestamp + BOUGHT + 1 days);
        vm.prank(operator);
        rare.timeoutJob(id);
        checkStatus(id, JobStatus.PENDING);

        id = running(200 ether);
        checkTooEarly(id, operator, block.timestamp + BOUGHT + 1 days);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 0, 0, 0, 200 ether);
        vm.prank(operator);
        rare.timeoutJob(id);
        checkStatus(id, JobStatus.PANICKED);
        vm.assertEq(manager.getRecord(provider).timedOut, 2, "counted");
        vm.assertEq(manager.getRecord(provider).panicked, 0, "not counted as a panic");
    }

    function test_a_job_with_an_unanswered_cancel_request_times_out_a_day_after_it() external {
        address[2] memory callers = [operator, customer];
        for (uint256 i; i < 4; ++i) {
            bytes32 id = i < 2 ? claimed(200 ether) : running(200 ether);
            skip(1 minutes);
            cancel(id);
            checkTooEarly(id, callers[i % 2], block.timestamp + 1 days);
            vm.prank(callers[i % 2]);
            rare.timeoutJob(id);
            checkStatus(id, i < 2 ? JobStatus.CANCELLED : JobStatus.PANICKED);
            vm.assertEq(manager.getRecord(provider).timedOut, i + 1, "counted");
        }
    }

    function test_a_request_after_the_bought_time_gives_the_provider_no_more_time() external {
        bytes32 id = running(200 ether);
        uint256 due = block.timestamp + BOUGHT + 1 days;
        skip(1 hours);
        cancel(id);
        checkTooEarly(id, operator, due);
        vm.prank(operator);
        rare.timeoutJob(id);
        checkStatus(id, JobStatus.PANICKED);
    }

    function test_the_role_moves_waiting_jobs_of_a_banned_or_removed_provider_at_once() external {
        bytes32 first = claimed(200 ether);
        bytes32 second = claimed(200 ether);
        vm.prank(operator);
        manager.ban(provider);
        vm.prank(operator);
        rare.timeoutJob(first);
        checkStatus(first, JobStatus.PENDING);
        vm.prank(operator);
        manager.unban(provider);
        vm.prank(operator);
        manager.remove(provider);
        checkTooEarly(second, customer, block.timestamp + BOUGHT + 1 days);
        vm.prank(operator);
        rare.timeoutJob(second);
        checkStatus(second, JobStatus.PENDING);
    }

    function test_a_ban_takes_no_pay_for_jobs_that_may_have_run() external {
        bytes32 ran = running(200 ether);
        bytes32 asked = claimed(200 ether);
        cancel(asked);
        vm.prank(operator);
        manager.ban(provider);
        uint256 due = block.timestamp + 1 days;
        checkTooEarly(ran, operator, due + BOUGHT);
        vm.warp(due - 1 days);
        checkTooEarly(asked, operator, due);
        report(ran, JobStatus.FINISHED, 13);
        vm.assertEq(credit.balanceOf(provider), 13 * RATE * 80 / 100, "a banned provider is paid for what ran");
    }

    function test_the_customer_times_out_a_job_after_bought_time_and_grace() external {
        for (uint256 i = 2; i < 4; ++i) {
            bytes32 id = i == 2 ? claimed(200 ether) : running(200 ether);
            checkTooEarly(id, customer, block.timestamp + BOUGHT + 1 days);
            vm.prank(customer);
            rare.timeoutJob(id);
            checkStatus(id, i == 2 ? JobStatus.PENDING : JobStatus.PANICKED);
        }
    }

    function test_a_top_up_gives_the_provider_more_time() external {
        bytes32 id = running(200 ether);
        vm.prank(customer);
        grid.topUpJob(id, 146 ether);
        checkTooEarly(id, operator, block.timestamp + 23 minutes + 1 days);
    }

    function test_other_accounts_cannot_time_out_a_claimed_job() external {
        bytes32 id = running(200 ether);
        skip(365 days);
        bytes memory refusal = missingRole(stranger, grid.METASCHEDULER_ROLE());
        vm.expectRevert(refusal);
        vm.prank(stranger);
        rare.timeoutJob(id);
    }

    function test_a_job_without_a_provider_cannot_time_out() external {
        bytes32 id = request(200 ether);
        vm.expectRevert(SameStatusError.selector);
        vm.prank(operator);
        rare.timeoutJob(id);
        cancel(id);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.CANCELLED));
        vm.prank(operator);
        rare.timeoutJob(id);
    }

    /// Checks that one second before `due` is too early. Leaves the clock at `due`.
    function checkTooEarly(bytes32 id, address caller, uint256 due) private {
        vm.warp(due - 1);
        vm.expectRevert(abi.encodeWithSelector(TimeoutTooEarly.selector, due));
        vm.prank(caller);
        rare.timeoutJob(id);
        vm.warp(due);
    }
}
