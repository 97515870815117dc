// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    ArrayLengthMismatch,
    GiveUpTooSoon,
    InsufficientFunds,
    InvalidJob,
    JobGivenUp,
    JobWaits,
    NoEarlierJob,
    NotGivenUp,
    PendingStatusOnly,
    RateAboveCeiling
} from "../src/Errors.sol";
import {BatchItemSkippedEvent} from "../src/Events.sol";
import {
    Assignment,
    Job,
    JobDefinition,
    JobRequest,
    JobStatus,
    JobTerms,
    Permit,
    ProviderPrices,
    Wishes
} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// A customer's wishes bind the assignment of a job, and end it in time. A job without wishes knows none of this.
contract WishesTest is Grid {
    function test_wishes_read_as_requested_by_each_form() external {
        Wishes memory asked = Wishes(uint96(RATE), 7, 1_800_000_300, 2, 0, false);
        JobRequest[] memory requests = new JobRequest[](2);
        requests[0] = JobRequest(definition(), 200 ether, "a", false);
        requests[1] = JobRequest(definition(), 300 ether, "b", true);
        Wishes[] memory wishes = new Wishes[](2);
        wishes[1] = asked;
        wish(200 ether, asked);
        vm.prank(customer);
        grid.requestNewJobWithWishesAndPermit(
            definition(), 200 ether, "job", false, asked, Permit(0, 0, 27, bytes32(0), bytes32(0))
        );
        vm.prank(customer);
        bytes32[] memory ids = grid.requestNewJobsWithWishes(requests, wishes);
        vm.assertEq(uint256(ids[1]), 4, "ids count up");
        request(100 ether);
        Wishes memory none;
        Wishes[5] memory expected = [asked, asked, none, asked, none];
        for (uint256 i; i < 5; ++i) {
            checkWishes(bytes32(i + 1), expected[i]);
            Job memory job = rare.get(bytes32(i + 1));
            vm.assertEq(abi.encode(job.definition), abi.encode(definition()), "the definition is whole");
        }
        vm.assertEq(rare.get(ids[1]).jobName, "b", "name");
        vm.expectRevert(ArrayLengthMismatch.selector);
        vm.prank(customer);
        grid.requestNewJobsWithWishes(requests, new Wishes[](1));
    }

    function test_a_rate_above_the_ceiling_is_refused_and_skipped_in_a_batch() external {
        bytes32 dear = wish(200 ether, Wishes(uint96(RATE - 1), 0, 0, 0, 0, false));
        bytes32 exact = wish(200 ether, Wishes(uint96(RATE), 0, 0, 0, 0, false));
        bytes memory refusal = abi.encodeWithSelector(RateAboveCeiling.selector, RATE, RATE - 1);
        vm.expectRevert(refusal);
        assign(dear);
        Assignment[] memory both = new Assignment[](2);
        (both[0], both[1]) = (Assignment(dear, provider), Assignment(exact, provider));
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(0, dear, refusal);
        vm.prank(operator);
        grid.metaScheduleJobs(both);
        checkStatus(dear, JobStatus.PENDING);
        checkStatus(exact, JobStatus.META_SCHEDULED);
    }

    function test_a_deposit_must_buy_the_wished_minutes() external {
        bytes32 id = wish(10 * RATE, Wishes(0, 11, 0, 0, 0, false));
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 10 * RATE, 11 * RATE));
        assign(id);
        id = wish(10 * RATE, Wishes(0, 10, 0, 0, 0, false));
        assign(id);
        checkStatus(id, JobStatus.META_SCHEDULED);
    }

    function test_any_account_ends_a_pending_job_from_the_wished_time_on() external {
        uint256 end = block.timestamp + 1 hours;
        bytes32 id = wish(200 ether, Wishes(0, 0, uint40(end), 0, 0, false));
        uint256 before = credit.balanceOf(customer);
        vm.warp(end - 1);
        checkNotGivenUp(id, abi.encodeWithSelector(NotGivenUp.selector, end));
        vm.warp(end);
        vm.expectRevert(abi.encodeWithSelector(JobGivenUp.selector, end));
        assign(id);
        vm.prank(stranger);
        rare.giveUpJob(id);
        checkStatus(id, JobStatus.CANCELLED);
        Job memory job = rare.get(id);
        vm.assertEq(credit.balanceOf(customer) - before, 200 ether, "the whole deposit is back");
        vm.assertTrue(job.cost.finalCost == 0 && !job.hasCancelRequest, "free, and not on request");
        vm.assertEq(job.time.end, end, "end");
        checkNotGivenUp(id, abi.encodeWithSelector(PendingStatusOnly.selector, JobStatus.CANCELLED));
    }

    function test_only_a_pending_job_with_that_wish_is_given_up() external {
        checkNotGivenUp(request(200 ether), abi.encodeWithSelector(NotGivenUp.selector, 0));
        bytes32 ceiling = wish(200 ether, Wishes(uint96(RATE), 1, 0, 3, 0, false));
        checkNotGivenUp(ceiling, abi.encodeWithSelector(NotGivenUp.selector, 0));
        bytes32 id = wish(200 ether, Wishes(0, 0, uint40(block.timestamp + 5 minutes), 0, 0, false));
        assign(id);
        skip(1 hours);
        checkNotGivenUp(id, abi.encodeWithSelector(PendingStatusOnly.selector, JobStatus.META_SCHEDULED));
        vm.prank(provider);
        rare.refuseJob(id);
        vm.prank(stranger);
        rare.giveUpJob(id);
        checkStatus(id, JobStatus.CANCELLED);
        vm.assertEq(rare.jobTerms(id).lastRefuser, provider, "the history stays");
    }

    function test_a_batch_of_give_ups_skips_what_the_single_call_refuses() external {
        Wishes memory soon = Wishes(0, 0, uint40(block.timestamp + 5 minutes), 0, 0, false);
        bytes32[] memory ids = new bytes32[](5);
        (ids[0], ids[1], ids[2]) = (wish(200 ether, soon), request(200 ether), wish(200 ether, soon));
        (ids[3], ids[4]) = (wish(300 ether, soon), ids[0]);
        cancel(ids[2]);
        skip(5 minutes);
        uint256 before = credit.balanceOf(customer);
        JobStatus ended = JobStatus.CANCELLED;
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(1, ids[1], abi.encodeWithSelector(NotGivenUp.selector, 0));
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(2, ids[2], abi.encodeWithSelector(PendingStatusOnly.selector, ended));
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(4, ids[0], abi.encodeWithSelector(PendingStatusOnly.selector, ended));
        vm.prank(stranger);
        rare.giveUpJobs(ids);
        checkStatus(ids[0], ended);
        checkStatus(ids[1], JobStatus.PENDING);
        checkStatus(ids[3], ended);
        vm.assertEq(credit.balanceOf(customer) - before, 500 ether, "each deposit is back once");
        ids[3] = bytes32(uint256(99));
        vm.expectRevert(InvalidJob.selector);
        rare.giveUpJobs(ids);
    }

    function test_a_request_waits_for_five_minutes_at_least() external {
        uint256 earliest = block.timestamp + 5 minutes;
        Wishes[2] memory asked = [Wishes(0, 0, 1, 0, 0, false), Wishes(0, 0, uint40(earliest - 1), 0, 0, false)];
        JobRequest[] memory requests = new JobRequest[](2);
        requests[0] = requests[1] = JobRequest(definition(), 200 ether, "a", false);
        Permit memory unused = Permit(0, 0, 27, bytes32(0), bytes32(0));
        for (uint256 i; i < 2; ++i) {
            bytes memory refusal = abi.encodeWithSelector(GiveUpTooSoon.selector, asked[i].giveUpAt, earliest);
            JobDefinition memory job = definition();
            Wishes[] memory wishes = new Wishes[](2);
            wishes[1] = asked[i];
            vm.startPrank(customer);
            vm.expectRevert(refusal);
            grid.requestNewJobWithWishes(job, 200 ether, "job", false, asked[i]);
            vm.expectRevert(refusal);
            grid.requestNewJobWithWishesAndPermit(job, 200 ether, "job", false, asked[i], unused);
            vm.expectRevert(refusal);
            grid.requestNewJobsWithWishes(requests, wishes);
            vm.stopPrank();
        }
        checkWishes(
            wish(200 ether, Wishes(0, 0, uint40(earliest), 0, 0, false)), Wishes(0, 0, uint40(earliest), 0, 0, false)
        );
    }

    function test_wishes_outlive_a_job_and_change_nothing_of_its_bill() external {
        Wishes memory asked = Wishes(uint96(RATE), 3, uint40(block.timestamp + 5 minutes), 1, 0, false);
        bytes32 id = wish(200 ether, asked);
        assign(id);
        vm.prank(provider);
        grid.claimNextJob();
        report(id, JobStatus.RUNNING, 0);
        skip(5 minutes);
        report(id, JobStatus.FINISHED, 5);
        vm.assertEq(rare.get(id).cost.finalCost, 5 * RATE, "cost");
        checkWishes(id, asked);
    }

    function testFuzz_wishes_decide_as_written(uint96 ceiling, uint32 minutes_, uint40 end, uint8 prefer, uint96 locked)
        external
    {
        locked = uint96(100 ether + locked % 100_000 ether);
        if (ceiling % 2 == 0) ceiling %= 30 ether;
        if (minutes_ % 2 == 0) minutes_ %= 10_000;
        uint256 earliest = block.timestamp + 5 minutes;
        if (end % 2 == 0) end = uint40(earliest + end % 1 hours);
        else if (end < earliest) end = 0;
        bytes32 id = wish(locked, Wishes(ceiling, minutes_, end, prefer, 0, false));
        skip(30 minutes);
        checkWishes(id, Wishes(ceiling, minutes_, end, prefer, 0, false));
        bool fits = (ceiling == 0 || RATE <= ceiling) && uint256(minutes_) * RATE <= locked;
        bool over = end != 0 && block.timestamp >= end;
        vm.prank(operator);
        (bool passed,) = address(grid).call(abi.encodeCall(grid.metaSchedule, (id, provider)));
        vm.assertTrue(passed == (fits && !over), "assigned");
        (bool ended,) = address(grid).call(abi.encodeCall(rare.giveUpJob, (id)));
        vm.assertTrue(ended == (over && !passed), "given up");
    }

    /// Wishes of records of each length, next to records without them.
    function testFuzz_wishes_in_a_batch_stay_with_their_jobs(uint256 seed, uint8 count) external {
        JobRequest[] memory requests = new JobRequest[](1 + count % 8);
        Wishes[] memory wishes = new Wishes[](requests.length);
        for (uint256 i; i < requests.length; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            requests[i] = JobRequest(definition(), 100 ether + seed % 1000 ether, bytes32(seed), false);
            requests[i].definition.batchLocationHash = string(new bytes(seed % 257));
            requests[i].definition.gpus = uint64(seed);
            if (seed >> 200 & 1 == 0) continue;
            uint40 end = uint40(block.timestamp + 5 minutes) + uint32(seed >> 32);
            wishes[i] = Wishes(uint96(seed >> 8), uint32(seed >> 16), end, uint8(seed >> 64), 0, false);
        }
        vm.prank(customer);
        bytes32[] memory ids = grid.requestNewJobsWithWishes(requests, wishes);
        for (uint256 i; i < ids.length; ++i) {
            checkWishes(ids[i], wishes[i]);
            Job memory job = rare.get(ids[i]);
            vm.assertEq(abi.encode(job.definition), abi.encode(requests[i].definition), "definition");
            vm.assertEq(job.jobName, requests[i].jobName, "name");
        }
    }

    function test_pages_of_pending_jobs_hold_each_of_them_once_with_its_wishes() external {
        for (uint256 i; i < 12; ++i) {
            if (i % 3 == 0) request(200 ether);
            else wish(200 ether, Wishes(uint96(20 ether + i), uint32(i), 0, uint8(i), 0, false));
        }
        cancel(bytes32(uint256(2)));
        assign(bytes32(uint256(5)));
        uint256 found;
        for (uint256 first = 1; first <= 12; first += 5) {
            (Job[] memory page, JobTerms[] memory terms, Wishes[] memory wishes) = rare.pendingJobs(first, 5);
            vm.assertTrue(page.length == terms.length && page.length == wishes.length, "one of each");
            for (uint256 i; i < page.length; ++i) {
                uint256 id = uint256(page[i].jobId);
                vm.assertTrue(id > found && id != 2 && id != 5, "pending ones, in order");
                vm.assertEq(abi.encode(page[i]), abi.encode(rare.get(page[i].jobId)), "whole");
                checkWishes(page[i].jobId, wishes[i]);
                found = id;
            }
        }
        vm.assertEq(found, 12, "to the last one");
        (Job[] memory all,,) = rare.pendingJobs(0, type(uint256).max);
        vm.assertEq(all.length, 10, "all at once");
        (Job[] memory beyond,,) = rare.pendingJobs(13, 5);
        vm.assertEq(beyond.length, 0, "none beyond the last");
        (beyond,,) = rare.pendingJobs(type(uint256).max, type(uint256).max);
        vm.assertEq(beyond.length, 0, "nothing overflows");
    }

    // ---------------------------------------------------------------- prices in force at the request

    function test_a_job_without_a_ceiling_goes_only_to_prices_of_its_request_or_lower() external {
        bytes32 open = request(1000 ether);
        bytes32 bounded = wish(1000 ether, Wishes(uint96(2 * RATE), 0, 0, 0, 0, false));
        vm.assertEq(rare.raisedAt(provider), block.timestamp - 1, "the first approval");
        reprice(2);
        vm.assertEq(rare.raisedAt(provider), block.timestamp - 1, "the second one, which raises prices");
        bytes memory refusal = abi.encodeWithSelector(RateAboveCeiling.selector, 2 * RATE, 0);
        vm.expectRevert(refusal);
        assign(open);
        assign(bounded);
        Assignment[] memory one = new Assignment[](1);
        one[0] = Assignment(open, provider);
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(0, open, refusal);
        vm.prank(operator);
        grid.metaScheduleJobs(one);
        open = request(1000 ether);
        assign(open);
        vm.assertEq(rare.jobTerms(open).ratePerMinute, 2 * RATE, "the prices of its request");
        open = request(1000 ether);
        reprice(1);
        assign(open);
        vm.assertEq(rare.jobTerms(open).ratePerMinute, RATE, "lower ones");
    }

    function test_a_price_that_rises_in_the_second_of_the_request_counts_as_raised() external {
        bytes32 open = request(1000 ether);
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), scaled(2), labels());
        bytes32 hash = manager.proposalHash(provider);
        vm.prank(operator);
        manager.approveProposal(provider, hash);
        vm.expectRevert(abi.encodeWithSelector(RateAboveCeiling.selector, 2 * RATE, 0));
        assign(open);
    }

    function test_each_price_alone_counts_and_other_changes_do_not() external {
        for (uint256 i; i < 3; ++i) {
            uint256 before = rare.raisedAt(provider);
            skip(10);
            ProviderPrices memory changed = prices();
            vm.prank(provider);
            manager.register(hardware(1, 8, 32, 128_000), changed, labels());
            approve(provider);
            vm.assertEq(rare.raisedAt(provider), before, "the same prices");
            if (i == 0) ++changed.gpuPricePerMin;
            if (i == 1) ++changed.cpuPricePerMin;
            if (i == 2) ++changed.memPricePerMin;
            if (i != 0) changed.gpuPricePerMin = 0;
            vm.prank(provider);
            manager.register(hardware(2, 4, 16, 64_000), changed, labels());
            approve(provider);
            vm.assertEq(rare.raisedAt(provider), block.timestamp - 1, "one price is higher");
            reprice(1);
        }
    }

    function test_a_ban_and_its_end_raise_no_price() external {
        bytes32 open = request(1000 ether);
        skip(10);
        vm.prank(operator);
        manager.ban(provider);
        vm.prank(operator);
        manager.unban(provider);
        assign(open);
    }

    function reprice(uint256 factor) private {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), scaled(factor), labels());
        approve(provider);
    }

    // ---------------------------------------------------------------- jobs that wait for another one

    function test_a_job_waits_until_the_earlier_one_has_finished() external {
        for (uint256 state; state < 9; ++state) {
            bytes32 first = jobIn(JobStatus(state));
            bytes32 finished = wish(200 ether, chained(first, false));
            bytes32 ended = wish(200 ether, chained(first, true));
            checkWishes(finished, chained(first, false));
            checkWishes(ended, chained(first, true));
            checkAssigned(finished, first, JobStatus(state) == JobStatus.FINISHED);
            checkAssigned(ended, first, state > uint256(JobStatus.RUNNING));
            if (state < 4) cancel(first);
            if (state == 2 || state == 3) report(first, JobStatus.CANCELLED, 0);
        }
    }

    function test_a_job_whose_earlier_one_fails_ends_with_its_deposit() external {
        for (uint256 state; state < 9; ++state) {
            bytes32 first = jobIn(JobStatus(state));
            bytes32 finished = wish(200 ether, chained(first, false));
            bytes32 ended = wish(200 ether, chained(first, true));
            checkNotGivenUp(ended, abi.encodeWithSelector(NotGivenUp.selector, 0));
            bool failed = state > uint256(JobStatus.RUNNING) && JobStatus(state) != JobStatus.FINISHED;
            if (!failed) {
                checkNotGivenUp(finished, abi.encodeWithSelector(NotGivenUp.selector, 0));
            } else {
                uint256 before = credit.balanceOf(customer);
                vm.prank(stranger);
                rare.giveUpJob(finished);
                checkStatus(finished, JobStatus.CANCELLED);
                vm.assertEq(credit.balanceOf(customer) - before, 200 ether, "the whole deposit");
            }
            if (state < 4) cancel(first);
            if (state == 2 || state == 3) report(first, JobStatus.CANCELLED, 0);
        }
    }

    /// The first job is taken back from its provider, fails at the next one, and takes the whole chain with it.
    function test_a_failure_ends_each_job_of_a_chain() external {
        bytes32 first = claimed(200 ether);
        bytes32 second = wish(200 ether, chained(first, false));
        bytes32 third = wish(200 ether, chained(second, false));
        bytes32 last = wish(200 ether, chained(third, true));
        vm.prank(provider);
        rare.refuseJob(first);
        checkNotGivenUp(second, abi.encodeWithSelector(NotGivenUp.selector, 0));
        cancel(first);
        checkNotGivenUp(third, abi.encodeWithSelector(NotGivenUp.selector, 0));
        bytes32[] memory ids = new bytes32[](3);
        (ids[0], ids[1], ids[2]) = (second, third, last);
        vm.prank(stranger);
        rare.giveUpJobs(ids);
        checkStatus(second, JobStatus.CANCELLED);
        checkStatus(third, JobStatus.CANCELLED);
        assign(last);
    }

    function test_a_job_waits_only_for_one_that_exists() external {
        bytes32 first = request(200 ether);
        bytes memory refusal = abi.encodeWithSelector(NoEarlierJob.selector, 2);
        JobDefinition memory asked = definition();
        vm.expectRevert(refusal);
        vm.prank(customer);
        grid.requestNewJobWithWishes(asked, 200 ether, "job", false, chained(bytes32(uint256(2)), true));
        JobRequest[] memory requests = new JobRequest[](2);
        requests[0] = JobRequest(asked, 200 ether, "a", false);
        requests[1] = JobRequest(asked, 200 ether, "b", false);
        Wishes[] memory wishes = new Wishes[](2);
        wishes[1] = chained(bytes32(uint256(2)), false); // the first one of the same batch
        vm.expectRevert(refusal);
        vm.prank(customer);
        grid.requestNewJobsWithWishes(requests, wishes);
        wishes[1] = chained(first, false);
        vm.prank(customer);
        bytes32[] memory ids = grid.requestNewJobsWithWishes(requests, wishes);
        checkWishes(ids[0], wishes[0]);
        checkWishes(ids[1], wishes[1]);
        Wishes memory none = Wishes(0, 0, 0, 0, 0, true);
        bytes32 id = wish(200 ether, none);
        none.afterAny = false;
        checkWishes(id, none);
        assign(id);
    }

    function test_a_waiting_job_keeps_its_other_wishes() external {
        bytes32 first = jobIn(JobStatus.FINISHED);
        Wishes memory asked = Wishes(uint96(RATE - 1), 7, uint40(block.timestamp + 5 minutes), 3, 1, false);
        bytes32 id = wish(200 ether, asked);
        vm.assertEq(uint256(first), 1, "the first job");
        checkWishes(id, asked);
        vm.assertEq(abi.encode(rare.get(id).definition), abi.encode(definition()), "definition");
        vm.expectRevert(abi.encodeWithSelector(RateAboveCeiling.selector, RATE, RATE - 1));
        assign(id);
        skip(5 minutes);
        vm.prank(stranger);
        rare.giveUpJob(id);
    }

    function chained(bytes32 first, bool any) private pure returns (Wishes memory wishes) {
        (wishes.afterJob, wishes.afterAny) = (uint32(uint256(first)), any);
    }

    function checkAssigned(bytes32 id, bytes32 first, bool ready) private {
        if (!ready) vm.expectRevert(abi.encodeWithSelector(JobWaits.selector, first));
        assign(id);
        cancel(id);
    }

    function checkNotGivenUp(bytes32 id, bytes memory refusal) private {
        vm.expectRevert(refusal);
        vm.prank(stranger);
        rare.giveUpJob(id);
    }

    function checkWishes(bytes32 id, Wishes memory expected) private view {
        bytes32[] memory ids = new bytes32[](1);
        ids[0] = id;
        (,, Wishes[] memory found) = rare.getMany(ids);
        vm.assertEq(abi.encode(found[0]), abi.encode(expected), "wishes");
    }

    function wish(uint256 locked, Wishes memory wishes) private returns (bytes32) {
        JobDefinition memory asked = definition();
        vm.prank(customer);
        return grid.requestNewJobWithWishes(asked, locked, "job", false, wishes);
    }
}
