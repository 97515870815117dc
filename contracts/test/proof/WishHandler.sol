// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobRequest, JobStatus, Wishes} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {CustomerHandler} from "./CustomerHandler.sol";

/// Requests with wishes in each form, and jobs that are given up. All other calls meet these jobs too.
abstract contract WishHandler is CustomerHandler {
    function wish(uint256 who, uint256 amount, uint256 size, uint256 wanted) external {
        JobRequest memory asked = someRequest(amount, size, wanted);
        Wishes memory wishes = someWishes(wanted);
        bytes memory call = abi.encodeCall(
            grid.requestNewJobWithWishes,
            (asked.definition, asked.lockedCredits, asked.jobName, asked.delegateSpendingAuthority, wishes)
        );
        requested(customers[who % 2], asked, wishes, call);
    }

    function wishWithPermit(uint256 who, uint256 amount, uint256 size, uint256 wanted) external {
        JobRequest memory asked = someRequest(amount, size, wanted);
        Wishes memory wishes = someWishes(wanted);
        bytes memory call = abi.encodeWithSelector(
            grid.requestNewJobWithWishesAndPermit.selector,
            asked.definition,
            asked.lockedCredits,
            asked.jobName,
            asked.delegateSpendingAuthority,
            wishes,
            signed(who % 2, asked.lockedCredits)
        );
        requested(customers[who % 2], asked, wishes, call);
        vm.prank(customers[who % 2]);
        credit.approve(address(grid), type(uint256).max);
    }

    function wishMany(uint256 who, uint256 count, uint256 amount, uint256 wanted) external {
        address caller = customers[who % 2];
        JobRequest[] memory asked = new JobRequest[](count % 4);
        Wishes[] memory wishes = new Wishes[](count % 16 == 7 ? asked.length + 1 : asked.length);
        for (uint256 i; i < asked.length; ++i) {
            asked[i] = someRequest(amount / (i + 1), wanted / (i + 1), wanted >> i);
            wishes[i] = someWishes(uint256(keccak256(abi.encode(wanted, i))));
        }
        if (!playGrid(caller, abi.encodeCall(grid.requestNewJobsWithWishes, (asked, wishes)))) return;
        vm.assertEq(asked.length, wishes.length, "wishes for each job");
        for (uint256 i; i < asked.length; ++i) {
            bookRequest(caller, asked[i], wishes[i]);
        }
    }

    /// By any account, mostly at the wished time, sometimes a second earlier.
    function giveUp(uint256 number, uint256 chance) external {
        if (chance / 16 % 4 == 0) return giveUpMany(number, chance);
        uint256 id = pick(number, JobStatus.PENDING, JobStatus.PENDING);
        uint256 due = jobs[id].wishes.giveUpAt;
        if (due != 0) waitUntil(due - chance % 2);
        bool overdue = mayBeGivenUp(id);
        givingUp();
        bool passed = playGrid(perhaps(nobody, chance / 2), abi.encodeCall(rare.giveUpJob, (bytes32(id))));
        vm.assertTrue(passed == overdue, "given up exactly from the wished time on");
    }

    /// Several jobs in a row, mostly when the first one is due. Exactly those that are due end.
    function giveUpMany(uint256 number, uint256 count) private {
        uint256 first = pick(number, JobStatus.PENDING, JobStatus.PENDING);
        uint256 due = jobs[first].wishes.giveUpAt;
        if (due != 0) waitUntil(due - count / 4 % 2);
        bytes32[] memory ids = new bytes32[](1 + count % 4);
        bool[] memory overdue = new bool[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            uint256 id = 1 + (first - 1 + i) % jobCount();
            ids[i] = bytes32(id);
            overdue[i] = mayBeGivenUp(id);
        }
        if (count % 32 == 9) ids[0] = bytes32(jobCount() + 1);
        givingUp();
        if (!playGrid(perhaps(nobody, count / 2), abi.encodeCall(rare.giveUpJobs, (ids)))) return;
        for (uint256 i; i < ids.length; ++i) {
            if (overdue[i]) vm.assertTrue(jobs[uint256(ids[i])].status == JobStatus.CANCELLED, "each one that is due");
        }
    }

    function mayBeGivenUp(uint256 id) private view returns (bool) {
        return jobs[id].status == JobStatus.PENDING && (isOverdue(jobs[id]) || waitsInVain(jobs[id]));
    }

    /// Mostly wishes that some assignment can keep. One job in eight waits for another one, which sometimes does not exist.
    function someWishes(uint256 wanted) private view returns (Wishes memory wishes) {
        wanted = dice(wanted);
        if (wanted % 4 != 0) wishes.maxRatePerMinute = uint96(wanted % 128 == 1 ? wanted : wanted % 60 ether);
        if (wanted >> 96 & 3 == 0) wishes.minMinutes = uint32(wanted >> 98 & 31 == 0 ? wanted : wanted % 20);
        if (wanted >> 128 & 1 == 0) wishes.giveUpAt = uint40(vm.getBlockTimestamp() + 5 minutes + wanted % 3 hours);
        wishes.prefer = uint8(wanted >> 200);
        if (wanted >> 208 & 7 != 0) return wishes;
        wishes.afterJob = uint32(1 + (wanted >> 211) % (jobCount() + (wanted >> 240 & 15 == 0 ? 1 : 0)));
        wishes.afterAny = wanted >> 250 & 1 == 0;
    }
}
