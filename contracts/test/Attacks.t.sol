// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RateAboveCeiling} from "../src/Errors.sol";
import {JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Plays attacks and measures their gain over honest behaviour. `attacks.json` and docs/explanation/contracts.md list
/// the gains.
contract AttacksTest is Grid {
    uint256 private constant DEPOSIT = 2000 ether;

    function test_over_reporting() external {
        uint256 honest = earned(0, 0, 241, 5);
        checkGain("over_reporting", earned(0, 0, 241, type(uint64).max), honest);
    }

    function test_dating_the_start_back() external {
        uint256 honest = earned(10 minutes, 0, 300, 5);
        checkGain("dating_the_start_back", earned(10 minutes, 10, 300, 15), honest);
        checkGain("dating_the_start_back", earned(10 minutes, type(uint64).max, 300, type(uint64).max), honest);
    }

    function test_running_nothing() external {
        // 200 credits buy 13 minutes, so full payment takes 13 minutes
        bytes32 id = running(200 ether);
        skip(13 minutes + 1);
        report(id, JobStatus.OUT_OF_CREDITS, 14);
        checkGain("running_nothing", credit.balanceOf(provider), 0);
    }

    /// As often as the contract lets it, for a day. The allowance has no limit.
    function test_topping_up_a_job_that_runs_nothing() external {
        bytes32 id = running(200 ether);
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        uint256 paidMinutes = 13;
        for (uint256 i; i < 24 * 60; ++i) {
            skip(1 minutes);
            vm.prank(provider);
            try grid.topUpJobDelegate(id) {
                paidMinutes = rare.jobTerms(id).limitMinutes;
            } catch {}
        }
        report(id, JobStatus.OUT_OF_CREDITS, uint64(paidMinutes + 1));
        checkGain("topping_up_a_job_that_runs_nothing", credit.balanceOf(provider), 0);
    }

    /// A job without a ceiling. The operator approves and assigns.
    function test_dear_prices_for_a_waiting_job() external {
        bytes32 id = request(1000 ether);
        skip(1);
        reprice(60);
        vm.expectRevert(abi.encodeWithSelector(RateAboveCeiling.selector, 60 * RATE, 0));
        assign(id);
        address newcomer = address(0x2002);
        join(newcomer);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(RateAboveCeiling.selector, RATE, 0));
        grid.metaSchedule(id, newcomer);
        reprice(1);
        id = running(1000 ether);
        report(id, JobStatus.FINISHED, type(uint64).max);
        checkGain("dear_prices_for_a_waiting_job", credit.balanceOf(provider), 0);
    }

    /// A cancel after a minute costs the fee of the assignment.
    function test_raising_the_fee_of_a_running_job() external {
        uint256 honest = earnedByFee(5);
        checkGain("raising_the_fee_of_a_running_job", earnedByFee(60), honest);
        rare.setClaimJobTimeout(7 days / 60);
        uint256 answered = earnedWhenCancelled(10 minutes, 30);
        vm.assertEq(earnedWhenCancelled(7 days, 10_100), answered, "the time for an answer is no setting");
    }

    function earnedByFee(uint256 fee) private returns (uint256) {
        uint256 before = credit.balanceOf(provider);
        rare.setCancellationFeeMinute(5);
        bytes32 id = running(DEPOSIT);
        rare.setCancellationFeeMinute(fee);
        vm.assertEq(rare.jobTerms(id).feeMinutes, 5, "the fee of the assignment");
        skip(1 minutes);
        cancel(id);
        report(id, JobStatus.CANCELLED, 1);
        return credit.balanceOf(provider) - before;
    }

    function test_ignoring_a_cancel() external {
        uint256 honest = earnedWhenCancelled(0, 20);
        checkGain("ignoring_a_cancel", earnedWhenCancelled(10 minutes, 30), honest);
        checkGain("ignoring_a_cancel", earnedWhenCancelled(30 days, 43_220), honest);
    }

    function test_cancelling_at_the_last_second() external {
        uint256 honest = spent(3600, 60, false);
        checkGain("cancelling_at_the_last_second", honest, spent(3599, 60, true));
    }

    function test_cancelling_at_once() external {
        uint256 honest = spent(120, 2, false);
        checkGain("cancelling_at_once", honest, spent(120, 2, true));
    }

    function test_evicting_a_rivals_jobs() external {
        join(rival);
        endow(rival, DEPOSIT);
        for (uint256 i = 1; i < 4; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            skip(9 minutes);
            bytes32 before = keccak256(abi.encode(rare.get(id)));
            bytes[6] memory moves = [
                abi.encodeCall(rare.timeoutJob, (id)),
                abi.encodeCall(rare.refuseJob, (id)),
                abi.encodeCall(rare.cancelJob, (id)),
                abi.encodeCall(rare.panicJob, (id, "")),
                abi.encodeCall(grid.providerSetJobStatus, (id, JobStatus.PANICKED, 0, "", 0)),
                abi.encodeCall(grid.claimNextJob, ())
            ];
            for (uint256 m; m < moves.length; ++m) {
                vm.prank(rival);
                (bool passed,) = address(grid).call(moves[m]);
                vm.assertTrue(!passed, "refused");
            }
            vm.assertEq(keccak256(abi.encode(rare.get(id))), before, "unchanged");
            if (i == 1) cancel(id);
        }
        vm.assertEq(manager.getRecord(provider).timedOut, 0, "no time-out in the record");
        checkGain("evicting_a_rivals_jobs", credit.balanceOf(rival), DEPOSIT);
    }

    function test_splitting_into_many_short_jobs() external {
        uint256 whole = spent(610, 11, false);
        uint256 split;
        for (uint256 i; i < 10; ++i) {
            split += spent(61, 2, false);
        }
        checkGain("splitting_into_many_short_jobs", whole, split);
        vm.assertEq(spent(1, 1, false), RATE, "the shortest job costs a minute");
    }

    function test_raising_prices_after_the_match() external {
        uint256 honest = earned(0, 0, 300, 5);
        for (uint256 i = 1; i < 4; ++i) {
            uint256 before = credit.balanceOf(provider);
            bytes32 id = jobIn(JobStatus(i));
            reprice(10);
            if (i == 1) {
                vm.prank(provider);
                grid.claimNextJob();
            }
            if (i < 3) report(id, JobStatus.RUNNING, 0);
            skip(5 minutes);
            report(id, JobStatus.FINISHED, 5);
            checkGain("raising_prices_after_the_match", credit.balanceOf(provider) - before, honest);
            reprice(1);
        }
    }

    function test_vanishing() external {
        for (uint256 i = 2; i < 4; ++i) {
            uint256 before = credit.balanceOf(customer);
            bytes32 id = i == 2 ? claimed(200 ether) : running(200 ether);
            skip(13 minutes + 1 days); // the time that 200 credits buy, and the grace period
            vm.prank(customer);
            rare.timeoutJob(id);
            if (i == 2) cancel(id); // it is PENDING again: cancel it for a refund
            vm.assertEq(credit.balanceOf(customer), before, "the whole deposit is refunded");
        }
        checkGain("vanishing", credit.balanceOf(provider), 0);
    }

    function earned(uint256 waited, uint64 datedBack, uint256 ran, uint64 reported) private returns (uint256) {
        uint256 before = credit.balanceOf(provider);
        bytes32 id = claimed(DEPOSIT);
        skip(waited);
        report(id, JobStatus.RUNNING, datedBack);
        skip(ran);
        report(id, JobStatus.FINISHED, reported);
        return credit.balanceOf(provider) - before;
    }

    function earnedWhenCancelled(uint256 answeredAfter, uint64 reported) private returns (uint256) {
        uint256 before = credit.balanceOf(provider);
        bytes32 id = running(DEPOSIT);
        skip(20 minutes);
        cancel(id);
        skip(answeredAfter);
        report(id, JobStatus.CANCELLED, reported);
        return credit.balanceOf(provider) - before;
    }

    /// Cost of a job that ran for this time.
    function spent(uint256 ran, uint64 reported, bool cancelled) private returns (uint256) {
        uint256 before = credit.balanceOf(customer);
        bytes32 id = running(DEPOSIT);
        skip(ran);
        if (cancelled) cancel(id);
        report(id, cancelled ? JobStatus.CANCELLED : JobStatus.FINISHED, reported);
        return before - credit.balanceOf(customer);
    }

    function reprice(uint256 factor) private {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), scaled(factor), labels());
        approve(provider);
    }

    function checkGain(string memory attack, uint256 more, uint256 less) private view {
        bytes memory found = vm.parseJson(vm.readFile("attacks.json"), string.concat(".gains.", attack));
        vm.assertEq(int256(more) - int256(less), abi.decode(found, (int256)) * 0.01 ether, attack);
    }
}
