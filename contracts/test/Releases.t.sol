// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CancelRequested, JobHotStatusOnly, NoJob, RemainingTimeAboveLimit} from "../src/Errors.sol";
import {CancelReleasedEvent, JobSettledEvent} from "../src/Events.sol";
import {JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// A cancel request that the provider does not answer in time. What no report can bill any more comes back at once, the
/// rest after a report, or a day after the request.
contract ReleasesTest is Grid {
    uint256 private constant HELD = 30 * RATE;

    /// A job with a cancel request, and how it ends.
    struct Life {
        uint256 locked;
        uint256 topUp;
        uint256 waited;
        bool toldLate;
        uint64 datedBack;
        uint256 ran;
        uint256 answered;
        uint64 reported;
        uint256 status;
        uint256 fee;
        uint256 timeout;
    }

    function test_a_second_call_after_the_answer_time_returns_what_cannot_be_billed() external {
        for (uint256 i = 2; i < 4; ++i) {
            bytes32 id = asked(JobStatus(i));
            uint256 requested = block.timestamp;
            uint256 before = credit.balanceOf(customer);
            skip(10 minutes - 1);
            cancel(id);
            vm.assertEq(credit.balanceOf(customer), before, "not before the time for the answer is over");
            skip(1);
            vm.expectEmit(address(grid));
            emit CancelReleasedEvent(id, customer, 1000 ether - HELD, HELD, requested + 1 days);
            cancel(id);
            checkReleased(id, JobStatus(i));
            vm.assertEq(credit.balanceOf(customer), before + 1000 ether - HELD, "returned");
            vm.warp(requested + 1 days - 1);
            cancel(id);
            checkReleased(id, JobStatus(i));
            vm.assertEq(credit.balanceOf(customer), before + 1000 ether - HELD, "nothing is returned twice");
            vm.assertEq(manager.getRecord(provider).timedOut, i - 2, "no fault yet");
            skip(1);
            vm.expectEmit(address(grid));
            emit JobSettledEvent(id, provider, customer, 0, 0, 0, HELD);
            cancel(id);
            checkStatus(id, JobStatus.CANCELLED);
            vm.assertEq(credit.balanceOf(customer), before + 1000 ether, "all of it");
            vm.assertEq(manager.getRecord(provider).timedOut, i - 1, "counted against the provider");
            vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.CANCELLED));
            report(id, JobStatus.FINISHED, 60);
        }
        vm.assertEq(rare.getCancellingJobQueueSize(provider), 0, "nothing stays queued");
    }

    function test_a_day_after_the_request_one_call_returns_everything() external {
        bytes32 id = asked(JobStatus.RUNNING);
        skip(1 days);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 0, 0, 0, 1000 ether);
        cancel(id);
        vm.assertEq(manager.getRecord(provider).timedOut, 1, "counted");
    }

    function test_a_report_after_a_release_is_paid_and_no_fault() external {
        uint256[3] memory reportedAfter = [uint256(11 minutes), 1 days - 1, 30 days];
        for (uint256 i; i < 3; ++i) {
            bytes32 id = asked(JobStatus.RUNNING);
            skip(10 minutes);
            cancel(id);
            skip(reportedAfter[i] - 10 minutes);
            vm.expectEmit(address(grid));
            emit JobSettledEvent(id, provider, customer, 30, HELD * 80 / 100, HELD * 20 / 100, 0);
            report(id, JobStatus.CANCELLED, 31);
            vm.assertEq(manager.getRecord(provider).timedOut, 0, "no fault");
        }
    }

    function test_a_release_holds_the_cancellation_fee() external {
        rare.setCancellationFeeMinute(45);
        bytes32 id = asked(JobStatus.RUNNING);
        skip(10 minutes);
        cancel(id);
        vm.assertEq(rare.get(id).cost.maxCost, 45 * RATE, "the fee is more than 30 minutes");
        report(id, JobStatus.CANCELLED, 20);
        vm.assertEq(rare.get(id).cost.finalCost, 45 * RATE, "cost");
    }

    function test_a_job_whose_start_was_not_reported_is_paid_after_a_release() external {
        bytes32 id = asked(JobStatus.SCHEDULED);
        skip(1 hours);
        cancel(id);
        report(id, JobStatus.RUNNING, 80);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 30, HELD * 80 / 100, HELD * 20 / 100, 0);
        report(id, JobStatus.CANCELLED, 80);
    }

    function test_no_setting_brings_the_rest_back_earlier_or_later() external {
        bytes32 id = asked(JobStatus.RUNNING);
        uint256 requested = block.timestamp;
        skip(10 minutes);
        cancel(id);
        uint256 held = rare.get(id).cost.maxCost;
        rare.setClaimJobTimeout(1);
        cancel(id);
        vm.assertEq(rare.get(id).cost.maxCost, held, "the time for an answer is no setting");
        rare.setClaimJobTimeout(7 days / 60);
        vm.warp(requested + 1 days - 1);
        cancel(id);
        checkStatus(id, JobStatus.RUNNING);
        skip(1);
        cancel(id);
        checkStatus(id, JobStatus.CANCELLED);
    }

    function test_a_job_with_a_cancel_request_takes_no_top_up() external {
        bytes32 id = asked(JobStatus.RUNNING);
        vm.prank(customer);
        rare.setDelegateSpendingAuthority(id, true);
        endow(stranger, 100 ether);
        for (uint256 i; i < 2; ++i) {
            uint256 before = credit.balanceOf(customer);
            address[2] memory payers = [customer, stranger];
            for (uint256 j; j < 2; ++j) {
                vm.expectRevert(CancelRequested.selector);
                vm.prank(payers[j]);
                grid.topUpJob(id, 100 ether);
            }
            uint256 end = rare.get(id).time.start + rare.jobTerms(id).limitMinutes * 1 minutes;
            vm.warp(i == 0 ? end : block.timestamp);
            bytes memory refusal = abi.encodeWithSelector(CancelRequested.selector);
            if (i == 1) refusal = abi.encodeWithSelector(RemainingTimeAboveLimit.selector, 0, 10); // a part came back
            vm.expectRevert(refusal);
            vm.prank(provider);
            grid.topUpJobDelegate(id);
            vm.assertEq(credit.balanceOf(customer), before, "nothing was taken");
            cancel(id);
        }
    }

    function test_a_release_returns_earlier_top_ups_with_their_hint() external {
        bytes32 id = running(1000 ether);
        vm.prank(customer);
        grid.topUpJob(id, 500 ether);
        skip(20 minutes);
        cancel(id);
        skip(10 minutes);
        cancel(id);
        vm.assertEq(rare.jobTerms(id).released, 1500 ether - HELD, "deposit and top-up");
        vm.assertEq(rare.get(id).cost.pendingTopUp, 0, "nothing new for the provider");
        vm.assertTrue(!rare.hasTopUpJob(provider), "no hint");
        vm.expectRevert(NoJob.selector);
        vm.prank(provider);
        rare.claimNextTopUpJob();
        report(id, JobStatus.CANCELLED, 20);
        vm.assertEq(rare.get(id).cost.finalCost, 20 * RATE, "cost");
    }

    /// A release takes nothing from the provider, whatever it reports, and nothing from the customer.
    function testFuzz_a_release_changes_no_bill(Life memory life) external {
        bound(life);
        uint256[3] memory before = balances();
        uint256 start = vm.snapshotState();
        play(life, false);
        uint256[3] memory plain = balances();
        vm.revertToState(start);
        play(life, true);
        uint256[3] memory released = balances();
        for (uint256 i; i < 3; ++i) {
            vm.assertEq(released[i], plain[i], "the same parts");
        }
        vm.assertEq(
            before[0] + before[1] + before[2],
            released[0] + released[1] + released[2],
            "to the wei, and nothing is kept"
        );
    }

    /// Of customer, provider and platform.
    function balances() private view returns (uint256[3] memory found) {
        found = [credit.balanceOf(customer), credit.balanceOf(provider), rare.platformCut()];
    }

    function bound(Life memory life) private pure {
        life.locked = 100 ether + life.locked % 5000 ether;
        life.topUp %= 1000 ether;
        life.waited %= 3 hours;
        life.datedBack %= 300;
        life.ran %= 6 hours;
        life.timeout = 1 + life.timeout % 60;
        life.answered = life.timeout * 1 minutes + life.answered % 3 days;
        if (life.reported % 8 != 0) life.reported %= 1000;
        life.status = uint256(JobStatus.CANCELLED) + life.status % 5;
        life.fee %= 61;
    }

    function play(Life memory life, bool releases) private {
        rare.setCancellationFeeMinute(life.fee);
        rare.setClaimJobTimeout(uint64(life.timeout));
        bytes32 id = claimed(life.locked);
        skip(life.waited);
        if (!life.toldLate) report(id, JobStatus.RUNNING, life.datedBack);
        if (life.topUp != 0) {
            vm.prank(customer);
            grid.topUpJob(id, life.topUp);
        }
        skip(life.ran);
        cancel(id);
        skip(life.timeout * 1 minutes);
        if (releases) cancel(id);
        skip(life.answered - life.timeout * 1 minutes);
        if (releases && life.answered < 1 days) cancel(id);
        if (life.toldLate) report(id, JobStatus.RUNNING, life.datedBack);
        report(id, JobStatus(life.status), life.reported);
    }

    /// A job with 1000 credits in the given state, 20 minutes old, with a cancel request.
    function asked(JobStatus status) private returns (bytes32 id) {
        id = jobIn(status);
        skip(20 minutes);
        cancel(id);
    }

    function checkReleased(bytes32 id, JobStatus status) private view {
        checkStatus(id, status);
        vm.assertEq(rare.get(id).cost.maxCost, HELD, "held");
        vm.assertEq(rare.jobTerms(id).released, 1000 ether - HELD, "released");
        vm.assertEq(credit.balanceOf(address(grid)), HELD, "the contract has the rest");
    }
}
