// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    LocationTooLong,
    InvalidJob,
    InvalidJobDefinition,
    JobHotStatusOnly,
    JobProviderOnly,
    NoJob,
    ProviderNotJoined,
    RunningColdStatusOnly,
    SameStatusError
} from "../src/Errors.sol";
import {BatchItemSkippedEvent} from "../src/Events.sol";
import {Assignment, Job, JobRequest, JobStatus, StatusReport} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Many jobs per call give the same jobs as single calls. Lost races are skipped, malformed items revert.
contract BatchTest is Grid {
    function test_each_job_of_a_batch_reads_as_requested_through_its_life() external {
        JobRequest[] memory requests = manyRequests(60, 1000 ether);
        for (uint256 i = 7; i < 15; ++i) {
            requests[i].definition.uses[0].value = string(new bytes(3000)); // together they need a second blob
        }
        requests[6].definition.batchLocationHash = string(new bytes(256));
        requests[8].jobName = "another name that fills 32 bytes";
        vm.prank(customer);
        bytes32[] memory ids = grid.requestNewJobs(requests);
        uint256 before = credit.balanceOf(customer);
        for (uint256 i; i < 60; ++i) {
            Job memory job = rare.get(ids[i]);
            vm.assertEq(abi.encode(job.definition), abi.encode(requests[i].definition), "definition");
            vm.assertEq(job.jobName, requests[i].jobName, "name");
            vm.assertEq(job.cost.maxCost, 1000 ether + i, "locked");
            vm.assertEq(job.customerAddr, customer, "customer");
        }
        assignMany(ids);
        vm.prank(provider);
        grid.claimNextJobs(100);
        reportMany(ids, JobStatus.RUNNING, 0);
        skip(3 minutes);
        reportMany(ids, JobStatus.FINISHED, 3);
        for (uint256 i; i < 60; ++i) {
            checkStatus(ids[i], JobStatus.FINISHED);
            vm.assertEq(rare.get(ids[i]).cost.finalCost, 3 * RATE, "cost");
        }
        vm.assertEq(credit.balanceOf(customer) - before, 60 * (1000 ether - 3 * RATE) + 59 * 30, "refunds");
        vm.assertEq(credit.balanceOf(address(grid)), rare.platformCut(), "nothing else is held");
    }

    function test_a_batch_of_requests_is_all_or_none() external {
        JobRequest[] memory requests = manyRequests(3, 1000 ether);
        requests[2].definition.ntasks = 0;
        vm.expectRevert(InvalidJobDefinition.selector);
        vm.prank(customer);
        grid.requestNewJobs(requests);
        vm.assertEq(rare.jobIdCounter(), 0, "no job");
        requests = manyRequests(1, 1000 ether);
        requests[0].definition.batchLocationHash = string(new bytes(257));
        vm.expectRevert(abi.encodeWithSelector(LocationTooLong.selector, 257, 256));
        vm.prank(customer);
        grid.requestNewJobs(requests);
    }

    function test_assignments_that_lost_a_race_are_skipped_and_unknown_jobs_revert() external {
        bytes32[] memory ids = new bytes32[](3);
        (ids[0], ids[1], ids[2]) = (request(200 ether), request(200 ether), request(200 ether));
        cancel(ids[0]);
        Assignment[] memory wanted = assignments(ids);
        wanted[1].provider = rival;
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(0, ids[0], abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.CANCELLED));
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(1, ids[1], abi.encodeWithSelector(ProviderNotJoined.selector));
        vm.prank(operator);
        grid.metaScheduleJobs(wanted);
        checkStatus(ids[1], JobStatus.PENDING);
        checkStatus(ids[2], JobStatus.META_SCHEDULED);
        wanted[0].jobId = bytes32(uint256(99));
        vm.expectRevert(InvalidJob.selector);
        vm.prank(operator);
        grid.metaScheduleJobs(wanted);
        bytes memory refusal = missingRole(stranger, grid.METASCHEDULER_ROLE());
        vm.expectRevert(refusal);
        vm.prank(stranger);
        grid.metaScheduleJobs(wanted);
    }

    function test_a_provider_claims_up_to_a_maximum_in_order() external {
        bytes32[] memory ids = new bytes32[](3);
        (ids[0], ids[1], ids[2]) = (assigned(200 ether), assigned(200 ether), assigned(200 ether));
        vm.prank(provider);
        grid.claimNextJobs(2);
        checkStatus(ids[0], JobStatus.SCHEDULED);
        checkStatus(ids[1], JobStatus.SCHEDULED);
        checkStatus(ids[2], JobStatus.META_SCHEDULED);
        vm.prank(provider);
        grid.claimNextJobs(type(uint256).max);
        checkStatus(ids[2], JobStatus.SCHEDULED);
        vm.expectRevert(NoJob.selector);
        vm.prank(provider);
        grid.claimNextJobs(1);
    }

    function test_reports_that_lost_a_race_are_skipped_and_malformed_ones_revert() external {
        join(rival);
        bytes32[] memory ids = new bytes32[](4);
        (ids[0], ids[1], ids[2]) = (running(200 ether), running(200 ether), running(200 ether));
        ids[3] = request(200 ether);
        report(ids[0], JobStatus.FAILED, 1);
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(0, ids[0], abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.FAILED));
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(3, ids[3], abi.encodeWithSelector(JobProviderOnly.selector, provider, address(0)));
        reportMany(ids, JobStatus.FINISHED, 1);
        checkStatus(ids[1], JobStatus.FINISHED);
        checkStatus(ids[2], JobStatus.FINISHED);
        checkStatus(ids[3], JobStatus.PENDING);
        ids[1] = running(200 ether);
        vm.expectRevert(abi.encodeWithSelector(RunningColdStatusOnly.selector, JobStatus.PENDING));
        reportMany(ids, JobStatus.PENDING, 1);
        vm.expectEmit(address(grid));
        emit BatchItemSkippedEvent(1, ids[1], abi.encodeWithSelector(SameStatusError.selector));
        reportMany(ids, JobStatus.RUNNING, 1);
    }

    function test_a_provider_that_returns_with_new_prices_gets_them() external {
        bytes32 id = assigned(1000 ether);
        vm.prank(operator);
        manager.remove(provider);
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), scaled(2), labels());
        approve(provider);
        bytes32 later = assigned(1000 ether);
        vm.assertEq(rare.jobTerms(id).ratePerMinute, RATE, "the old job keeps its price");
        vm.assertEq(rare.jobTerms(later).ratePerMinute, 2 * RATE, "the new one has the new price");
    }

    function manyRequests(uint256 count, uint256 locked) private pure returns (JobRequest[] memory made) {
        made = new JobRequest[](count);
        for (uint256 i; i < count; ++i) {
            made[i] = JobRequest(definition(), locked + i, "job", false);
            made[i].definition.gpus = 1;
        }
    }

    function assignments(bytes32[] memory ids) private view returns (Assignment[] memory made) {
        made = new Assignment[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            made[i] = Assignment(ids[i], provider);
        }
    }

    function assignMany(bytes32[] memory ids) private {
        vm.prank(operator);
        grid.metaScheduleJobs(assignments(ids));
    }

    function reportMany(bytes32[] memory ids, JobStatus status, uint64 ran) private {
        StatusReport[] memory reports = new StatusReport[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            reports[i] = StatusReport(ids[i], status, ran, "", 0);
        }
        vm.prank(provider);
        grid.providerSetJobStatuses(reports);
    }
}
