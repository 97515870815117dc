// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Assignment, JobStatus, StatusReport} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {World} from "./World.sol";

/// Cold is final: no call of any account, at any later time, changes an ended job or moves a wei for it.
contract Cold is World {
    bytes32 private id;
    bytes32 private before;
    bool private byCustomer;

    function bring(JobStatus to) private {
        id = request(1000 ether);
        claim(id);
        report(id, JobStatus.RUNNING, 0);
        if (to != JobStatus.RUNNING) report(id, to, 1);
        before = picture();
    }

    function picture() private view returns (bytes32) {
        return keccak256(
            abi.encode(rare.get(id), rare.jobTerms(id), credit.balanceOf(address(grid)), credit.balanceOf(CUSTOMER))
        );
    }

    function attempt(bytes memory call) private {
        if (byCustomer) vm.prank(CUSTOMER);
        (bool done,) = address(grid).call(call);
        // A call that reverts changes nothing anyway.
        if (done) assert(picture() == before);
    }

    function attemptAll(uint8 next, uint64 reported, address provider, uint96 amount, bool flag) private {
        if (next <= uint8(type(JobStatus).max)) {
            attempt(abi.encodeCall(grid.providerSetJobStatus, (id, JobStatus(next), reported, "", 0)));
            StatusReport[] memory reports = new StatusReport[](1);
            reports[0] = StatusReport(id, JobStatus(next), reported, "late", 1);
            attempt(abi.encodeCall(grid.providerSetJobStatuses, (reports)));
        }
        attempt(abi.encodeCall(grid.metaSchedule, (id, provider)));
        Assignment[] memory assignments = new Assignment[](1);
        assignments[0] = Assignment(id, provider);
        attempt(abi.encodeCall(grid.metaScheduleJobs, (assignments)));
        attempt(abi.encodeCall(grid.claimNextJob, ()));
        attempt(abi.encodeCall(rare.cancelJob, (id)));
        attempt(abi.encodeCall(rare.refuseJob, (id)));
        attempt(abi.encodeCall(rare.giveUpJob, (id)));
        bytes32[] memory ids = new bytes32[](1);
        ids[0] = id;
        attempt(abi.encodeCall(rare.giveUpJobs, (ids)));
        attempt(abi.encodeCall(rare.timeoutJob, (id)));
        attempt(abi.encodeCall(rare.panicJob, (id, "late")));
        attempt(abi.encodeCall(grid.topUpJob, (id, amount)));
        attempt(abi.encodeCall(grid.topUpJobDelegate, (id)));
        attempt(abi.encodeCall(rare.setDelegateSpendingAuthority, (id, flag)));
        attempt(abi.encodeCall(rare.setSpendingLimit, (id, amount)));
        attempt(abi.encodeCall(rare.claimNextCancellingJob, ()));
        attempt(abi.encodeCall(rare.claimNextTopUpJob, ()));
    }

    function check_no_call_changes_a_finished_job(
        uint8 next,
        uint64 reported,
        address provider,
        uint96 amount,
        bool flag,
        uint32 later
    ) external {
        bring(JobStatus.FINISHED);
        vm.warp(block.timestamp + later);
        attemptAll(next, reported, provider, amount, flag);
        byCustomer = true;
        attemptAll(next, reported, provider, amount, flag);
    }

    function check_no_call_changes_a_cancelled_job(
        uint8 next,
        uint64 reported,
        address provider,
        uint96 amount,
        bool flag,
        uint32 later
    ) external {
        bring(JobStatus.CANCELLED);
        vm.warp(block.timestamp + later);
        attemptAll(next, reported, provider, amount, flag);
        byCustomer = true;
        attemptAll(next, reported, provider, amount, flag);
    }

    function wrong_no_report_changes_a_running_job(uint64 reported) external {
        bring(JobStatus.RUNNING);
        attempt(abi.encodeCall(grid.providerSetJobStatus, (id, JobStatus.FINISHED, reported, "", 0)));
    }
}
