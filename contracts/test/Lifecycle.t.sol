// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    InsufficientFunds,
    InsufficientHardware,
    InvalidJob,
    InvalidJobDefinition,
    JobHotStatusOnly,
    JobProviderOnly,
    MetaScheduledScheduledStatusOnly,
    NewJobRequestDisabled,
    NoJob,
    ProviderNotJoined,
    SameStatusError
} from "../src/Errors.sol";
import {IUsualCalls} from "../src/interfaces/IUsualCalls.sol";
import {JobCreated, JobRefusedEvent, JobTransitionEvent, NewJobRequestEvent} from "../src/Events.sol";
import {Job, JobDefinition, JobStatus, JobTerms} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Request, assignment, claim, report, refusal and panic: permissions, stored values, events.
contract LifecycleTest is Grid {
    function test_a_request_locks_the_credits_and_keeps_the_whole_job() external {
        bytes32 expected = bytes32(rare.jobIdCounter() + 1);
        vm.roll(77);
        vm.expectEmit(address(grid));
        emit JobCreated(expected);
        vm.expectEmit(address(grid));
        emit NewJobRequestEvent(expected, customer);
        vm.prank(customer);
        bytes32 id = grid.requestNewJob(definition(), 250 ether, "a name", true);
        Job memory job = rare.get(id);
        vm.assertEq(id, expected, "ids count up");
        vm.assertEq(credit.balanceOf(address(grid)), 250 ether, "locked");
        checkStatus(id, JobStatus.PENDING);
        vm.assertEq(job.jobId, id, "id");
        vm.assertEq(job.customerAddr, customer, "customer");
        vm.assertEq(job.providerAddr, address(0), "provider");
        vm.assertEq(abi.encode(job.definition), abi.encode(definition()), "definition");
        vm.assertEq(job.jobName, "a name", "name");
        vm.assertEq(job.cost.maxCost, 250 ether, "max cost");
        vm.assertTrue(job.cost.delegateSpendingAuthority, "authority");
        vm.assertEq(job.time.submit, block.timestamp, "submit");
        vm.assertEq(job.time.cancelRequestTimestamp, 0, "no cancel request");
        vm.assertEq(job.time.blockNumberStateChange, 77, "block");
    }

    function test_a_request_is_refused_when_closed_underfunded_or_invalid() external {
        vm.expectRevert(abi.encodeWithSelector(InsufficientFunds.selector, 100 ether - 1, 100 ether));
        request(100 ether - 1);
        request(100 ether);
        JobDefinition memory bad = definition();
        bad.ntasks = 0;
        checkInvalid(bad);
        bad = definition();
        bad.cpusPerTask = 0;
        checkInvalid(bad);
        bad = definition();
        bad.memPerCpu = 0;
        checkInvalid(bad);
        rare.setEnableRequestNewJob(false);
        vm.expectRevert(NewJobRequestDisabled.selector);
        request(100 ether);
        rare.setEnableRequestNewJob(true);
        request(100 ether);
    }

    function test_a_request_needs_balance_and_allowance() external {
        vm.expectRevert(told("ERC20: insufficient allowance"));
        vm.prank(stranger);
        grid.requestNewJob(definition(), 100 ether, "", false);
        endow(stranger, 1 ether);
        vm.expectRevert(told("ERC20: transfer amount exceeds balance"));
        vm.prank(stranger);
        grid.requestNewJob(definition(), 100 ether, "", false);
    }

    function test_only_the_admin_opens_and_closes_the_grid_for_new_jobs() external {
        bytes memory refusal = missingRole(operator, grid.DEFAULT_ADMIN_ROLE());
        vm.expectRevert(refusal);
        vm.prank(operator);
        rare.setEnableRequestNewJob(false);
    }

    function test_an_assignment_fixes_the_terms() external {
        bytes32 id = request(200 ether);
        vm.expectEmit(address(grid));
        emit JobTransitionEvent(id, JobStatus.PENDING, JobStatus.META_SCHEDULED);
        assign(id);
        JobTerms memory terms = rare.jobTerms(id);
        vm.assertEq(rare.get(id).providerAddr, provider, "provider");
        vm.assertEq(terms.ratePerMinute, RATE, "rate");
        vm.assertEq(terms.limitMinutes, 13, "limit");
        vm.assertEq(terms.assignedAt, block.timestamp, "assigned");
        vm.assertEq(terms.claimedAt, 0, "not claimed");
        vm.assertEq(terms.cutPercent, 20, "cut");
        vm.assertTrue(rare.hasNextClaimableJob(provider), "claimable");
        vm.expectRevert(SameStatusError.selector);
        assign(id);
    }

    function test_an_assignment_needs_role_job_provider_and_hardware() external {
        bytes32 id = request(200 ether);
        bytes memory refusal = missingRole(address(this), grid.METASCHEDULER_ROLE());
        vm.expectRevert(refusal);
        grid.metaSchedule(id, provider); // the admin does not have this role
        vm.expectRevert(InvalidJob.selector);
        assign(bytes32(uint256(99)));
        vm.expectRevert(ProviderNotJoined.selector);
        vm.prank(operator);
        grid.metaSchedule(id, rival);
        vm.prank(operator);
        manager.ban(provider);
        vm.expectRevert(ProviderNotJoined.selector);
        assign(id);
    }

    function test_hardware_totals_must_hold_the_job() external {
        // two nodes of 4 GPUs, 16 CPUs and 64,000 MB
        checkHardware({gpus: 8, ntasks: 32, memPerCpu: 4000, fits: true});
        checkHardware({gpus: 9, ntasks: 1, memPerCpu: 1, fits: false});
        checkHardware({gpus: 0, ntasks: 33, memPerCpu: 1, fits: false});
        checkHardware({gpus: 0, ntasks: 32, memPerCpu: 4001, fits: false});
        checkHardware({gpus: 0, ntasks: type(uint64).max, memPerCpu: type(uint64).max, fits: false});
    }

    function test_claims_come_in_the_order_of_assignment() external {
        bytes32 first = request(200 ether);
        bytes32 second = assigned(300 ether);
        assign(first);
        vm.prank(provider);
        vm.expectEmit(address(grid));
        emit JobTransitionEvent(second, JobStatus.META_SCHEDULED, JobStatus.SCHEDULED);
        vm.expectEmit(address(grid));
        emit IUsualCalls.ClaimJobEvent(customer, provider, second, 20, definition());
        grid.claimNextJob();
        vm.assertEq(rare.jobTerms(second).claimedAt, block.timestamp, "claimed");
        vm.prank(provider);
        grid.claimNextJob();
        checkStatus(first, JobStatus.SCHEDULED);
        vm.assertTrue(!rare.hasNextClaimableJob(provider), "empty");
        vm.expectRevert(NoJob.selector);
        vm.prank(provider);
        grid.claimNextJob();
    }

    function test_a_banned_provider_claims_nothing_but_is_still_settled() external {
        bytes32 id = running(1000 ether);
        bytes32 waiting = assigned(200 ether);
        vm.prank(operator);
        manager.ban(provider);
        vm.assertTrue(!rare.hasNextClaimableJob(provider), "nothing to claim");
        vm.expectRevert(ProviderNotJoined.selector);
        vm.prank(provider);
        grid.claimNextJob();
        vm.prank(provider);
        rare.refuseJob(waiting);
        skip(3 minutes);
        report(id, JobStatus.FINISHED, 3);
        vm.assertEq(credit.balanceOf(provider), 3 * RATE * 80 / 100, "paid");
    }

    function test_reports_are_kept_and_counted() external {
        bytes32 id = claimed(1000 ether);
        vm.prank(provider);
        grid.providerSetJobStatus(id, JobStatus.RUNNING, 0, "starting", 0);
        vm.assertEq(rare.jobTerms(id).startedAt, block.timestamp, "start");
        vm.assertEq(rare.get(id).lastError, "starting", "text");
        vm.assertEq(manager.getJobCount(provider), 1, "started jobs");
        vm.prank(provider);
        grid.providerSetJobStatus(id, JobStatus.FAILED, 1, "exit 3", 768);
        Job memory job = rare.get(id);
        vm.assertEq(job.lastError, "exit 3", "text");
        vm.assertEq(job.exitCode, 768, "exit code");
        vm.assertEq(job.time.end, block.timestamp, "end");
        vm.assertEq(manager.getJobCount(provider), 1, "started jobs");
        join(rival);
        vm.expectRevert(abi.encodeWithSelector(JobProviderOnly.selector, rival, provider));
        vm.prank(rival);
        grid.providerSetJobStatus(id, JobStatus.FINISHED, 1, "", 0);
    }

    function test_a_refused_job_is_pending_again_with_its_last_refuser() external {
        for (uint256 i = 1; i < 3; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            vm.expectEmit(address(grid));
            emit JobTransitionEvent(id, JobStatus(i), JobStatus.PENDING);
            vm.expectEmit(address(grid));
            emit JobRefusedEvent(id, provider, customer);
            vm.prank(provider);
            rare.refuseJob(id);
            JobTerms memory terms = rare.jobTerms(id);
            vm.assertEq(terms.lastRefuser, provider, "last refuser");
            vm.assertEq(terms.ratePerMinute + terms.limitMinutes + terms.assignedAt + terms.claimedAt, 0, "no terms");
            vm.assertEq(rare.get(id).providerAddr, address(0), "no provider");
            vm.assertEq(rare.get(id).cost.maxCost, 1000 ether, "still locked");
            vm.assertEq(manager.getRecord(provider).refused, i, "counted");
            vm.assertTrue(!rare.hasNextClaimableJob(provider), "not in the queue");
            assign(id);
            vm.assertTrue(rare.hasNextClaimableJob(provider), "may be assigned again");
            vm.assertEq(rare.jobTerms(id).claimedAt, 0, "not claimed yet");
            cancel(id);
        }
    }

    function test_only_the_provider_refuses_and_only_before_it_runs() external {
        bytes32 id = claimed(1000 ether);
        join(rival);
        vm.expectRevert(abi.encodeWithSelector(JobProviderOnly.selector, rival, provider));
        vm.prank(rival);
        rare.refuseJob(id);
        report(id, JobStatus.RUNNING, 0);
        vm.expectRevert(abi.encodeWithSelector(MetaScheduledScheduledStatusOnly.selector, JobStatus.RUNNING));
        vm.prank(provider);
        rare.refuseJob(id);
    }

    function test_the_role_panics_any_hot_job_with_a_full_refund() external {
        for (uint256 i; i < 4; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            skip(1 hours);
            uint256 before = credit.balanceOf(customer);
            vm.prank(operator);
            rare.panicJob(id, "the cluster burns");
            vm.assertEq(credit.balanceOf(customer) - before, 1000 ether, "refund");
            vm.assertEq(rare.get(id).lastError, "the cluster burns", "text");
            vm.assertEq(rare.get(id).time.panicTimestamp, block.timestamp, "panic time");
            vm.assertEq(manager.getRecord(provider).panicked, i < 2 ? 0 : i - 1, "counted after a claim");
            vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.PANICKED));
            vm.prank(operator);
            rare.panicJob(id, "again");
        }
        bytes32 ended = jobIn(JobStatus.FINISHED);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.FINISHED));
        vm.prank(operator);
        rare.panicJob(ended, "");
        bytes memory refusal = missingRole(provider, grid.METASCHEDULER_ROLE());
        vm.expectRevert(refusal);
        vm.prank(provider);
        rare.panicJob(ended, "");
    }

    function checkInvalid(JobDefinition memory bad) private {
        vm.expectRevert(InvalidJobDefinition.selector);
        vm.prank(customer);
        grid.requestNewJob(bad, 100 ether, "", false);
    }

    function checkHardware(uint64 gpus, uint64 ntasks, uint64 memPerCpu, bool fits) private {
        JobDefinition memory asked = definition();
        (asked.gpus, asked.ntasks, asked.cpusPerTask, asked.memPerCpu) = (gpus, ntasks, 1, memPerCpu);
        vm.prank(customer);
        bytes32 id = grid.requestNewJob(asked, 1000 ether, "", false);
        if (!fits) vm.expectRevert(abi.encodeWithSelector(InsufficientHardware.selector, provider));
        assign(id);
    }
}
