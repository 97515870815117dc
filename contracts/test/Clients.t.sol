// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    CustomerOnly,
    JobHotStatusOnly,
    JobProviderOnly,
    NoJob,
    ProviderNotJoined,
    RunningColdStatusOnly
} from "../src/Errors.sol";
import {JobSettledEvent} from "../src/Events.sol";
import {Job, JobStatus, ProviderHardware, ProviderPrices} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// What programs notice that were written for the observed system: times, texts, the order of errors, getters.
contract ClientsTest is Grid {
    function test_a_job_that_ended_without_running_starts_at_its_end() external {
        bytes32[4] memory ids =
            [jobIn(JobStatus.PENDING), jobIn(JobStatus.META_SCHEDULED), claimed(1000 ether), claimed(1000 ether)];
        for (uint256 i; i < 4; ++i) {
            vm.assertEq(rare.get(ids[i]).time.start, 0, "no start while it is hot");
        }
        skip(1 hours);
        cancel(ids[0]);
        vm.prank(operator);
        rare.panicJob(ids[1], "");
        report(ids[2], JobStatus.FAILED, 3);
        report(ids[3], JobStatus.CANCELLED, 3);
        for (uint256 i; i < 4; ++i) {
            Job memory job = rare.get(ids[i]);
            vm.assertEq(job.time.end, block.timestamp, "end");
            vm.assertEq(job.time.start, block.timestamp, "start");
            vm.assertEq(rare.jobTerms(ids[i]).startedAt, 0, "it never ran");
        }
        bytes32 ran = running(1000 ether);
        skip(90);
        report(ran, JobStatus.FINISHED, 2);
        vm.assertEq(rare.get(ran).time.start, block.timestamp - 90, "a job that ran keeps its start");
        vm.assertEq(rare.jobTerms(ran).startedAt, block.timestamp - 90, "in its terms too");
    }

    function test_a_cancel_before_the_claim_is_a_request_that_took_effect_at_once() external {
        for (uint256 i; i < 2; ++i) {
            bytes32 id = jobIn(JobStatus(i));
            vm.assertEq(rare.get(id).time.cancelRequestTimestamp, 0, "none yet");
            skip(7);
            cancel(id);
            skip(1 hours);
            Job memory job = rare.get(id);
            vm.assertTrue(job.hasCancelRequest, "requested");
            vm.assertEq(job.time.cancelRequestTimestamp, block.timestamp - 1 hours, "when it ended");
        }
    }

    function test_a_request_keeps_its_own_time_after_the_end() external {
        bytes32 id = running(1000 ether);
        cancel(id);
        skip(5 minutes);
        report(id, JobStatus.CANCELLED, 5);
        vm.assertEq(rare.get(id).time.cancelRequestTimestamp, block.timestamp - 5 minutes, "when it was made");
    }

    function test_no_other_end_shows_a_cancel_request() external {
        bytes32 cancelledByProvider = running(1000 ether);
        report(cancelledByProvider, JobStatus.CANCELLED, 1);
        bytes32 panicked = request(1000 ether);
        vm.prank(operator);
        rare.panicJob(panicked, "");
        vm.assertTrue(!rare.get(cancelledByProvider).hasCancelRequest, "cancelled by its provider");
        vm.assertEq(rare.get(cancelledByProvider).time.cancelRequestTimestamp, 0, "no time");
        vm.assertTrue(!rare.get(panicked).hasCancelRequest, "panicked");
    }

    function test_an_end_with_an_empty_text_keeps_the_earlier_one() external {
        bytes32 id = claimed(1000 ether);
        vm.startPrank(provider);
        grid.providerSetJobStatus(id, JobStatus.RUNNING, 0, "the image is large", 0);
        grid.providerSetJobStatus(id, JobStatus.FAILED, 1, "", 768);
        vm.stopPrank();
        vm.assertEq(rare.get(id).lastError, "the image is large", "kept");
        vm.assertEq(rare.get(id).exitCode, 768, "with its exit code");

        id = claimed(1000 ether);
        vm.prank(provider);
        grid.providerSetJobStatus(id, JobStatus.RUNNING, 0, "the image is large", 0);
        vm.prank(operator);
        rare.panicJob(id, "");
        vm.assertEq(rare.get(id).lastError, "the image is large", "kept by a panic");
    }

    function test_the_cut_is_rounded_down_and_the_provider_gets_the_rest() external {
        vm.prank(provider);
        manager.register(hardware(2, 4, 16, 64_000), ProviderPrices(7, 0, 0), labels());
        approve(provider);
        bytes32 id = running(1000 ether);
        skip(1);
        vm.expectEmit(address(grid));
        emit JobSettledEvent(id, provider, customer, 1, 6, 1, 1000 ether - 7); // 20 % of 7 wei are 1.4
        report(id, JobStatus.FINISHED, 1);
        vm.assertEq(credit.balanceOf(provider), 6, "paid");
        vm.assertEq(rare.platformCut(), 1, "cut");
    }

    function test_a_caller_that_is_no_provider_hears_that_first() external {
        bytes32 id = claimed(1000 ether);
        vm.startPrank(rival);
        vm.expectRevert(ProviderNotJoined.selector);
        grid.providerSetJobStatus(id, JobStatus.PENDING, 0, "", 0);
        vm.expectRevert(ProviderNotJoined.selector);
        rare.refuseJob(id);
        vm.expectRevert(ProviderNotJoined.selector);
        rare.claimNextCancellingJob();
        vm.expectRevert(ProviderNotJoined.selector);
        rare.claimNextTopUpJob();
        vm.stopPrank();
        join(rival);
        vm.startPrank(rival);
        vm.expectRevert(abi.encodeWithSelector(JobProviderOnly.selector, rival, provider));
        grid.providerSetJobStatus(id, JobStatus.PENDING, 0, "", 0);
        vm.expectRevert(abi.encodeWithSelector(JobProviderOnly.selector, rival, provider));
        rare.refuseJob(id);
        vm.expectRevert(NoJob.selector);
        rare.claimNextCancellingJob();
        vm.expectRevert(NoJob.selector);
        rare.claimNextTopUpJob();
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(RunningColdStatusOnly.selector, JobStatus.PENDING));
        report(id, JobStatus.PENDING, 0);
    }

    function test_that_a_job_is_over_comes_before_whose_it_is() external {
        bytes32 over = jobIn(JobStatus.FINISHED);
        bytes32 hot = request(1000 ether);
        vm.startPrank(stranger);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.FINISHED));
        rare.cancelJob(over);
        vm.expectRevert(abi.encodeWithSelector(JobHotStatusOnly.selector, JobStatus.FINISHED));
        rare.setDelegateSpendingAuthority(over, true);
        vm.expectRevert(abi.encodeWithSelector(CustomerOnly.selector, stranger, customer));
        rare.cancelJob(hot);
        vm.stopPrank();
    }

    function test_the_getters_of_the_registry() external {
        running(1000 ether);
        vm.prank(provider);
        manager.register(hardware(1, 1, 2, 300), scaled(3), labels());
        (address addr, ProviderHardware memory found, ProviderPrices memory costs, bool banned) =
            manager.providers(provider);
        vm.assertTrue(addr == provider && !banned, "the approved version");
        vm.assertEq(abi.encode(found), abi.encode(hardware(2, 4, 16, 64_000)), "hardware");
        vm.assertEq(abi.encode(costs), abi.encode(prices()), "prices");
        (addr, found, costs, banned) = manager.waitingApprovalProviders(provider);
        vm.assertTrue(addr == provider && !banned, "the proposal");
        vm.assertEq(abi.encode(found), abi.encode(hardware(1, 1, 2, 300)), "hardware");
        vm.assertEq(abi.encode(costs), abi.encode(scaled(3)), "prices");
        (addr,,,) = manager.waitingApprovalProviders(rival);
        vm.assertEq(addr, address(0), "no proposal");
        vm.assertEq(manager.jobCountByProvider(provider), 1, "started jobs");
        vm.assertEq(abi.encode(manager.getLabels(provider)), abi.encode(labels()), "labels");
        vm.prank(operator);
        manager.ban(provider);
        (,,, banned) = manager.providers(provider);
        vm.assertTrue(banned, "banned");
    }

    function test_the_getters_of_the_queues() external {
        bytes32 id = claimed(200 ether);
        assigned(200 ether);
        assigned(200 ether);
        vm.startPrank(customer);
        grid.topUpJob(id, 50 ether);
        rare.cancelJob(id);
        vm.stopPrank();
        (int128 begin, int128 end) = rare.providerClaimableJobsQueues(provider);
        vm.assertTrue(begin == 0 && end == 2, "to claim");
        (begin, end) = rare.providerCancellingJobsQueues(provider);
        vm.assertTrue(begin == 0 && end == 1, "to cancel");
        (begin, end) = rare.providerTopUpJobsQueues(provider);
        vm.assertTrue(begin == 0 && end == 1, "topped up");
        (begin, end) = rare.providerTopUpJobsQueues(rival);
        vm.assertTrue(begin == 0 && end == 0, "empty");
    }

    function test_the_token_refuses_with_the_texts_that_clients_show() external {
        vm.startPrank(stranger);
        vm.expectRevert(told("ERC20: insufficient allowance"));
        credit.transferFrom(customer, stranger, 1);
        vm.expectRevert(told("ERC20: transfer amount exceeds balance"));
        credit.transfer(customer, 1);
        vm.stopPrank();
        vm.prank(customer);
        credit.approve(stranger, 3);
        vm.startPrank(stranger);
        credit.transferFrom(customer, stranger, 2);
        vm.assertEq(credit.allowance(customer, stranger), 1, "spent");
        vm.expectRevert(told("ERC20: insufficient allowance"));
        credit.transferFrom(customer, stranger, 2);
        credit.transfer(customer, 2);
        vm.stopPrank();
        vm.prank(customer);
        credit.approve(stranger, type(uint256).max);
        vm.prank(stranger);
        credit.transferFrom(customer, stranger, 5);
        vm.assertEq(credit.allowance(customer, stranger), type(uint256).max, "endless");
    }
}
