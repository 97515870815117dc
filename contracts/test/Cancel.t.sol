// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CustomerOnly, JobHotStatusOnly} from "../src/Errors.sol";
import {ClaimNextCancellingJobEvent, JobSettledEvent, JobTransitionEvent} from "../src/Events.sol";
import {Job, JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Cancelling before the claim ends the job at once. After the claim it is a request. docs/explanation/contracts.md has
/// the table.
contract CancelTest is Grid {
    function test_cancelling_before_the_claim_ends_the_job_with_a_full_refund() external {
        for (uint256 i; i < 2; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            uint256 before = credit.balanceOf(customer);
            vm.expectEmit(address(grid));
            emit JobTransitionEvent(id, JobStatus(i), JobStatus.CANCELLED);
            cancel(id);
            vm.assertEq(credit.balanceOf(customer) - before, 1000 ether, "refund");
            vm.assertEq(rare.getClaimableJobQueueSize(provider), 0, "not in the queue");
            vm.assertEq(rare.get(id).time.end, block.timestamp, "end");
        }
    }

    function test_cancelling_a_claimed_job_queues_one_request_for_the_provider() external {
        for (uint256 i = 2; i < 4; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            vm.prank(customer);
            rare.setDelegateSpendingAuthority(id, true);
            uint256 first = block.timestamp;
            cancel(id);
            skip(1 minutes);
            cancel(id);
            Job memory job = rare.get(id);
            checkStatus(id, JobStatus(i));
            vm.assertTrue(job.hasCancelRequest, "requested");
            vm.assertTrue(!job.cost.delegateSpendingAuthority, "the authority to spend has ended");
            vm.assertEq(job.time.cancelRequestTimestamp, first, "the first request counts");
            vm.assertEq(rare.getCancellingJobQueueSize(provider), 1, "queued once");
            vm.expectEmit(address(grid));
            emit ClaimNextCancellingJobEvent(customer, provider, id);
            vm.prank(provider);
            rare.claimNextCancellingJob();
            vm.assertTrue(!rare.hasCancellingJob(provider), "hint taken");
            cancel(id);
            vm.assertTrue(!rare.hasCancellingJob(provider), "a repeated request queues no second hint");
            report(id, JobStatus.CANCELLED, 0);
        }
    }

    function test_a_job_cancelled_while_it_waits_in_slurm_costs_nothing() external {
        bytes32 id = claimed(1000 ether);
        cancel(id);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 0, 0, 0, 1000 ether);
        report(id, JobStatus.CANCELLED, 3);
    }

    function test_a_cancelled_running_job_costs_its_minutes_or_the_fee() external {
        checkBill({locked: 1000 ether, ran: 12 minutes, reported: 12, billed: 12});
        checkBill({locked: 1000 ether, ran: 2 minutes, reported: 2, billed: 5});
        checkBill({locked: 1000 ether, ran: 2 minutes, reported: 0, billed: 5});
        // 100 credits buy 6 minutes; at a rate 60 % higher they would buy less than the fee
        rare.setCancellationFeeMinute(10);
        checkBill({locked: 100 ether, ran: 2 minutes, reported: 2, billed: 6});
        rare.setCancellationFeeMinute(0);
        checkBill({locked: 1000 ether, ran: 2 minutes, reported: 0, billed: 0});
    }

    function test_the_fee_is_for_requested_cancellations_only() external {
        bytes32 id = running(1000 ether);
        skip(2 minutes);
        report(id, JobStatus.CANCELLED, 2);
        vm.assertEq(rare.get(id).cost.finalCost, 2 * RATE, "cancelled by the provider");
        id = running(1000 ether);
        skip(2 minutes);
        cancel(id);
        report(id, JobStatus.FINISHED, 2);
        vm.assertEq(rare.get(id).cost.finalCost, 2 * RATE, "finished before the request arrived");
    }

    function test_minutes_after_the_answer_deadline_are_not_billed() external {
        bytes32 id = running(1000 ether);
        skip(20 minutes);
        cancel(id);
        skip(5 hours);
        report(id, JobStatus.CANCELLED, 320);
        vm.assertEq(rare.get(id).cost.finalCost, 30 * RATE, "20 minutes and the deadline for the answer");
    }

    function test_a_refusal_answers_the_cancel_request() external {
        bytes32 id = claimed(1000 ether);
        cancel(id);
        vm.prank(provider);
        rare.refuseJob(id);
        checkStatus(id, JobStatus.CANCELLED);
        vm.assertEq(manager.getRecord(provider).refused, 0, "not counted as a refusal");
    }

    function test_only_the_customer_cancels_and_only_a_hot_job() external {
        bytes32 id = running(1000 ether);
        vm.expectRevert(abi.encodeWithSelector(CustomerOnly.selector, stranger, customer));
        vm.prank(stranger);
        rare.cancelJob(id);
        report(id, JobStatus.FAILED, 1);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.FAILED));
        cancel(id);
    }

    function checkBill(uint256 locked, uint256 ran, uint64 reported, uint64 billed) private {
        bytes32 id = running(locked);
        skip(ran);
        cancel(id);
        report(id, JobStatus.CANCELLED, reported);
        vm.assertEq(rare.get(id).cost.finalCost, billed * RATE, "cost");
    }
}
