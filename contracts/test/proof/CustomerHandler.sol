// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Affinity, JobDefinition, JobRequest, JobStatus, Label, Permit, StorageType, Wishes} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {Ghost} from "./Ghosts.sol";
import {Player} from "./Player.sol";
import {Reference} from "./Reference.sol";

/// Calls of customers on their jobs, including calls from other accounts.
abstract contract CustomerHandler is Player {
    bytes32 private constant PERMIT =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    function request(uint256 who, uint256 amount, uint256 size, uint256 allow) public {
        JobRequest memory asked = someRequest(amount, size, allow);
        bytes memory call = abi.encodeCall(
            grid.requestNewJob, (asked.definition, asked.lockedCredits, asked.jobName, asked.delegateSpendingAuthority)
        );
        requested(customers[who % 2], asked, call);
    }

    /// By a signature, which may be too small, forged, or already used by an observer. Then an earlier allowance
    /// counts, if there is one.
    function requestWithPermit(uint256 who, uint256 amount, uint256 size, uint256 flaw) external {
        JobRequest memory asked = someRequest(amount, size, flaw);
        address caller = customers[who % 2];
        bool allowed = flaw / 4 % 2 == 1;
        Permit memory permit = signed(who % 2, flaw % 4 == 0 ? 1 : asked.lockedCredits);
        if (flaw % 4 == 1) permit.s = keccak256("forged");
        bytes memory call = abi.encodeCall(
            grid.requestNewJobWithPermit,
            (asked.definition, asked.lockedCredits, asked.jobName, asked.delegateSpendingAuthority, permit)
        );
        grant(caller, allowed ? type(uint256).max : 0);
        if (flaw % 4 == 2) {
            credit.permit(caller, address(grid), permit.value, permit.deadline, permit.v, permit.r, permit.s);
        }
        bool passed = requested(caller, asked, call);
        bool enough = asked.lockedCredits <= (flaw % 4 == 1 ? 0 : permit.value) || (flaw % 4 == 1 && allowed);
        if (passed) vm.assertTrue(enough, "only with an allowance");
        grant(caller, type(uint256).max);
        if (passed || flaw % 4 == 0 || (flaw % 4 == 1 && !allowed)) return;
        call = abi.encodeCall(
            grid.requestNewJob, (asked.definition, asked.lockedCredits, asked.jobName, asked.delegateSpendingAuthority)
        );
        vm.assertTrue(!requested(caller, asked, call), "a forged permit blocks nothing");
    }

    function grant(address caller, uint256 amount) private {
        vm.prank(caller);
        credit.approve(address(grid), amount);
    }

    function requested(address caller, JobRequest memory asked, bytes memory call) private returns (bool passed) {
        return requested(caller, asked, Wishes(0, 0, 0, 0, 0, false), call);
    }

    function requested(address caller, JobRequest memory asked, Wishes memory wishes, bytes memory call)
        internal
        returns (bool passed)
    {
        bytes memory answer;
        (passed, answer) = play(caller, address(grid), call);
        if (!passed) return false;
        bookRequest(caller, asked, wishes);
        vm.assertEq(abi.decode(answer, (uint256)), jobCount(), "ids count up");
    }

    function requestMany(uint256 who, uint256 count, uint256 amount, uint256 size) external {
        address caller = customers[who % 2];
        JobRequest[] memory asked = new JobRequest[](count % 4);
        for (uint256 i; i < asked.length; ++i) {
            asked[i] = someRequest(amount / (i + 1), size / (i + 1), size >> i);
        }
        if (!playGrid(caller, abi.encodeCall(grid.requestNewJobs, (asked)))) return;
        for (uint256 i; i < asked.length; ++i) {
            bookRequest(caller, asked[i], Wishes(0, 0, 0, 0, 0, false));
        }
    }

    function cancel(uint256 number, uint256 chance) public {
        uint256 id = chance % 5 == 0 ? pickHot(number) : pickClaimed(number);
        Ghost storage job = jobs[id];
        address provider = job.provider;
        uint256 closableFrom = job.cancelAt + 1 days;
        if (job.cancelAt != 0 && chance % 2 == 1) waitUntil(answerDue(job) - chance / 4 % 2);
        if (job.cancelAt != 0 && chance % 4 == 2) waitUntil(closableFrom - chance / 4 % 2);
        if (!playGrid(perhaps(job.customer, chance), abi.encodeCall(rare.cancelJob, (bytes32(id))))) return;
        if (job.status == JobStatus.CANCELLED) {
            if (job.before < JobStatus.SCHEDULED) return;
            vm.assertTrue(job.cancelAt != 0 && vm.getBlockTimestamp() >= closableFrom, "closed a day after the request");
            ++providerOf[provider].record.timedOut;
            return;
        }
        bool open = job.cancelAt == 0 || vm.getBlockTimestamp() < closableFrom;
        vm.assertTrue(open, "open only within a day after the request");
        if (job.cancelAt != 0) return checkRelease(job);
        (job.cancelAt, job.delegateSpending) = (vm.getBlockTimestamp(), false);
        pushOnce(providerOf[provider].cancelling, id);
        if (chance % 3 == 0) cancel((id - 1) * 16, 1 + chance / 3 % 2); // after the time for the answer, or a day
    }

    /// After the time for the answer, a repeated request leaves only what can be billed.
    function checkRelease(Ghost storage job) private view {
        if (vm.getBlockTimestamp() < answerDue(job)) return;
        vm.assertEq(job.locked, mostBillable(job), "only what can be billed stays locked");
    }

    function topUp(uint256 number, uint256 amount, uint256 who) external {
        uint256 id = pickClaimed(number);
        address caller = customers[who % 2];
        amount = amount % 64 == 0 ? amount : amount % 500 ether;
        if (!playGrid(caller, abi.encodeCall(grid.topUpJob, (bytes32(id), amount)))) return;
        vm.assertTrue(caller == jobs[id].customer || amount >= jobs[id].rate, "other accounts add at least a minute");
        bookTopUp(id, caller, amount);
    }

    function topUpDelegate(uint256 number, uint256 chance) public {
        uint256 id = pickClaimed(number);
        Ghost storage job = jobs[id];
        address[3] memory entitled = [job.customer, job.provider, operator];
        address caller = perhaps(entitled[chance / 64 % 3], chance);
        if (chance % 2 == 0) allowSpending((id - 1) * 16, 1, 1);
        uint256 slice = rare.topUpSliceDurationMin();
        uint256 early = chance / 8 % 12 minutes;
        if (chance % 8 < 3 && endOf(job) > early) waitUntil(endOf(job) - early);
        if (!playGrid(caller, abi.encodeCall(grid.topUpJobDelegate, (bytes32(id))))) return;
        vm.assertTrue(job.delegateSpending, "only with authority");
        vm.assertTrue(caller == entitled[0] || caller == entitled[1] || caller == operator, "by an entitled account");
        uint256 amount = slice * job.rate < job.spendable ? slice * job.rate : job.spendable;
        vm.assertTrue(amount >= job.rate, "at least a minute");
        uint256 end = endOf(job) + (job.startedAt == 0 ? vm.getBlockTimestamp() : 0);
        uint256 window = slice < 10 ? slice : 10;
        vm.assertTrue(end + 1 minutes > vm.getBlockTimestamp(), "not after the bought time");
        vm.assertTrue(end < vm.getBlockTimestamp() + (window + 1) * 1 minutes, "only near its end");
        job.spendable -= amount;
        bookTopUp(id, job.customer, amount);
    }

    function allowSpending(uint256 number, uint256 allow, uint256 chance) public {
        uint256 id = pickHot(number);
        address caller = perhaps(jobs[id].customer, chance);
        bool allowed = allow % 4 != 0;
        if (!playGrid(caller, abi.encodeCall(rare.setDelegateSpendingAuthority, (bytes32(id), allowed)))) return;
        vm.assertEq(caller, jobs[id].customer, "only the customer gives authority");
        (jobs[id].delegateSpending, jobs[id].spendable) = (allowed, jobs[id].deposit);
    }

    function limitSpending(uint256 number, uint256 limit, uint256 chance) external {
        uint256 id = pickHot(number);
        address caller = perhaps(jobs[id].customer, chance);
        limit = limit % 8 == 0 ? 0 : limit % 64 == 1 ? limit : limit % 2000 ether;
        if (!playGrid(caller, abi.encodeCall(rare.setSpendingLimit, (bytes32(id), limit)))) return;
        vm.assertEq(caller, jobs[id].customer, "only the customer sets a limit");
        if (limit > type(uint96).max - 1) limit = type(uint96).max - 1;
        (jobs[id].delegateSpending, jobs[id].spendable) = (limit != 0, limit);
    }

    /// End of the bought time of a started job; of another one, its duration.
    function endOf(Ghost storage job) private view returns (uint256) {
        return job.startedAt + Reference.limit(job.locked, job.rate) * 1 minutes;
    }

    // ---------------------------------------------------------------- requests and their bookings

    function someRequest(uint256 amount, uint256 size, uint256 allow) internal pure returns (JobRequest memory asked) {
        size = dice(size);
        JobDefinition memory job = asked.definition;
        job.gpus = uint64(size % 4 == 3 ? 1 + size % 9 : 0);
        job.ntasks = uint64(size / 4 % 16 == 0 ? size / 64 % 40 : 1 + size / 64 % 3);
        job.cpusPerTask = uint64(1 + size / 4096 % 3);
        job.memPerCpu = uint64(1 + size / 65536 % 4000);
        asked.lockedCredits = amount % 64 == 0 ? amount : 90 ether + amount % 3000 ether;
        job.batchLocationHash = string(new bytes(size / 2 ** 80 % 200));
        job.storageType = StorageType(size / 2 ** 88 % 5);
        job.uses = someLabels(size / 2 ** 96);
        job.affinity = new Affinity[](size / 2 ** 104 % 3);
        for (uint256 i; i < job.affinity.length; ++i) {
            job.affinity[i] = Affinity(Label("zone", "west"), i == 0 ? bytes2("==") : bytes2("<"));
        }
        asked.jobName = bytes32(size) << size % 9 * 32;
        asked.delegateSpendingAuthority = allow % 2 == 0;
    }

    function bookRequest(address customer, JobRequest memory asked, Wishes memory wishes) internal {
        created(customer, asked, wishes);
        checkJob(jobCount());
    }

    function bookTopUp(uint256 id, address payer, uint256 amount) private {
        Ghost storage job = jobs[id];
        vm.assertTrue(job.status == JobStatus.SCHEDULED || job.status == JobStatus.RUNNING, "only claimed jobs");
        vm.assertTrue(amount != 0 && job.cancelAt == 0, "not 0, and not after a cancel request");
        uint256 limit = Reference.limit(job.locked, job.rate);
        lock(job, payer, amount);
        job.pendingTopUp += amount;
        if (Reference.limit(job.locked, job.rate) == limit) return;
        pushOnce(providerOf[job.provider].toppedUp, id);
    }

    /// A job, usually in a state from `least` to `most`, so that calls meet suitable jobs.
    function pick(uint256 number, JobStatus least, JobStatus most) internal view returns (uint256 id) {
        uint256 count = jobCount();
        id = 1 + number / 16 % count;
        if (number % 16 == 15) return id;
        for (uint256 i; i < count; ++i) {
            uint256 other = 1 + (id - 1 + i) % count;
            if (jobs[other].status >= least && jobs[other].status <= most) return other;
        }
    }

    function pickHot(uint256 number) internal view returns (uint256) {
        return pick(number, JobStatus.PENDING, JobStatus.RUNNING);
    }

    function pickClaimed(uint256 number) internal view returns (uint256) {
        return pick(number, JobStatus.SCHEDULED, JobStatus.RUNNING);
    }

    /// A customer's signature that lets the contract take this amount, without deadline.
    function signed(uint256 who, uint256 value) internal view returns (Permit memory permit) {
        (permit.value, permit.deadline) = (value, type(uint256).max);
        bytes32 message = keccak256(
            abi.encode(PERMIT, customers[who], address(grid), value, credit.nonces(customers[who]), type(uint256).max)
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", credit.DOMAIN_SEPARATOR(), message));
        (permit.v, permit.r, permit.s) = vm.sign(customerKeys[who], digest);
    }

    function someLabels(uint256 size) private pure returns (Label[] memory labels) {
        labels = new Label[](size % 4);
        for (uint256 i; i < labels.length; ++i) {
            labels[i] = Label("key", string(new bytes(size / 4 % 150)));
        }
    }

    /// A deadline in the near future.
    function waitUntil(uint256 time) internal {
        uint256 now_ = vm.getBlockTimestamp();
        if (time > now_ && time < now_ + 3 days) vm.warp(time);
    }
}
