// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RemainingTimeAboveLimit} from "../src/Errors.sol";
import {ClaimNextTopUpJobEvent, JobSettledEvent} from "../src/Events.sol";
import {Job, JobStatus, ProviderPrices, ProviderRecord} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Computes the worked cases of docs/explanation/contracts.md from `cases.json`: minutes, faults, cancelling,
/// top-ups.
contract CasesTest is Grid {
    uint256 private constant HUNDREDTH = 0.01 ether;
    uint256 private constant DEPOSIT = 1000 ether;

    // actions as numbered in the file; a number below 10 is a state that the provider reports
    uint256 private constant ROLE_PANICS = 10;
    uint256 private constant REFUSES = 11;
    uint256 private constant ANYBODY_TIMES_OUT = 12;
    uint256 private constant ROLE_TIMES_OUT = 13;
    uint256 private constant CUSTOMER_TIMES_OUT = 14;
    uint256 private constant CUSTOMER_CALLS_AGAIN = 20;

    function test_minutes() external {
        uint256[][] memory rows = rowsOf(".minutes.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            bytes32 id = claimed(DEPOSIT);
            skip(row[0]);
            report(id, JobStatus.RUNNING, uint64(row[1]));
            skip(row[2]);
            vm.expectEmit(address(grid));
            emit JobSettledEvent(
                id,
                provider,
                customer,
                uint64(row[4]),
                row[5] * HUNDREDTH * 80 / 100,
                row[5] * HUNDREDTH * 20 / 100,
                DEPOSIT - row[5] * HUNDREDTH
            );
            report(id, JobStatus.FINISHED, uint64(row[3]));
        }
    }

    function test_faults() external {
        uint256[][] memory rows = rowsOf(".faults.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            ProviderRecord memory before = manager.getRecord(provider);
            bytes32 id = jobIn(JobStatus(row[0]));
            skip(row[2]);
            act(id, row[1], row[3]);
            checkEnd(id, row[4], row[6]);
            ProviderRecord memory record = manager.getRecord(provider);
            vm.assertEq(record.refused - before.refused, row[7], "refused");
            vm.assertEq(record.panicked - before.panicked, row[8], "panicked");
            vm.assertEq(record.timedOut - before.timedOut, row[9], "timed out");
            if (row[4] == 0) cancel(id);
        }
    }

    function test_cancelling() external {
        rare.setMinimumAmount(0);
        uint256[][] memory rows = rowsOf(".cancelling.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            uint256 timedOut = manager.getRecord(provider).timedOut;
            bytes32 id = jobHolding(row[0], row[1] * HUNDREDTH);
            skip(row[2]);
            cancel(id);
            skip(row[3]);
            if (row[0] > 1) act(id, row[4], row[5]);
            checkEnd(id, row[6], row[8]);
            vm.assertEq(manager.getRecord(provider).timedOut - timedOut, row[9], "timed out");
        }
    }

    function test_released() external {
        uint256[][] memory rows = rowsOf(".released.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            bytes32 id = jobHolding(row[0], row[1] * HUNDREDTH);
            skip(row[2]);
            cancel(id);
            skip(row[3]);
            cancel(id);
            checkHeld(id, row[4], row[5]);
            skip(row[6]);
            uint256 timedOut = manager.getRecord(provider).timedOut;
            act(id, row[7], row[8]);
            vm.assertEq(manager.getRecord(provider).timedOut - timedOut, row[12], "timed out");
            if (row[9] == uint256(JobStatus.RUNNING)) {
                checkHeld(id, row[4], row[5]);
                report(id, JobStatus.FAILED, 0);
            } else {
                checkEnd(id, row[9], row[11]);
            }
        }
    }

    function test_top_ups_by_hand() external {
        rare.setMinimumAmount(0);
        uint256[][] memory rows = rowsOf(".top_ups.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            bytes32 id = claimed(row[0] * HUNDREDTH);
            vm.assertEq(rare.jobTerms(id).limitMinutes, row[3], "limit before");
            topUp(id, row[1] * HUNDREDTH);
            vm.assertEq(rare.jobTerms(id).limitMinutes, row[4], "limit after the first top-up");
            topUp(id, row[2] * HUNDREDTH);
            vm.assertEq(rare.get(id).cost.pendingTopUp, (row[1] + row[2]) * HUNDREDTH, "pending top-up");
            vm.expectEmit(address(grid));
            emit ClaimNextTopUpJobEvent(id, provider, uint64(row[5] - row[3]));
            vm.prank(provider);
            rare.claimNextTopUpJob();
        }
    }

    function test_automatic_top_ups() external {
        uint256[][] memory rows = rowsOf(".automatic.rows");
        for (uint256 i; i < rows.length; ++i) {
            uint256[] memory row = rows[i];
            bytes32 id = running(row[0] * RATE);
            vm.prank(customer);
            rare.setSpendingLimit(id, 1000 ether);
            skip(row[1]);
            if (row[3] == 0) vm.expectRevert(abi.encodeWithSelector(RemainingTimeAboveLimit.selector, row[2], 10));
            vm.prank(operator);
            grid.topUpJobDelegate(id);
            vm.assertEq(rare.jobTerms(id).limitMinutes, row[4], "limit");
            report(id, JobStatus.FINISHED, 0);
        }
    }

    function test_more_than_a_year_is_charged_as_a_year_and_a_minute() external {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), ProviderPrices(1, 0, 0), labels());
        approve(provider);
        bytes32 id = running(DEPOSIT);
        vm.assertEq(rare.jobTerms(id).limitMinutes, 525_600, "a year");
        skip(730 days);
        report(id, JobStatus.FINISHED, 1_051_200);
        vm.assertEq(rare.get(id).cost.finalCost, 525_601, "at 1 wei a minute");
    }

    function act(bytes32 id, uint256 what, uint256 reported) private {
        if (what < ROLE_PANICS) return report(id, JobStatus(what), uint64(reported));
        if (what == CUSTOMER_CALLS_AGAIN) return cancel(id);
        if (what == REFUSES) vm.prank(provider);
        else if (what == ANYBODY_TIMES_OUT) vm.prank(stranger);
        else if (what == CUSTOMER_TIMES_OUT) vm.prank(customer);
        else vm.prank(operator);
        if (what == REFUSES) rare.refuseJob(id);
        else if (what == ROLE_PANICS) rare.panicJob(id, "");
        else rare.timeoutJob(id);
    }

    /// The cost is the part that the customer did not get back.
    function checkEnd(bytes32 id, uint256 status, uint256 cost) private view {
        Job memory job = rare.get(id);
        vm.assertEq(uint256(job.status), status, "becomes");
        vm.assertEq(job.cost.finalCost, cost * HUNDREDTH, "cost");
        uint256 held = status == 0 ? job.cost.maxCost : 0;
        vm.assertEq(credit.balanceOf(address(grid)) - rare.platformCut(), held, "the rest was paid out");
    }

    function checkHeld(bytes32 id, uint256 released, uint256 held) private view {
        vm.assertEq(rare.jobTerms(id).released, released * HUNDREDTH, "released");
        vm.assertEq(rare.get(id).cost.maxCost, held * HUNDREDTH, "held");
        vm.assertEq(credit.balanceOf(address(grid)) - rare.platformCut(), held * HUNDREDTH, "the rest was paid out");
    }

    function jobHolding(uint256 status, uint256 locked) private returns (bytes32) {
        if (status == 0) return request(locked);
        if (status == 1) return assigned(locked);
        if (status == 2) return claimed(locked);
        return running(locked);
    }

    function topUp(bytes32 id, uint256 amount) private {
        vm.prank(customer);
        grid.topUpJob(id, amount);
    }

    function rowsOf(string memory key) private view returns (uint256[][] memory) {
        return abi.decode(vm.parseJson(vm.readFile("cases.json"), key), (uint256[][]));
    }
}
