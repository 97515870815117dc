// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {InvalidJob, OutOfBounds} from "../src/Errors.sol";
import {Job, JobRequest, JobStatus, JobTerms} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Views of jobs. Each page is a slice of the whole list.
contract ViewsTest is Grid {
    function test_clients_find_every_part_from_the_metascheduler() external view {
        vm.assertEq(address(grid.credit()), address(credit), "credit");
        vm.assertEq(address(grid.providerManager()), address(manager), "provider manager");
        vm.assertEq(rare.jobs(), address(grid), "jobs");
        vm.assertEq(rare.providerJobQueues(), address(grid), "queues");
        vm.assertEq(rare.constants(), address(grid), "constants");
        vm.assertTrue(rare.enableRequestNewJob(), "open");
        vm.assertEq(grid.METASCHEDULER_ROLE(), keccak256("METASCHEDULER_ROLE"), "role");
    }

    function test_an_unknown_job_is_an_error() external {
        bytes32[] memory ids = new bytes32[](2);
        ids[0] = request(100 ether);
        ids[1] = bytes32(uint256(2));
        vm.expectRevert(InvalidJob.selector);
        rare.get(0);
        vm.expectRevert(InvalidJob.selector);
        rare.jobTerms(ids[1]);
        vm.expectRevert(InvalidJob.selector);
        rare.getMany(ids);
    }

    function test_many_jobs_at_once_are_the_same_as_one_by_one() external {
        bytes32[] memory ids = new bytes32[](3);
        (ids[0], ids[1], ids[2]) = (running(300 ether), request(100 ether), assigned(200 ether));
        (Job[] memory many, JobTerms[] memory terms,) = rare.getMany(ids);
        for (uint256 i; i < 3; ++i) {
            vm.assertEq(abi.encode(many[i]), abi.encode(rare.get(ids[i])), "job");
            vm.assertEq(abi.encode(terms[i]), abi.encode(rare.jobTerms(ids[i])), "terms");
        }
    }

    function testFuzz_pages_of_a_customer_are_slices(uint8 count, uint8 from, uint8 howMany) external {
        count %= 12;
        endow(stranger, 10_000 ether);
        for (uint256 i; i < count; ++i) {
            request(100 ether);
            vm.prank(stranger);
            grid.requestNewJob(definition(), 100 ether, "", false);
        }
        bytes32[] memory all = rare.getByCustomer(customer);
        vm.assertEq(all.length, count, "all");
        bytes32[] memory page = rare.getByCustomerPaged(customer, from, howMany);
        uint256 left = from < count ? count - from : 0;
        vm.assertEq(page.length, howMany < left ? howMany : left, "length");
        for (uint256 i; i < page.length; ++i) {
            vm.assertEq(page[i], all[from + i], "slice");
        }
        vm.assertEq(
            rare.getByCustomerPaged(customer, type(uint256).max, type(uint256).max).length,
            0,
            "empty page after the end"
        );
    }

    function test_a_customer_among_others_finds_single_jobs_and_batches_again() external {
        endow(stranger, 1_000_000 ether);
        uint256 count;
        for (uint256 i; i < 23; ++i) {
            count += requestSome(customer, i % 3 + 1);
            requestSome(stranger, 1);
        }
        bytes32[] memory all = rare.getByCustomer(customer);
        vm.assertEq(all.length, count, "all");
        uint256 index;
        for (uint256 i = 1; i <= rare.jobIdCounter(); ++i) {
            if (rare.get(bytes32(i)).customerAddr != customer) continue;
            vm.assertEq(all[index++], bytes32(i), "oldest first");
        }
        for (uint256 from; from < count; from += 7) {
            bytes32[] memory page = rare.getByCustomerPaged(customer, from, 9);
            for (uint256 i; i < page.length; ++i) {
                vm.assertEq(page[i], all[from + i], "slice");
            }
        }
    }

    function requestSome(address who, uint256 count) private returns (uint256) {
        JobRequest[] memory requests = new JobRequest[](count);
        for (uint256 i; i < count; ++i) {
            requests[i] = JobRequest(definition(), 100 ether, "", false);
        }
        vm.prank(who);
        grid.requestNewJobs(requests);
        return count;
    }

    function test_a_provider_pages_through_the_jobs_it_has_claimed() external {
        bytes32[] memory ids = new bytes32[](5);
        for (uint256 i; i < 5; ++i) {
            ids[i] = i % 2 == 0 ? claimed(200 ether) : running(200 ether);
        }
        bytes32 unclaimed = assigned(200 ether);
        report(ids[1], JobStatus.FINISHED, 1);
        vm.prank(provider);
        rare.refuseJob(ids[4]);
        (bytes32[] memory page, bytes32 cursor) = rare.hotJobsOf(provider, 0, 2);
        vm.assertEq(page.length, 2, "full");
        vm.assertEq(page[0], ids[0], "first");
        vm.assertEq(page[1], ids[2], "ended jobs are not listed");
        (page, cursor) = rare.hotJobsOf(provider, cursor, 2);
        vm.assertEq(page.length, 1, "last page");
        vm.assertEq(page[0], ids[3], "last");
        vm.assertEq(cursor, 0, "no next page");
        vm.expectRevert(OutOfBounds.selector);
        rare.hotJobsOf(provider, ids[1], 2);
        vm.expectRevert(OutOfBounds.selector);
        rare.hotJobsOf(provider, unclaimed, 2);
        (page,) = rare.hotJobsOf(rival, 0, 2);
        vm.assertEq(page.length, 0, "no jobs of other providers");
    }

    function test_the_jobs_of_a_customer_by_index() external {
        (bytes32 first, bytes32 second) = (request(100 ether), request(100 ether));
        vm.assertEq(rare.jobIdByCustomer(customer, 0), first, "oldest");
        vm.assertEq(rare.jobIdByCustomer(customer, 1), second, "newest");
        vm.expectRevert(OutOfBounds.selector);
        rare.jobIdByCustomer(customer, 2);
    }
}
