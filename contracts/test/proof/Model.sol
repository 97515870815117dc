// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {RareCalls} from "../../src/RareCalls.sol";
import {Job, JobRequest, JobStatus, JobTerms, Wishes} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {Ghost, GhostProvider} from "./Ghosts.sol";
import {Reference} from "./Reference.sol";

/// A second, plain model of the grid, and the comparison of both.
abstract contract Model {
    Credit internal immutable credit;
    MetaScheduler internal immutable grid;
    RareCalls internal immutable rare;
    ProviderManager internal immutable manager;

    Ghost[] internal jobs; // number 0 is no job
    mapping(address => GhostProvider) internal providerOf;
    mapping(address => bytes32[]) private idsOf; // in the order of the requests
    /// Wei that an account got since the start, minus what it paid.
    mapping(address => int256) public gained;
    uint256 public cutHeld;
    uint256 public donated;
    uint256 public paidOut; // to providers, to the cut and back to customers
    uint256 public everLocked;

    constructor(Credit credit_, MetaScheduler grid_, ProviderManager manager_) {
        (credit, grid, manager) = (credit_, grid_, manager_);
        rare = RareCalls(address(grid_));
        jobs.push();
    }

    function jobCount() public view returns (uint256) {
        return jobs.length - 1;
    }

    // ---------------------------------------------------------------- moves

    function created(address customer, JobRequest memory asked, Wishes memory wishes) internal {
        Ghost storage job = jobs.push();
        (job.sizes.gpus, job.sizes.memPerCpu) = (asked.definition.gpus, asked.definition.memPerCpu);
        (job.sizes.ntasks, job.sizes.cpusPerTask) = (asked.definition.ntasks, asked.definition.cpusPerTask);
        job.asked = keccak256(abi.encode(asked.definition, asked.jobName));
        job.wishes = wishes;
        job.customer = customer;
        job.delegateSpending = asked.delegateSpendingAuthority;
        idsOf[customer].push(bytes32(jobCount()));
        lock(job, customer, asked.lockedCredits);
    }

    function lock(Ghost storage job, address payer, uint256 amount) internal {
        job.locked += amount;
        everLocked += amount;
        gained[payer] -= int256(amount);
    }

    /// Books an edge that the contract emitted, with the call's arguments `wanted` (a provider) and `minutesRan`.
    function moved(uint256 id, JobStatus to, address caller, address wanted, uint256 minutesRan) internal {
        Ghost storage job = jobs[id];
        checkMover(job, to, caller);
        uint256 time = vm.getBlockTimestamp();
        if (to == JobStatus.META_SCHEDULED) {
            assigned(job, id, wanted, time);
        } else if (to == JobStatus.SCHEDULED) {
            vm.assertEq(pop(providerOf[caller].claimable, id), 0, "claimed in the order of assignment");
            ++providerOf[caller].claimedJobs;
            job.claimedAt = time;
            job.assignedAt = time - Reference.delay(job.assignedAt, time);
        } else if (to == JobStatus.RUNNING) {
            uint256 start = time > minutesRan * 60 ? time - minutesRan * 60 : 0;
            job.startedAt = job.claimedAt + Reference.delay(job.claimedAt, start);
            ++providerOf[caller].record.started;
        } else {
            left(job, id);
            if (to == JobStatus.PENDING) released(job);
            else job.endedAt = time;
        }
        (job.before, job.status) = (job.status, to);
    }

    function assigned(Ghost storage job, uint256 id, address provider, uint256 time) private {
        GhostProvider storage to = providerOf[provider];
        vm.assertTrue(to.approved && !to.banned, "assigned to a provider in force");
        job.provider = provider;
        job.rate = Reference.rate(job.sizes, to.inForce);
        vm.assertTrue(job.rate <= job.locked, "the deposit buys a minute");
        vm.assertTrue(job.wishes.maxRatePerMinute == 0 || job.rate <= job.wishes.maxRatePerMinute, "below the ceiling");
        vm.assertTrue(Reference.limit(job.locked, job.rate) >= job.wishes.minMinutes || job.rate == 0, "enough minutes");
        vm.assertTrue(!isOverdue(job), "not given up");
        vm.assertTrue(Reference.fits(job.sizes, 8, 32, 128_000), "the hardware is large enough");
        job.cut = rare.deepsquareCut();
        job.assignedAt = time;
        to.claimable.push(id);
    }

    /// Removes the job from all lists of its provider.
    function left(Ghost storage job, uint256 id) private {
        if (job.provider == address(0)) return;
        GhostProvider storage from = providerOf[job.provider];
        if (job.status != JobStatus.META_SCHEDULED) --from.claimedJobs;
        pop(from.claimable, id);
        pop(from.cancelling, id);
        pop(from.toppedUp, id);
    }

    function released(Ghost storage job) private {
        job.lastRefuser = job.provider;
        (job.provider, job.rate, job.cut, job.assignedAt, job.claimedAt) = (address(0), 0, 0, 0, 0);
        job.pendingTopUp = 0;
    }

    /// Checks a settlement that the contract emitted: the bill equals the reference, and the whole lock is divided.
    function settled(uint256 id, uint256 billed, uint256 paid, uint256 cut, uint256 refunded) internal {
        Ghost storage job = jobs[id];
        vm.assertTrue(job.status > JobStatus.RUNNING, "settled at a cold state");
        vm.assertEq(job.coldHash, 0, "settled once");
        vm.assertEq(paid + cut + refunded, job.locked, "paid + cut + refunded = locked");
        job.cost = Reference.cost(billed, job.locked, job.rate);
        vm.assertEq(cut, job.cost * job.cut / 100, "the platform's share");
        vm.assertEq(paid + cut, job.cost, "cost");
        gained[job.provider] += int256(paid);
        gained[job.customer] += int256(refunded);
        cutHeld += cut;
        paidOut += job.locked;
        job.coldHash = hashOf(id);
    }

    /// Billed minutes of a report, from the documented formula.
    function billable(Ghost storage job, uint256 reported) internal view returns (uint256 billed) {
        if (job.before != JobStatus.RUNNING || job.status == JobStatus.PANICKED) return 0;
        uint256 until = vm.getBlockTimestamp();
        uint256 answerDue = job.cancelAt + uint256(rare.claimJobTimeout()) * 60;
        if (job.cancelAt != 0 && answerDue < until) until = answerDue;
        billed = Reference.startedMinutes(job.startedAt, until);
        if (reported < billed) billed = reported;
        if (job.cancelAt == 0 || job.status != JobStatus.CANCELLED) return billed;
        uint256 fee = rare.cancellationFeeMinute();
        uint256 bought = Reference.limit(job.locked, job.rate);
        if (bought < fee) fee = bought;
        return billed < fee ? fee : billed;
    }

    /// First moment at which this caller may time the job out. Only valid for a caller that may do it at all.
    function dueFor(uint256 id, address caller) internal view returns (uint256 due) {
        Ghost storage job = jobs[id];
        uint256 timeout = uint256(rare.claimJobTimeout()) * 60;
        if (job.status == JobStatus.META_SCHEDULED) return job.assignedAt + timeout;
        due = job.status == JobStatus.RUNNING ? job.startedAt : job.claimedAt;
        due += Reference.limit(job.locked, job.rate) * 60;
        if (caller == job.customer) return due + 1 days;
        GhostProvider storage holder = providerOf[job.provider];
        if (!holder.approved || holder.banned) return 0;
        return (job.cancelAt != 0 && job.cancelAt < due ? job.cancelAt : due) + timeout;
    }

    function checkMover(Ghost storage job, JobStatus to, address caller) private view {
        uint256 who;
        if (caller == job.customer) who |= Reference.CUSTOMER;
        if (caller == job.provider) who |= Reference.PROVIDER;
        if (grid.hasRole(grid.METASCHEDULER_ROLE(), caller)) who |= Reference.ROLE;
        if (vm.getBlockTimestamp() >= job.assignedAt + uint256(rare.claimJobTimeout()) * 60) who |= Reference.ANYONE;
        if (isOverdue(job)) who |= Reference.OVERDUE;
        vm.assertTrue(who & Reference.movers(job.status, to) != 0, "only the named role moves an edge");
    }

    /// Whether the customer wished to give the job up by now.
    function isOverdue(Ghost storage job) internal view returns (bool) {
        return job.wishes.giveUpAt != 0 && vm.getBlockTimestamp() >= job.wishes.giveUpAt;
    }

    // ---------------------------------------------------------------- comparison

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
        vm.assertEq(terms.assignedAt, ghost.assignedAt, "assigned");
        vm.assertEq(terms.claimedAt, ghost.claimedAt, "claimed");
        vm.assertEq(terms.startedAt, ghost.startedAt, "started");
        vm.assertEq(terms.lastRefuser, ghost.lastRefuser, "last refuser");
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

    function hashOf(uint256 id) private view returns (bytes32) {
        return keccak256(abi.encode(rare.get(bytes32(id)), rare.jobTerms(bytes32(id))));
    }

    /// Removes a number from a list and keeps the order. Returns its index.
    function pop(uint256[] storage list, uint256 id) internal returns (uint256 place) {
        place = type(uint256).max;
        for (uint256 i; i < list.length; ++i) {
            if (list[i] == id) place = i;
            if (i > place) list[i - 1] = list[i];
        }
        if (place != type(uint256).max) list.pop();
    }

    function pushOnce(uint256[] storage list, uint256 id) internal {
        for (uint256 i; i < list.length; ++i) {
            if (list[i] == id) return;
        }
        list.push(id);
    }
}
