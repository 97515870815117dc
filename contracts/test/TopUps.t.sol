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
    RunningScheduledStatusOnly,
    SpendingLimitReached
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
        grid.topUpJob(id, 50 ether);
        vm.prank(customer);
        grid.topUpJob(id, 1 ether);
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
        grid.topUpJob(id, 14 ether);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 10, "less than a minute");
        vm.prank(customer);
        grid.topUpJob(id, 0.6 ether);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 11, "one minute more");
        checkHint(id, 1);
    }

    function test_hints_add_up_to_the_limit() external {
        bytes32 id = claimed(200 ether);
        uint256[5] memory amounts = [uint256(14 ether), 15 ether, 0.4 ether, 100 ether, 7 ether];
        uint256 limit = rare.jobTerms(id).limitMinutes;
        for (uint256 i; i < 5; ++i) {
            vm.prank(customer);
            grid.topUpJob(id, amounts[i]);
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
        grid.topUpJob(id, 50 ether);
        vm.prank(provider);
        rare.refuseJob(id);
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing pending");
        assign(id);
        vm.prank(provider);
        grid.claimNextJob();
        vm.assertEq(rare.jobTerms(id).limitMinutes, 17, "the limit of the claim");
        vm.prank(customer);
        grid.topUpJob(id, RATE);
        checkHint(id, 1);
    }

    function test_the_customer_gets_the_refund_of_a_strangers_top_up() external {
        bytes32 id = running(200 ether);
        endow(stranger, 100 ether);
        vm.prank(stranger);
        grid.topUpJob(id, 100 ether);
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
            grid.topUpJob(id, 1 ether);
            if (i == 1) cancel(id);
        }
    }

    function test_an_automatic_top_up_takes_one_slice_from_the_customer() external {
        address[3] memory callers = [customer, provider, operator];
        for (uint256 i; i < 3; ++i) {
            bytes32 id = allowed(10 * RATE);
            allow(id, 1000 ether);
            uint256 before = credit.balanceOf(customer);
            vm.prank(callers[i]);
            grid.topUpJobDelegate(id);
            vm.assertEq(before - credit.balanceOf(customer), 30 * RATE, "one slice");
            vm.assertEq(rare.jobTerms(id).limitMinutes, 40, "limit");
            vm.assertEq(rare.spendable(id), 1000 ether - 30 * RATE, "the rest of the limit");
            report(id, JobStatus.FAILED, 0);
        }
    }

    function test_an_automatic_top_up_needs_caller_authority_state_and_little_time_left() external {
        bytes32 id = allowed(11 * RATE);
        allow(id, 1000 ether);
        vm.expectRevert(CustomerMetaSchedulerProviderOnly.selector);
        vm.prank(stranger);
        grid.topUpJobDelegate(id);

        vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 11, 10));
        delegate(id);
        report(id, JobStatus.RUNNING, 0);
        skip(59);
        vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 11, 10));
        delegate(id);
        skip(1);
        delegate(id);
        skip(40 minutes); // 41 minutes are bought
        delegate(id);
        skip(10 hours); // long past its limit
        vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 0, 10));
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
        bytes32 id = allowed(10 * RATE);
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
        grid.topUpJob(id, 1 + second % 10_000 ether);
        vm.assertTrue(rare.jobTerms(id).limitMinutes >= before, "monotone");
    }

    function test_a_top_up_of_zero_reverts() external {
        bytes32 id = running(200 ether);
        address[3] memory callers = [customer, provider, stranger];
        for (uint256 i; i < 3; ++i) {
            uint256 least = i == 0 ? 1 : RATE;
            vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 0, least));
            vm.prank(callers[i]);
            grid.topUpJob(id, 0);
        }
    }

    function test_other_accounts_top_up_by_at_least_a_minute() external {
        bytes32 id = running(200 ether);
        endow(stranger, 2 * RATE);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, RATE - 1, RATE));
        vm.prank(stranger);
        grid.topUpJob(id, RATE - 1);
        vm.prank(stranger);
        grid.topUpJob(id, RATE);
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
        grid.topUpJob(id, 0);
        vm.prank(stranger);
        grid.topUpJob(id, 1);
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
        grid.topUpJob(id, RATE - 1);
        vm.assertTrue(!rare.hasTopUpJob(provider), "less than a minute");
        vm.prank(customer);
        grid.topUpJob(id, 1);
        vm.expectEmit(address(grid));
        emit ClaimNextTopUpJobEvent(id, provider, 1);
        vm.prank(provider);
        rare.claimNextTopUpJob();
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing pending");
    }

    // ---------------------------------------------------------------- the customer's limit

    function test_automatic_top_ups_take_at_most_the_limit_of_the_customer() external {
        bytes32 id = allowed(200 ether);
        vm.assertEq(rare.spendable(id), 200 ether, "as much as the deposit");
        report(id, JobStatus.RUNNING, 0);
        skip(13 minutes);
        delegate(id);
        vm.assertEq(rare.get(id).cost.maxCost, 400 ether, "less than a slice, because the limit has no more");
        vm.assertEq(rare.spendable(id), 0, "used up");
        skip(14 minutes);
        vm.expectRevert(abi.encodeWithSelector(SpendingLimitReached.selector, 0, RATE));
        delegate(id);
        allow(id, RATE - 1);
        vm.expectRevert(abi.encodeWithSelector(SpendingLimitReached.selector, RATE - 1, RATE));
        delegate(id);
        allow(id, 31 * RATE);
        delegate(id);
        vm.assertEq(rare.spendable(id), RATE, "one slice less");
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        vm.assertEq(rare.spendable(id), 200 ether, "as much as the deposit again, from now on");
        report(id, JobStatus.FINISHED, 1);
        vm.assertEq(rare.spendable(id), 0, "nothing for an ended job");
    }

    function test_a_limit_of_zero_ends_the_authority_and_each_form_of_it_gives_it() external {
        bytes32 id = allowed(200 ether);
        allow(id, 0);
        vm.assertTrue(!rare.get(id).cost.delegateSpendingAuthority, "none");
        vm.assertEq(rare.spendable(id), 0, "nothing");
        vm.expectRevert(NoSpendingAuthority.selector);
        delegate(id);
        allow(id, type(uint256).max);
        vm.assertTrue(rare.get(id).cost.delegateSpendingAuthority, "authority");
        vm.assertEq(rare.spendable(id), type(uint96).max - 1, "as much as a job can hold");
        vm.expectRevert(abi.encodeWithSelector(CustomerOnly.selector, provider, customer));
        vm.prank(provider);
        rare.setSpendingLimit(id, 1);
        cancel(id);
        report(id, JobStatus.CANCELLED, 0);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.CANCELLED));
        allow(id, 1);
    }

    function test_top_ups_by_hand_and_refusals_leave_the_limit() external {
        bytes32 id = allowed(200 ether);
        allow(id, 300 ether);
        vm.prank(customer);
        grid.topUpJob(id, 50 ether);
        vm.prank(provider);
        rare.refuseJob(id);
        vm.assertEq(rare.spendable(id), 300 ether, "the same limit");
        assign(id);
        vm.assertEq(rare.spendable(id), 300 ether, "at the next provider too");
    }

    function allow(bytes32 id, uint256 limit) private {
        vm.prank(customer);
        rare.setSpendingLimit(id, limit);
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
        grid.topUpJobDelegate(id);
    }
}
