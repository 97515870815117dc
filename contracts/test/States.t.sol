// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    InvalidTransition,
    JobHotStatusOnly,
    JobProviderOnly,
    RunningColdStatusOnly,
    SameStatusError
} from "../src/Errors.sol";
import {JobStatus} from "../src/Types.sol";
import {States} from "../src/libraries/States.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// The state machine equals matrix.json, as a table and in the reports of a provider.
contract StatesTest is Grid {
    uint256 private constant COUNT = 9;

    bool[COUNT][COUNT] private allowed;

    function setUp() public override {
        super.setUp();
        string memory json = vm.readFile("matrix.json");
        string[] memory names = vm.parseJsonStringArray(json, ".states");
        vm.assertEq(names.length, COUNT, "states");
        for (uint256 i; i < COUNT; ++i) {
            string[] memory targets = vm.parseJsonStringArray(json, string.concat(".edges.", names[i]));
            for (uint256 t; t < targets.length; ++t) {
                allowed[i][indexOf(names, targets[t])] = true;
            }
        }
    }

    function check(JobStatus from, JobStatus to) external pure {
        States.check(from, to);
    }

    function test_every_pair_is_accepted_or_refused_as_in_the_matrix() external {
        uint256 edges;
        for (uint256 i; i < COUNT * COUNT; ++i) {
            (JobStatus from, JobStatus to) = (JobStatus(i / COUNT), JobStatus(i % COUNT));
            bytes memory refusal = refusalOf(from, to);
            if (refusal.length == 0) ++edges;
            else vm.expectRevert(refusal);
            this.check(from, to);
        }
        vm.assertEq(edges, 17, "edges");
    }

    function test_a_provider_moves_its_jobs_along_the_matrix_only() external {
        for (uint256 i; i < COUNT * COUNT; ++i) {
            (JobStatus from, JobStatus to) = (JobStatus(i / COUNT), JobStatus(i % COUNT));
            bytes32 id = jobIn(from);
            bytes memory refusal = to < JobStatus.RUNNING
                ? abi.encodeWithSelector(RunningColdStatusOnly.selector, to)
                : refusalOf(from, to);
            if (from == JobStatus.PENDING) {
                refusal = abi.encodeWithSelector(JobProviderOnly.selector, provider, address(0));
            }
            if (refusal.length != 0) vm.expectRevert(refusal);
            report(id, to, 1);
            checkStatus(id, refusal.length == 0 ? to : from);
            if (from == JobStatus.META_SCHEDULED && refusal.length != 0) {
                vm.prank(provider);
                rare.refuseJob(id); // the next round claims the job at the head of the queue
            }
        }
    }

    function refusalOf(JobStatus from, JobStatus to) private view returns (bytes memory) {
        if (allowed[uint256(from)][uint256(to)]) return "";
        if (from == to) return abi.encodeWithSelector(SameStatusError.selector);
        if (from > JobStatus.RUNNING) return abi.encodeWithSelector(JobHotStatusOnly.selector, from);
        return abi.encodeWithSelector(InvalidTransition.selector, from, to);
    }

    function indexOf(string[] memory names, string memory name) private pure returns (uint256 i) {
        while (keccak256(bytes(names[i])) != keccak256(bytes(name))) ++i;
    }
}
