// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Assignment, JobDefinition, JobRequest, JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Compares the gas of calls with gas.json, and checks that no call costs more when there are more jobs. The numbers
/// are for warm calls without a transaction's base cost, so they show changes. `./run bench gas` shows a job's gas.
contract GasTest is Grid {
    function deployed() internal pure override returns (bool) {
        return true;
    }

    function test_the_usual_calls_cost_what_gas_json_says() external {
        vm.pauseGasMetering();
        running(1000 ether);
        vm.resumeGasMetering();
        JobDefinition memory asked = definition();
        vm.prank(customer);
        uint256 before = gasleft();
        bytes32 id = grid.requestNewJob(asked, 1000 ether, "job", false);
        check("request", before - gasleft());
        vm.prank(operator);
        before = gasleft();
        grid.metaSchedule(id, provider);
        check("schedule", before - gasleft());
        vm.prank(provider);
        before = gasleft();
        grid.claimNextJob();
        check("claim", before - gasleft());
        vm.prank(provider);
        before = gasleft();
        grid.providerSetJobStatus(id, JobStatus.RUNNING, 0, "", 0);
        check("running", before - gasleft());
        skip(5 minutes);
        vm.prank(provider);
        before = gasleft();
        grid.providerSetJobStatus(id, JobStatus.FINISHED, 5, "", 0);
        check("settled", before - gasleft());
    }

    function test_no_call_costs_more_at_10_000_jobs_than_at_10() external {
        endow(customer, 10_000_000 ether);
        uint256[5] memory few = costsAt(10);
        uint256[5] memory many = costsAt(10_000);
        for (uint256 i; i < 5; ++i) {
            vm.assertTrue(many[i] < few[i] + few[i] / 20 + 20_000, "does not grow");
        }
    }

    function test_no_call_costs_more_at_10_000_providers_than_at_10() external {
        uint256[3] memory few = costsAmong(10);
        uint256[3] memory many = costsAmong(10_000);
        for (uint256 i; i < 3; ++i) {
            vm.assertTrue(many[i] < few[i] + few[i] / 20, "does not grow");
        }
    }

    /// Lists providers until there are `count`. A call of its own frees its memory afterwards.
    function list(uint256 count) external {
        vm.pauseGasMetering();
        while (manager.elementCount() < count) {
            join(address(uint160(0xA000_0000 + manager.elementCount())));
        }
        vm.resumeGasMetering();
    }

    /// Measures register, approve and remove with `count` listed providers.
    function costsAmong(uint256 count) private returns (uint256[3] memory costs) {
        this.list(count);
        address newcomer = address(uint160(0xB000_0000 + count));
        vm.prank(newcomer);
        costs[0] = gasleft();
        manager.register(hardware(2, 4, 16, 64_000), prices(), labels());
        costs[0] -= gasleft();
        bytes32 hash = manager.proposalHash(newcomer);
        vm.prank(operator);
        costs[1] = gasleft();
        manager.approveProposal(newcomer, hash);
        costs[1] -= gasleft();
        vm.prank(operator);
        costs[2] = gasleft();
        manager.remove(address(uint160(0xA000_0000 + count / 2)));
        costs[2] -= gasleft();
    }

    /// Fills the provider's line up to `size` jobs and measures calls at its ends and in its middle.
    function costsAt(uint256 size) private returns (uint256[5] memory costs) {
        vm.pauseGasMetering();
        while (rare.jobIdCounter() < size) {
            fill(size - rare.jobIdCounter() < 100 ? size - rare.jobIdCounter() : 100);
        }
        vm.resumeGasMetering();
        costs[0] = gasleft();
        bytes32 id = request(1000 ether);
        costs[0] -= gasleft();
        costs[1] = gasleft();
        assign(id);
        costs[1] -= gasleft();
        costs[2] = gasleft();
        cancel(bytes32(size / 2));
        costs[2] -= gasleft();
        vm.prank(provider);
        costs[3] = gasleft();
        grid.claimNextJob();
        costs[3] -= gasleft();
        costs[4] = gasleft();
        cancel(id);
        costs[4] -= gasleft();
    }

    function fill(uint256 count) private {
        JobRequest[] memory requests = new JobRequest[](count);
        Assignment[] memory wanted = new Assignment[](count);
        for (uint256 i; i < count; ++i) {
            requests[i] = JobRequest(definition(), 100 ether, "", false);
        }
        vm.prank(customer);
        bytes32[] memory ids = grid.requestNewJobs(requests);
        for (uint256 i; i < count; ++i) {
            wanted[i] = Assignment(ids[i], provider);
        }
        vm.prank(operator);
        grid.metaScheduleJobs(wanted);
    }

    function check(string memory call, uint256 used) private view {
        uint256 noted = abi.decode(vm.parseJson(vm.readFile("gas.json"), string.concat(".", call)), (uint256));
        vm.assertEq(used, noted, string.concat(call, ": put the number into gas.json if this change is intended"));
    }
}
