// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {RareCalls} from "../../src/RareCalls.sol";
import {JobRequest, JobStatus, Wishes} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {Ghost, GhostProvider} from "./Ghosts.sol";
import {Reference} from "./Reference.sol";

/// A second, plain model of the grid: the changes of each call, and the cost of each job.
abstract contract Books {
    Credit internal immutable credit;
    MetaScheduler internal immutable grid;
    RareCalls internal immutable rare;
    ProviderManager internal immutable manager;

    Ghost[] internal jobs; // number 0 is no job
    mapping(address => GhostProvider) internal providerOf;
    mapping(address => bytes32[]) internal idsOf; // in the order of the requests
    /// Wei that an account received since the start, minus its payments.
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
        (job.deposit, job.spendable) = (asked.lockedCredits, asked.lockedCredits);
        job.submittedAt = vm.getBlockTimestamp();
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
        vm.assertTrue(job.wishes.maxRatePerMinute != 0 || to.raisedAt < job.submittedAt, "no price was raised since");
        vm.assertTrue(!isOverdue(job), "not given up");
        vm.assertTrue(job.wishes.afterJob == 0 || isReady(job), "the earlier job has ended as it should");
        vm.assertTrue(Reference.fits(job.sizes, 8, 32, 128_000), "the hardware is large enough");
        (job.cut, job.fee) = (rare.deepsquareCut(), rare.cancellationFeeMinute());
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
        job.fee = 0;
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

    /// Books a release that the contract emitted: exactly what no report can bill any more goes to the customer.
    function released(uint256 id, address customer, uint256 amount, uint256 held, uint256 heldUntil) internal {
        Ghost storage job = jobs[id];
        uint256 time = vm.getBlockTimestamp();
        vm.assertTrue(job.cancelAt != 0 && time >= answerDue(job), "released after the time for the answer");
        vm.assertTrue(time < job.cancelAt + 1 days, "later all comes back");
        vm.assertEq(heldUntil, job.cancelAt + 1 days, "held for a day");
        vm.assertEq(customer, job.customer, "released to its customer");
        vm.assertEq(held, mostBillable(job), "what can be billed is held");
        vm.assertTrue(amount != 0 && amount + held == job.locked, "the rest is released");
        (job.locked, job.released, job.pendingTopUp) = (held, job.released + amount, 0);
        pop(providerOf[job.provider].toppedUp, id);
        gained[customer] += int256(amount);
        paidOut += amount;
    }

    /// Highest cost of a claimed job with a cancel request.
    function mostBillable(Ghost storage job) internal view returns (uint256) {
        uint256 from = job.status == JobStatus.RUNNING ? job.startedAt : job.claimedAt;
        uint256 most = Reference.startedMinutes(from, answerDue(job));
        return Reference.cost(most > job.fee ? most : job.fee, job.locked, job.rate);
    }

    /// When the provider's answer to a cancel request is due.
    function answerDue(Ghost storage job) internal view returns (uint256) {
        return job.cancelAt + 10 minutes;
    }

    /// Billed minutes of a report, from the documented formula.
    function billable(Ghost storage job, uint256 reported) internal view returns (uint256 billed) {
        if (job.before != JobStatus.RUNNING || job.status == JobStatus.PANICKED) return 0;
        uint256 until = vm.getBlockTimestamp();
        if (job.cancelAt != 0 && answerDue(job) < until) until = answerDue(job);
        billed = Reference.startedMinutes(job.startedAt, until);
        if (reported < billed) billed = reported;
        if (job.cancelAt == 0 || job.status != JobStatus.CANCELLED) return billed;
        uint256 fee = job.fee;
        uint256 bought = Reference.limit(job.locked, job.rate);
        if (bought < fee) fee = bought;
        return billed < fee ? fee : billed;
    }

    /// First moment at which this caller may time the job out. Only valid for a caller that may do it at all.
    function dueFor(uint256 id, address caller) internal view returns (uint256 due) {
        Ghost storage job = jobs[id];
        if (job.status == JobStatus.META_SCHEDULED) return job.assignedAt + uint256(rare.claimJobTimeout()) * 60;
        due = job.status == JobStatus.RUNNING ? job.startedAt : job.claimedAt;
        due += Reference.limit(job.locked, job.rate) * 60;
        if (job.cancelAt != 0 && job.cancelAt < due) due = job.cancelAt;
        GhostProvider storage holder = providerOf[job.provider];
        bool outOfForce = !holder.approved || holder.banned;
        bool waits = job.status == JobStatus.SCHEDULED && job.cancelAt == 0;
        return caller != job.customer && waits && outOfForce ? 0 : due + 1 days;
    }

    function checkMover(Ghost storage job, JobStatus to, address caller) private view {
        uint256 who;
        if (caller == job.customer) who |= Reference.CUSTOMER;
        if (caller == job.provider) who |= Reference.PROVIDER;
        if (grid.hasRole(grid.METASCHEDULER_ROLE(), caller)) who |= Reference.ROLE;
        if (vm.getBlockTimestamp() >= job.assignedAt + uint256(rare.claimJobTimeout()) * 60) who |= Reference.ANYONE;
        if (isOverdue(job) || waitsInVain(job)) who |= Reference.OVERDUE;
        vm.assertTrue(who & Reference.movers(job.status, to) != 0, "only the named role moves an edge");
    }

    /// Whether the customer wished to give the job up by now.
    function isOverdue(Ghost storage job) internal view returns (bool) {
        return job.wishes.giveUpAt != 0 && vm.getBlockTimestamp() >= job.wishes.giveUpAt;
    }

    /// Whether the job that this one waits for has ended as it should.
    function isReady(Ghost storage job) internal view returns (bool) {
        JobStatus earlier = jobs[job.wishes.afterJob].status;
        return job.wishes.afterAny ? earlier > JobStatus.RUNNING : earlier == JobStatus.FINISHED;
    }

    /// Whether that job has ended, and not as it should.
    function waitsInVain(Ghost storage job) internal view returns (bool) {
        if (job.wishes.afterJob == 0) return false;
        return jobs[job.wishes.afterJob].status > JobStatus.RUNNING && !isReady(job);
    }

    function hashOf(uint256 id) internal view returns (bytes32) {
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
