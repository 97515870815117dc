// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {World} from "./World.sol";

/// However a job ends, provider, platform and customer together get exactly the locked amount, to the wei.
contract Settlement is World {
    uint256 private constant DEPOSIT = 1000 ether;

    function assertLockIsDivided(uint256 locked) private view {
        uint256 paid = credit.balanceOf(address(this));
        uint256 cut = rare.platformCut();
        unchecked {
            assert(paid <= locked && cut <= locked && paid + cut <= locked);
            assert(credit.balanceOf(CUSTOMER) == SUPPLY - paid - cut);
        }
        assert(credit.balanceOf(address(grid)) == cut);
    }

    function runningJob(uint256 locked) private returns (bytes32 id) {
        id = request(locked);
        claim(id);
        report(id, JobStatus.RUNNING, 0);
    }

    function check_any_deposit_and_report(uint256 locked, uint64 reported) external {
        bytes32 id = runningJob(locked);
        vm.warp(block.timestamp + 365 days);
        report(id, JobStatus.FINISHED, reported);
        assertLockIsDivided(locked);
    }

    function check_any_time(uint64 elapsed) external {
        bytes32 id = runningJob(DEPOSIT);
        vm.warp(block.timestamp + elapsed);
        report(id, JobStatus.OUT_OF_CREDITS, type(uint64).max);
        assertLockIsDivided(DEPOSIT);
    }

    function check_any_answer_to_a_cancel_request(uint64 reported) external {
        bytes32 id = runningJob(DEPOSIT);
        cancel(id);
        vm.warp(block.timestamp + 5 minutes);
        report(id, JobStatus.CANCELLED, reported);
        assertLockIsDivided(DEPOSIT);
    }

    function check_any_report_after_a_release(uint64 reported) external {
        bytes32 id = runningJob(DEPOSIT);
        cancel(id);
        vm.warp(block.timestamp + 10 minutes);
        cancel(id);
        report(id, JobStatus.CANCELLED, reported);
        assertLockIsDivided(DEPOSIT);
    }

    function check_any_top_up(uint96 more) external {
        bytes32 id = runningJob(DEPOSIT);
        vm.prank(CUSTOMER);
        grid.topUpJob(id, more);
        vm.warp(block.timestamp + 365 days);
        report(id, JobStatus.FAILED, 100_000);
        assertLockIsDivided(DEPOSIT + uint256(more));
    }

    // Deliberately false: the prover must refute it.
    function wrong_half_the_deposit_always_comes_back(uint64 reported) external {
        bytes32 id = runningJob(DEPOSIT);
        vm.warp(block.timestamp + 365 days);
        report(id, JobStatus.FINISHED, reported);
        assert(credit.balanceOf(CUSTOMER) >= SUPPLY - DEPOSIT / 2);
    }
}
