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
        uint256 id = pick(number, JobStatus.PENDING, JobStatus.PENDING);
        uint256 due = jobs[id].wishes.giveUpAt;
        if (due != 0) waitUntil(due - chance % 2);
        bool overdue = jobs[id].status == JobStatus.PENDING && isOverdue(jobs[id]);
        givingUp();
        bool passed = playGrid(perhaps(nobody, chance / 2), abi.encodeCall(rare.giveUpJob, (bytes32(id))));
        vm.assertTrue(passed == overdue, "given up exactly from the wished time on");
    }

    /// Mostly wishes that some assignment can keep.
    function someWishes(uint256 wanted) private view returns (Wishes memory wishes) {
        wanted = dice(wanted);
        if (wanted % 4 != 0) wishes.maxRatePerMinute = uint96(wanted % 128 == 1 ? wanted : wanted % 60 ether);
        if (wanted >> 96 & 3 == 0) wishes.minMinutes = uint32(wanted >> 98 & 31 == 0 ? wanted : wanted % 20);
        if (wanted >> 128 & 1 == 0) wishes.giveUpAt = uint40(vm.getBlockTimestamp() + wanted % 3 hours);
        wishes.prefer = uint8(wanted >> 200);
    }
}
