// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {NewJobRequestDisabled} from "../src/Errors.sol";
import {JobRequest, JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// While the grid refuses new jobs, existing jobs continue to their ends.
contract ClosedTest is Grid {
    function test_closing_the_grid_refuses_only_new_jobs() external {
        bytes32[4] memory ids;
        for (uint256 i; i < 4; ++i) {
            ids[i] = i == 0 ? running(1000 ether) : request(1000 ether);
        }
        rare.setEnableRequestNewJob(false);
        vm.assertTrue(!rare.enableRequestNewJob(), "closed");
        vm.expectRevert(NewJobRequestDisabled.selector);
        request(1000 ether);
        JobRequest[] memory requests = new JobRequest[](1);
        requests[0] = JobRequest(definition(), 1000 ether, "job", false);
        vm.expectRevert(NewJobRequestDisabled.selector);
        vm.prank(customer);
        grid.requestNewJobs(requests);

        vm.prank(customer);
        grid.topUpJob(ids[0], 1 ether);
        skip(2 minutes);
        report(ids[0], JobStatus.FINISHED, 2);
        assign(ids[1]);
        vm.prank(provider);
        rare.refuseJob(ids[1]);
        assign(ids[1]);
        vm.prank(provider);
        grid.claimNextJob();
        report(ids[1], JobStatus.FAILED, 0);
        cancel(ids[2]);
        vm.prank(operator);
        rare.panicJob(ids[3], "closed for good");
        vm.assertEq(credit.balanceOf(address(grid)), rare.platformCut(), "every deposit is paid out");
    }
}
