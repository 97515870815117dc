// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {Job, JobStatus, JobTerms, Wishes} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {Books} from "./Books.sol";
import {Ghost, GhostProvider} from "./Ghosts.sol";
import {Reference} from "./Reference.sol";

/// The comparison of the grid with the model's books.
abstract contract Model is Books {
    constructor(Credit credit_, MetaScheduler grid_, ProviderManager manager_) Books(credit_, grid_, manager_) {}

    /// The job equals the model; a cold one is unchanged since its end.
    function checkJob(uint256 id) public view {
        Ghost storage ghost = jobs[id];
        if (ghost.coldHash != 0) return vm.assertEq(hashOf(id), ghost.coldHash, "a cold job never changes");
        Job memory job = rare.get(bytes32(id));
        vm.assertEq(uint256(job.status), uint256(ghost.status), "status");
        vm.assertEq(job.customerAddr, ghost.customer, "customer");
        vm.assertEq(keccak256(abi.encode(job.definition, job.jobName)), ghost.asked, "as requested");
        vm.assertEq(job.providerAddr, ghost.provider, "provider");
        vm.assertEq(job.cost.maxCost, ghost.locked, "locked");
        vm.assertEq(job.cost.finalCost, 0, "no cost yet");
        vm.assertEq(job.cost.pendingTopUp, ghost.pendingTopUp, "pending top-up");
        vm.assertEq(job.time.start, ghost.startedAt, "start");
        vm.assertEq(job.time.end, 0, "no end yet");
        vm.assertEq(job.time.cancelRequestTimestamp, ghost.cancelAt, "cancel request");
        vm.assertTrue(job.hasCancelRequest == (ghost.cancelAt != 0), "cancel flag");
        vm.assertTrue(job.cost.delegateSpendingAuthority == ghost.delegateSpending, "authority");
        vm.assertEq(rare.spendable(bytes32(id)), ghost.delegateSpending ? ghost.spendable : 0, "spendable");
        checkTerms(ghost, rare.jobTerms(bytes32(id)));
        checkWishes(id, ghost);
    }

    /// The job has its wishes. It is on a page of pending jobs exactly while it is PENDING.
    function checkWishes(uint256 id, Ghost storage ghost) private view {
        bytes32[] memory ids = new bytes32[](1);
        ids[0] = bytes32(id);
        (,, Wishes[] memory wishes) = rare.getMany(ids);
        vm.assertEq(abi.encode(wishes[0]), abi.encode(ghost.wishes), "wishes");
        (Job[] memory pending,,) = rare.pendingJobs(id, 1);
        vm.assertEq(pending.length, ghost.status == JobStatus.PENDING ? 1 : 0, "on the page of pending jobs");
    }

    /// The expected values of a settled job.
    function checkEnd(uint256 id) internal view {
        Ghost storage ghost = jobs[id];
        Job memory job = rare.get(bytes32(id));
        vm.assertEq(uint256(job.status), uint256(ghost.status), "cold status");
        vm.assertEq(job.cost.finalCost, ghost.cost, "final cost");
        vm.assertEq(job.cost.maxCost, ghost.locked, "locked");
        vm.assertEq(job.time.start, ghost.startedAt == 0 ? ghost.endedAt : ghost.startedAt, "start");
        vm.assertEq(job.time.end, ghost.endedAt, "end");
        vm.assertEq(job.time.cancelRequestTimestamp, ghost.cancelAt, "cancel request");
        vm.assertTrue(job.hasCancelRequest == (ghost.cancelAt != 0), "cancel flag");
        checkTerms(ghost, rare.jobTerms(bytes32(id)));
    }

    function checkTerms(Ghost storage ghost, JobTerms memory terms) private view {
        vm.assertEq(terms.ratePerMinute, ghost.rate, "rate");
        vm.assertEq(terms.cutPercent, ghost.cut, "cut");
        vm.assertEq(terms.feeMinutes, ghost.fee, "fee");
        vm.assertEq(terms.assignedAt, ghost.assignedAt, "assigned");
        vm.assertEq(terms.claimedAt, ghost.claimedAt, "claimed");
        vm.assertEq(terms.startedAt, ghost.startedAt, "started");
        vm.assertEq(terms.lastRefuser, ghost.lastRefuser, "last refuser");
        vm.assertEq(terms.released, ghost.released, "released");
        uint256 limit = ghost.provider == address(0) ? 0 : Reference.limit(ghost.locked, ghost.rate);
        vm.assertEq(terms.limitMinutes, limit, "limit");
    }

    /// A provider's queues, pages and record equal the model's.
    function checkProvider(address provider) public view {
        GhostProvider storage ghost = providerOf[provider];
        vm.assertTrue(manager.isValidForScheduling(provider) == (ghost.approved && !ghost.banned), "in force");
        vm.assertTrue(manager.isWaitingForApproval(provider) == ghost.waiting, "waiting");
        vm.assertTrue(manager.isBanned(provider) == ghost.banned, "banned");
        vm.assertEq(abi.encode(manager.getProviderPrices(provider)), abi.encode(ghost.inForce), "prices");
        vm.assertEq(rare.raisedAt(provider), ghost.raisedAt, "raised");
        vm.assertEq(abi.encode(manager.getRecord(provider)), abi.encode(ghost.record), "record");
        vm.assertEq(rare.getClaimableJobQueueSize(provider), ghost.claimable.length, "claimable");
        vm.assertEq(rare.getCancellingJobQueueSize(provider), ghost.cancelling.length, "cancel hints");
        vm.assertEq(rare.getTopUpJobQueueSize(provider), ghost.toppedUp.length, "top-up hints");
        (bytes32[] memory ids, bytes32 next) = rare.hotJobsOf(provider, 0, type(uint256).max);
        vm.assertEq(next, 0, "all on one page");
        vm.assertEq(ids.length, ghost.claimedJobs, "claimed jobs");
        for (uint256 i; i < ids.length; ++i) {
            Ghost storage job = jobs[uint256(ids[i])];
            bool claimed = job.status == JobStatus.SCHEDULED || job.status == JobStatus.RUNNING;
            vm.assertTrue(claimed && job.provider == provider, "its own claimed jobs");
            for (uint256 j; j < i; ++j) {
                vm.assertTrue(ids[i] != ids[j], "each once");
            }
        }
    }

    /// A customer's jobs, each once and in order, at once and in pages.
    function checkCustomer(address customer) public view {
        bytes32[] storage ids = idsOf[customer];
        vm.assertEq(abi.encode(rare.getByCustomer(customer)), abi.encode(ids), "a customer's jobs");
        bytes32[] memory page = rare.getByCustomerPaged(customer, ids.length / 2, 3);
        for (uint256 i; i < page.length; ++i) {
            vm.assertEq(page[i], ids[ids.length / 2 + i], "a page of a customer's jobs");
        }
    }

    /// The balance equals locks plus cut, plus gifts.
    function checkBalance() public view {
        uint256 locks;
        for (uint256 id = 1; id < jobs.length; ++id) {
            if (jobs[id].status <= JobStatus.RUNNING) locks += jobs[id].locked;
        }
        vm.assertEq(rare.platformCut(), cutHeld, "cut");
        vm.assertEq(credit.balanceOf(address(grid)), locks + cutHeld + donated, "balance = locks + cut");
        vm.assertEq(everLocked, locks + paidOut, "every locked wei is held or divided");
    }
}
