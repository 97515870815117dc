// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    CustomerMetaSchedulerProviderOnly,
    CustomerOnly,
    InsufficientFunds,
    JobHotStatusOnly,
    NoJob,
    NoSpendingAuthority,
    RemainingTimeAboveLimit,
    RunningScheduledStatusOnly
} from "../src/Errors.sol";
import {ClaimNextTopUpJobEvent} from "../src/Events.sol";
import {JobStatus, ProviderPrices} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Manual and automatic top-ups: who pays, the new limit, and when they are allowed.
contract TopUpsTest is Grid {
    function test_any_account_tops_up_a_claimed_job_and_one_hint_has_all_added_minutes() external {
        bytes32 id = claimed(200 ether);
        endow(stranger, 100 ether);
        vm.prank(stranger);
        rare.topUpJob(id, 50 ether);
        vm.prank(customer);
        rare.topUpJob(id, 1 ether);
        vm.assertEq(rare.get(id).cost.maxCost, 251 ether, "locked");
        vm.assertEq(rare.get(id).cost.pendingTopUp, 51 ether, "pending");
        vm.assertEq(credit.balanceOf(stranger), 50 ether, "the caller paid");
        vm.assertEq(rare.getTopUpJobQueueSize(provider), 1, "queued once");
        vm.expectEmit(address(grid));
        emit ClaimNextTopUpJobEvent(id, provider, 4); // floor(251 / 14.6) - floor(200 / 14.6)
        vm.prank(provider);
        rare.claimNextTopUpJob();
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing pending");
        vm.assertEq(rare.jobTerms(id).limitMinutes, 17, "limit");
        vm.assertTrue(!rare.hasTopUpJob(provider), "queue is empty");
        vm.expectRevert(NoJob.selector);
        vm.prank(provider);
        rare.claimNextTopUpJob();
    }

    function test_a_rest_below_a_minute_counts_with_the_next_top_up() external {
        bytes32 id = running(146 ether);
        vm.prank(customer);
        rare.topUpJob(id, 14 ether);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 10, "less than a minute");
        vm.prank(customer);
        rare.topUpJob(id, 0.6 ether);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 11, "one minute more");
        checkHint(id, 1);
    }

    function test_hints_add_up_to_the_limit() external {
        bytes32 id = claimed(200 ether);
        uint256[5] memory amounts = [uint256(14 ether), 15 ether, 0.4 ether, 100 ether, 7 ether];
        uint256 limit = rare.jobTerms(id).limitMinutes;
        for (uint256 i; i < 5; ++i) {
            vm.prank(customer);
            rare.topUpJob(id, amounts[i]);
            uint256 more = rare.jobTerms(id).limitMinutes - limit;
            if (more != 0) checkHint(id, uint64(more));
            limit += more;
        }
        vm.assertEq(limit, 23, "floor(336.4 / 14.6)");
    }

    /// A claim has the whole limit. So it includes top-ups that an earlier provider did not see.
    function test_a_refused_job_keeps_its_top_up_and_no_hint_counts_it_again() external {
        bytes32 id = claimed(200 ether);
        vm.prank(customer);
        rare.topUpJob(id, 50 ether);
        vm.prank(provider);
        rare.refuseJob(id);
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing pending");
        assign(id);
        vm.prank(provider);
        grid.claimNextJob();
        vm.assertEq(rare.jobTerms(id).limitMinutes, 17, "the limit of the claim");
        vm.prank(customer);
        rare.topUpJob(id, RATE);
        checkHint(id, 1);
    }

    function test_the_customer_gets_the_refund_of_a_strangers_top_up() external {
        bytes32 id = running(200 ether);
        endow(stranger, 100 ether);
        vm.prank(stranger);
        rare.topUpJob(id, 100 ether);
        uint256 before = credit.balanceOf(customer);
        report(id, JobStatus.FINISHED, 0);
        vm.assertEq(credit.balanceOf(customer) - before, 300 ether, "refund");
        vm.assertTrue(!rare.hasTopUpJob(provider), "no hint for an ended job");
    }

    function test_only_claimed_jobs_are_topped_up() external {
        for (uint256 i; i < 9; ++i) {
            if (i == 2 || i == 3) continue;
            bytes32 id = jobIn(JobStatus(i));
            vm.expectRevert(abi.encodeWithSelector(RunningScheduledStatusOnly.selector, JobStatus(i)));
            vm.prank(customer);
            rare.topUpJob(id, 1 ether);
            if (i == 1) cancel(id);
        }
    }

    function test_an_automatic_top_up_takes_one_slice_from_the_customer() external {
        address[3] memory callers = [customer, provider, operator];
        for (uint256 i; i < 3; ++i) {
            bytes32 id = allowed(30 * RATE);
            uint256 before = credit.balanceOf(customer);
            vm.prank(callers[i]);
            rare.topUpJobDelegate(id);
            vm.assertEq(before - credit.balanceOf(customer), 30 * RATE, "one slice");
            vm.assertEq(rare.jobTerms(id).limitMinutes, 60, "limit");
            report(id, JobStatus.FAILED, 0);
        }
    }

    function test_an_automatic_top_up_needs_caller_authority_state_and_little_time_left() external {
        bytes32 id = allowed(31 * RATE);
        vm.expectRevert(CustomerMetaSchedulerProviderOnly.selector);
        vm.prank(stranger);
        rare.topUpJobDelegate(id);

        vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 31, 30));
        delegate(id);
        report(id, JobStatus.RUNNING, 0);
        skip(59);
        vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 31, 30));
        delegate(id);
        skip(1);
        delegate(id);
        skip(10 hours); // long past its limit
        delegate(id);

        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, false);
        vm.expectRevert(NoSpendingAuthority.selector);
        delegate(id);

        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        report(id, JobStatus.FINISHED, 1);
        vm.expectRevert(abi.encodeWithSelector(RunningScheduledStatusOnly.selector, JobStatus.FINISHED));
        delegate(id);
    }

    function test_an_automatic_top_up_is_bounded_by_the_allowance() external {
        bytes32 id = allowed(30 * RATE);
        vm.prank(customer);
        credit.approve(address(grid), 5 ether);
        vm.expectRevert(told("ERC20: insufficient allowance"));
        delegate(id);
    }

    function test_only_the_customer_sets_the_authority_of_a_hot_job() external {
        bytes32 id = request(200 ether);
        vm.expectRevert(abi.encodeWithSelector(CustomerOnly.selector, provider, customer));
        vm.prank(provider);
        rare.setDelegateSpendingAuthority(id, true);
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        vm.assertTrue(rare.get(id).cost.delegateSpendingAuthority, "set");
        cancel(id);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.CANCELLED));
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, false);
    }

    function testFuzz_a_top_up_never_lowers_the_limit(uint256 first, uint256 second) external {
        bytes32 id = claimed(100 ether + first % 10_000 ether);
        uint64 before = rare.jobTerms(id).limitMinutes;
        vm.prank(customer);
        rare.topUpJob(id, 1 + second % 10_000 ether);
        vm.assertTrue(rare.jobTerms(id).limitMinutes >= before, "monotone");
    }

    function test_a_top_up_of_zero_reverts() external {
        bytes32 id = running(200 ether);
        address[3] memory callers = [customer, provider, stranger];
        for (uint256 i; i < 3; ++i) {
            uint256 least = i == 0 ? 1 : RATE;
            vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 0, least));
            vm.prank(callers[i]);
            rare.topUpJob(id, 0);
        }
    }

    function test_other_accounts_top_up_by_at_least_a_minute() external {
        bytes32 id = running(200 ether);
        endow(stranger, 2 * RATE);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, RATE - 1, RATE));
        vm.prank(stranger);
        rare.topUpJob(id, RATE - 1);
        vm.prank(stranger);
        rare.topUpJob(id, RATE);
        vm.assertEq(rare.get(id).cost.maxCost, 200 ether + RATE, "one minute more");
        vm.assertEq(rare.getTopUpJobQueueSize(provider), 1, "hint queued");
    }

    function test_a_top_up_of_a_free_job_queues_no_hint() external {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), ProviderPrices(0, 0, 0), labels());
        approve(provider);
        bytes32 id = running(100 ether);
        endow(stranger, 1);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 0, 1));
        vm.prank(stranger);
        rare.topUpJob(id, 0);
        vm.prank(stranger);
        rare.topUpJob(id, 1);
        vm.assertTrue(!rare.hasTopUpJob(provider), "the limit is already the longest");
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        skip(365 days);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 0, 1));
        delegate(id);
    }

    function test_a_hint_is_queued_only_for_more_minutes() external {
        bytes32 id = running(146 ether);
        vm.prank(customer);
        rare.topUpJob(id, RATE - 1);
        vm.assertTrue(!rare.hasTopUpJob(provider), "less than a minute");
        vm.prank(customer);
        rare.topUpJob(id, 1);
        vm.expectEmit(address(grid));
        emit ClaimNextTopUpJobEvent(id, provider, 1);
        vm.prank(provider);
        rare.claimNextTopUpJob();
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing pending");
    }

    function checkHint(bytes32 id, uint64 more) private {
        vm.expectEmit(address(grid));
        emit ClaimNextTopUpJobEvent(id, provider, more);
        vm.prank(provider);
        rare.claimNextTopUpJob();
    }

    function allowed(uint256 locked) private returns (bytes32 id) {
        id = claimed(locked);
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
    }

    function delegate(bytes32 id) private {
        vm.prank(operator);
        rare.topUpJobDelegate(id);
    }
}
