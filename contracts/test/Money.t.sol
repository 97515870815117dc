// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {InsufficientFunds} from "../src/Errors.sol";
import {BilledTooMuchEvent, JobSettledEvent} from "../src/Events.sol";
import {Job, JobStatus, JobTerms, ProviderPrices, Sizes} from "../src/Types.sol";
import {Billing} from "../src/libraries/Billing.sol";
import {Grid} from "./Grid.sol";
import {Vm, vm} from "./Vm.sol";

/// The cost of a job. At each kind of end, provider + cut + refund equals the deposit.
contract MoneyTest is Grid {
    struct Ending {
        uint256 locked;
        uint256 topUp;
        uint256 wait;
        uint256 ran;
        uint64 backdated;
        uint64 reported;
        uint256 status;
        bool cancelled;
        uint256 cancelledBefore;
    }

    function test_the_billing_table() external {
        uint256[][] memory rows = abi.decode(vm.parseJson(vm.readFile("billing.json"), ".rows"), (uint256[][]));
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            uint256 cutBefore = rare.platformCut();
            bytes32 id = running(row[0] * 1e16);
            uint256 customerBefore = credit.balanceOf(customer);
            uint256 providerBefore = credit.balanceOf(provider);
            skip(row[1]);
            if (row[2] > row[3] + 15) {
                vm.expectEmit(address(grid));
                emit BilledTooMuchEvent(id, provider, row[2]);
            }
            vm.expectEmit(address(grid));
            emit JobSettledEvent(id, provider, customer, uint64(row[3]), row[5] * 1e16, row[6] * 1e16, row[7] * 1e16);
            report(id, JobStatus.FINISHED, uint64(row[2]));
            vm.assertEq(rare.get(id).cost.finalCost, row[4] * 1e16, "cost");
            vm.assertEq(credit.balanceOf(provider) - providerBefore, row[5] * 1e16, "provider");
            vm.assertEq(rare.platformCut() - cutBefore, row[6] * 1e16, "cut");
            vm.assertEq(credit.balanceOf(customer) - customerBefore, row[7] * 1e16, "refund");
        }
    }

    function test_a_report_slightly_above_the_clock_is_clipped_without_an_event() external {
        bytes32 id = running(1000 ether);
        skip(5 minutes);
        vm.recordLogs();
        report(id, JobStatus.FINISHED, 20);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            vm.assertTrue(logs[i].topics[0] != BilledTooMuchEvent.selector, "no alarm");
        }
        vm.assertEq(rare.get(id).cost.finalCost, 5 * RATE, "cost");
    }

    function testFuzz_provider_cut_and_refund_are_what_was_locked(
        Ending memory how,
        uint256 gpuPrice,
        uint256 cpuPrice,
        uint256 memPrice,
        uint256 cut
    ) external {
        bound(how);
        reprice(gpuPrice % 20 ether, cpuPrice % 5 ether, memPrice % 0.001 ether);
        changeCut(cut %= 51);
        uint256 customerBefore = credit.balanceOf(customer);
        bytes32 id = request(how.locked);
        uint256 rate = Billing.ratePerMinute(Sizes(1, 1000, 2, 3), manager.getProviderPrices(provider));
        vm.assume(rate <= how.locked);
        assign(id);
        vm.prank(provider);
        grid.claimNextJob();
        play(id, how);

        Job memory job = rare.get(id);
        uint256 paid = credit.balanceOf(provider);
        uint256 refund = credit.balanceOf(customer) + how.locked + how.topUp - customerBefore;
        vm.assertEq(
            paid + rare.platformCut() + refund, how.locked + how.topUp, "the parts equal the deposit to the wei"
        );
        vm.assertEq(credit.balanceOf(address(grid)), rare.platformCut(), "nothing else is held");
        vm.assertEq(paid + rare.platformCut(), job.cost.finalCost, "paid + cut = cost");
        vm.assertEq(paid, job.cost.finalCost - job.cost.finalCost * cut / 100, "the provider's share");
        uint256 most = how.cancelled && job.status == JobStatus.CANCELLED && how.reported < 5 ? 5 : how.reported;
        vm.assertTrue(job.cost.finalCost <= most * rate, "never more than reported, or the cancellation fee");
        uint256 clock = how.wait + how.ran + (how.cancelled ? 5 minutes : 0);
        vm.assertTrue(job.cost.finalCost <= (clock / 60 + 1) * rate, "never more than started minutes, or the fee");
        if (job.status == JobStatus.PANICKED) vm.assertEq(job.cost.finalCost, 0, "panicked is free");
    }

    function test_an_end_before_running_costs_nothing() external {
        for (uint256 i = uint256(JobStatus.CANCELLED); i <= uint256(JobStatus.PANICKED); ++i) {
            if (i == uint256(JobStatus.FINISHED) || i == uint256(JobStatus.OUT_OF_CREDITS)) continue;
            bytes32 id = claimed(1000 ether);
            skip(1 hours);
            vm.expectEmit(address(grid));
            emit JobSettledEvent(id, provider, customer, 0, 0, 0, 1000 ether);
            report(id, JobStatus(i), 60);
            vm.assertEq(rare.jobTerms(id).startedAt, 0, "it never started");
        }
    }

    function test_a_panic_reported_by_the_provider_is_free_and_counted() external {
        bytes32 id = running(1000 ether);
        skip(10 minutes);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 0, 0, 0, 1000 ether);
        report(id, JobStatus.PANICKED, 10);
        vm.assertEq(manager.getRecord(provider).panicked, 1, "counted");
        vm.assertEq(rare.get(id).time.panicTimestamp, block.timestamp, "panic time");
    }

    function test_the_start_is_back_dated_but_not_before_the_claim() external {
        bytes32 id = claimed(1000 ether);
        uint256 claim = block.timestamp;
        skip(10 minutes);
        report(id, JobStatus.RUNNING, 3);
        vm.assertEq(rare.get(id).time.start, block.timestamp - 3 minutes, "back-dated");

        id = claimed(1000 ether);
        skip(10 minutes);
        report(id, JobStatus.RUNNING, type(uint64).max);
        vm.assertEq(rare.get(id).time.start, claim + 10 minutes, "not before the claim");
    }

    function test_price_and_cut_of_an_assigned_job_do_not_change() external {
        bytes32 id = assigned(1000 ether);
        reprice(80 ether, 10 ether, 0.001 ether);
        changeCut(45);
        vm.prank(provider);
        grid.claimNextJob();
        report(id, JobStatus.RUNNING, 0);
        skip(10 minutes);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 10, 116.8 ether, 29.2 ether, 854 ether);
        report(id, JobStatus.FINISHED, 10);
    }

    function test_a_free_provider_runs_jobs_up_to_the_longest_limit() external {
        reprice(0, 0, 0);
        bytes32 id = running(100 ether);
        JobTerms memory terms = rare.jobTerms(id);
        vm.assertEq(terms.ratePerMinute, 0, "rate");
        vm.assertEq(terms.limitMinutes, 525_600, "a year");
        skip(1 hours);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 60, 0, 0, 100 ether);
        report(id, JobStatus.FINISHED, 60);
    }

    function test_an_overflowing_price_saturates_and_only_excludes_its_provider() external {
        reprice(type(uint256).max, type(uint256).max, type(uint256).max);
        bytes32 id = request(1000 ether);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 1000 ether, type(uint128).max));
        assign(id);
        checkStatus(id, JobStatus.PENDING);
    }

    function test_a_job_that_cannot_buy_a_minute_is_not_assigned() external {
        reprice(100 ether, 0, 0);
        bytes32 id = request(100 ether);
        assign(id);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 1, "exactly one minute");
        reprice(100 ether + 1, 0, 0);
        id = request(100 ether);
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 100 ether, 100 ether + 1));
        assign(id);
    }

    function test_only_the_cut_can_be_withdrawn_by_the_admin_only() external {
        bytes32 id = running(1000 ether);
        running(1000 ether);
        skip(10 minutes);
        report(id, JobStatus.FINISHED, 10);
        uint256 cut = 29.2 ether;
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, cut, cut + 1));
        rare.withdrawAdmin(cut + 1);
        bytes32 adminRole = grid.DEFAULT_ADMIN_ROLE();
        vm.expectRevert(missingRole(operator, adminRole));
        vm.prank(operator);
        rare.withdrawAdmin(1);
        rare.withdrawAdmin(cut);
        vm.assertEq(credit.balanceOf(address(this)), cut, "withdrawn");
        vm.assertEq(rare.platformCut(), 0, "nothing left");
        vm.assertEq(credit.balanceOf(address(grid)), 1000 ether, "the other job's deposit is untouched");
    }

    function reprice(uint256 gpu, uint256 cpu, uint256 mem) private {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), ProviderPrices(gpu, cpu, mem), labels());
        approve(provider);
    }

    function bound(Ending memory how) private pure {
        how.locked = 100 ether + how.locked % 10_000 ether;
        how.wait %= 3 days;
        how.ran %= 30 days;
        how.topUp %= 1000 ether;
        how.cancelledBefore %= 1 hours;
        how.status = uint256(JobStatus.CANCELLED) + how.status % 5;
    }

    function play(bytes32 id, Ending memory how) private {
        skip(how.wait);
        report(id, JobStatus.RUNNING, how.backdated);
        if (how.topUp != 0) {
            vm.prank(customer);
            grid.topUpJob(id, how.topUp);
        }
        if (how.cancelled) cancel(id);
        skip(how.ran);
        report(id, JobStatus(how.status), how.reported);
    }
}
