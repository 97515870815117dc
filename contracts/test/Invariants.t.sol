// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Job, JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {Handler} from "./Handler.sol";
import {vm} from "./Vm.sol";

/// What holds after any history of calls:
/// 1. the token balance is exactly the locks of hot jobs and the cut that was not withdrawn;
/// 2. all that was ever locked is in the balances of customers, providers, owner and contract;
/// 3. a cold job never changes;
/// 4. a job is in exactly the lists that its state says, once.
contract InvariantsTest is Grid {
    Handler private handler;
    address[2] private customers;
    address[2] private providers;
    uint256 private minted;

    function setUp() public override {
        super.setUp();
        join(rival);
        endow(stranger, 1_000_000 ether);
        minted = credit.totalSupply();
        customers = [customer, stranger];
        providers = [provider, rival];
        handler = new Handler(grid, manager, operator, customers, providers, definition());
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariant_the_balance_is_locks_and_cut() external view {
        uint256 locks;
        for (uint256 i = 1; i <= grid.jobIdCounter(); ++i) {
            Job memory job = rare.get(bytes32(i));
            if (job.status <= JobStatus.RUNNING) locks += job.cost.maxCost;
        }
        vm.assertEq(credit.balanceOf(address(grid)), locks + grid.platformCut(), "balance");
    }

    function invariant_no_wei_is_lost() external view {
        uint256 held = credit.balanceOf(address(grid)) + credit.balanceOf(address(this));
        for (uint256 i; i < 2; ++i) {
            held += credit.balanceOf(customers[i]) + credit.balanceOf(providers[i]);
        }
        vm.assertEq(held, minted, "supply");
        uint256 locked;
        for (uint256 i = 1; i <= grid.jobIdCounter(); ++i) {
            locked += rare.get(bytes32(i)).cost.maxCost;
        }
        vm.assertEq(locked, handler.everLocked(), "locked by customers is locked by jobs");
    }

    function invariant_cold_is_final() external view {
        for (uint256 i = 1; i <= grid.jobIdCounter(); ++i) {
            Job memory job = rare.get(bytes32(i));
            if (job.status <= JobStatus.RUNNING) continue;
            vm.assertEq(keccak256(abi.encode(job)), handler.coldHash(bytes32(i)), "unchanged");
            vm.assertTrue(job.cost.finalCost <= job.cost.maxCost, "never above the lock");
        }
    }

    function invariant_lists_follow_the_states() external view {
        uint256 assignedJobs;
        uint256 claimedJobs;
        for (uint256 i = 1; i <= grid.jobIdCounter(); ++i) {
            JobStatus status = statusOf(bytes32(i));
            if (status == JobStatus.META_SCHEDULED) ++assignedJobs;
            if (status == JobStatus.SCHEDULED || status == JobStatus.RUNNING) ++claimedJobs;
        }
        for (uint256 p; p < 2; ++p) {
            assignedJobs -= rare.getClaimableJobQueueSize(providers[p]);
            (bytes32[] memory ids, bytes32 next) = rare.hotJobsOf(providers[p], 0, type(uint256).max);
            vm.assertEq(next, 0, "all on one page");
            claimedJobs -= ids.length;
            vm.assertTrue(rare.getCancellingJobQueueSize(providers[p]) <= ids.length, "cancel hints");
            vm.assertTrue(rare.getTopUpJobQueueSize(providers[p]) <= ids.length, "top-up hints");
            for (uint256 i; i < ids.length; ++i) {
                vm.assertEq(rare.get(ids[i]).providerAddr, providers[p], "its own");
            }
        }
        vm.assertEq(assignedJobs, 0, "claimable");
        vm.assertEq(claimedJobs, 0, "claimed");
    }
}
