// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TimeoutTooEarly} from "../../src/Errors.sol";
import {Assignment, JobStatus, StatusReport} from "../../src/Types.sol";
import {vm} from "../Vm.sol";
import {Ghost, GhostProvider} from "./Ghosts.sol";
import {WishHandler} from "./WishHandler.sol";

/// Calls of the meta-scheduler and the providers on jobs, in any order and number.
abstract contract JobHandler is WishHandler {
    // ---------------------------------------------------------------- meta-scheduler

    /// Mostly a job that can be assigned: its customer cancels another one, so that histories continue.
    function assign(uint256 number, uint256 who, uint256 chance) public {
        uint256 id = pick(number, JobStatus.PENDING, JobStatus.PENDING);
        if (jobs[id].status == JobStatus.PENDING && isStuck(id, who) && chance / 8 % 8 != 0) {
            return cancel((id - 1) * 16, 5);
        }
        assigning(providers[who % 2]);
        playGrid(perhaps(operator, chance), abi.encodeCall(grid.metaSchedule, (bytes32(id), providers[who % 2])));
    }

    /// Whether no assignment to this provider succeeds any more, or not before another job has ended.
    function isStuck(uint256 id, uint256 who) private view returns (bool) {
        Ghost storage job = jobs[id];
        bool isLate = job.wishes.maxRatePerMinute == 0 && providerOf[providers[who % 2]].raisedAt >= job.submittedAt;
        return isLate || isOverdue(job) || (job.wishes.afterJob != 0 && !isReady(job));
    }

    function assignMany(uint256 number, uint256 count, uint256 who, uint256 chance) external {
        Assignment[] memory wishes = new Assignment[](1 + count % 5);
        for (uint256 i; i < wishes.length; ++i) {
            wishes[i] = Assignment(bytes32(1 + (pickHot(number) + i) % jobCount()), providers[who % 2]);
        }
        if (count % 32 == 9) wishes[0].jobId = bytes32(jobCount() + 1);
        assigning(providers[who % 2]);
        playGrid(perhaps(operator, chance), abi.encodeCall(grid.metaScheduleJobs, (wishes)));
    }

    function panic(uint256 number, uint256 chance) external {
        if (chance % 3 != 0) return advance(number, chance, chance);
        uint256 id = pickHot(number);
        Ghost storage job = jobs[id];
        address provider = job.provider;
        if (!playGrid(perhaps(operator, chance), abi.encodeCall(rare.panicJob, (bytes32(id), "burns")))) return;
        if (job.before >= JobStatus.SCHEDULED) ++providerOf[provider].record.panicked;
    }

    function timeout(uint256 number, uint256 who, uint256 chance) external {
        uint256 id = pick(number, JobStatus.META_SCHEDULED, JobStatus.RUNNING);
        Ghost storage job = jobs[id];
        address caller = perhaps(who % 2 == 0 ? job.customer : operator, chance);
        address provider = job.provider;
        uint256 due = provider == address(0) ? type(uint256).max : dueFor(id, caller);
        if (due < type(uint256).max && chance % 2 == 0) waitUntil(due - (due > 0 && chance % 4 == 0 ? 1 : 0));
        (bool passed, bytes memory answer) = play(caller, address(grid), abi.encodeCall(rare.timeoutJob, (bytes32(id))));
        if (!passed && bytes4(answer) != TimeoutTooEarly.selector) return;
        if (!passed) {
            return vm.assertEq(answer, abi.encodeWithSelector(TimeoutTooEarly.selector, due), "earliest time");
        }
        vm.assertTrue(vm.getBlockTimestamp() >= due, "not before the earliest time");
        ++providerOf[provider].record.timedOut;
    }

    // ---------------------------------------------------------------- provider

    function claim(uint256 who, uint256 chance) public {
        playGrid(perhaps(providers[who % 2], chance), abi.encodeCall(grid.claimNextJob, ()));
    }

    function claimMany(uint256 who, uint256 most) external {
        playGrid(providers[who % 2], abi.encodeCall(grid.claimNextJobs, (most % 4)));
    }

    function report(uint256 number, uint256 status, uint256 ran, uint256 chance) public {
        uint256 id = pickClaimed(number);
        bool[1] memory open = [hot(id)];
        StatusReport memory made = someReport(id, status, ran);
        bytes memory call = abi.encodeCall(
            grid.providerSetJobStatus, (made.jobId, made.next, made.durationMinute, made.lastError, made.exitCode)
        );
        reporting(made.durationMinute);
        if (playGrid(perhaps(jobs[id].provider, chance), call)) bookPanic(id, open[0]);
    }

    function reportMany(uint256 number, uint256 count, uint256 status, uint256 ran) external {
        StatusReport[] memory made = new StatusReport[](1 + count % 5);
        uint256 first = pickClaimed(number);
        bool[] memory open = new bool[](made.length);
        for (uint256 i; i < made.length; ++i) {
            uint256 id = 1 + (first - 1 + i) % jobCount();
            open[i] = hot(id);
            made[i] = someReport(id, status, ran);
            for (uint256 j; j < i; ++j) {
                if (made[j].jobId == made[i].jobId) open[i] = false; // reported twice
            }
        }
        if (count % 32 == 9) made[0].jobId = bytes32(jobCount() + 1);
        reporting(made[0].durationMinute);
        address caller = perhaps(jobs[first].provider, count);
        if (!playGrid(caller, abi.encodeCall(grid.providerSetJobStatuses, (made)))) return;
        for (uint256 i; i < made.length; ++i) {
            bookPanic(uint256(made[i].jobId), open[i]);
        }
    }

    function refuse(uint256 number, uint256 chance) external {
        uint256 id = pick(number, JobStatus.META_SCHEDULED, JobStatus.SCHEDULED);
        Ghost storage job = jobs[id];
        address provider = job.provider;
        if (!playGrid(perhaps(provider, chance), abi.encodeCall(rare.refuseJob, (bytes32(id))))) return;
        if (job.cancelAt == 0) ++providerOf[provider].record.refused;
    }

    function hear(uint256 who, uint256 kind) external {
        GhostProvider storage first = providerOf[providers[who % 2]];
        if (kind % 4 < 2 && (kind % 2 == 0 ? first.cancelling.length : first.toppedUp.length) == 0) who = 1 - who % 2;
        bytes memory call = kind % 2 == 0
            ? abi.encodeCall(rare.claimNextCancellingJob, ())
            : abi.encodeCall(rare.claimNextTopUpJob, ());
        playGrid(providers[who % 2], call);
    }

    /// One step of a usual job, so that many jobs progress.
    function advance(uint256 number, uint256 end, uint256 ran) public {
        uint256 id = pickHot(number);
        Ghost storage job = jobs[id];
        number = (id - 1) * 16;
        if (job.status == JobStatus.PENDING) return assign(number, end, 9);
        if (job.status == JobStatus.META_SCHEDULED) return claim(job.provider == providers[0] ? 0 : 1, 1);
        if (job.status == JobStatus.SCHEDULED) return report(number, 0, ran, 1);
        report(number, 1 + end % 5, ran, 1);
    }

    /// A new job that runs at once and is topped up near its end. Jobs that wait long for that are overdue.
    function runToTopUp(uint256 who, uint256 amount, uint256 size, uint256 ran) external {
        request(who, amount, size, 0);
        uint256 id = jobCount();
        assign((id - 1) * 16, who, 1);
        for (uint256 i; i < 8 && jobs[id].status == JobStatus.META_SCHEDULED; ++i) {
            claim(who, 1);
        }
        if (jobs[id].status != JobStatus.SCHEDULED) return;
        report((id - 1) * 16, 0, 0, 1);
        topUpDelegate((id - 1) * 16, 2);
        if (ran % 2 == 0) report((id - 1) * 16, 1 + ran % 5, ran, 1);
    }

    /// Up to five such steps, so that some jobs end.
    function carry(uint256 number, uint256 end, uint256 ran) external {
        for (uint256 i; i < 1 + dice(end) % 5; ++i) {
            advance(number, end, ran);
        }
    }

    // ---------------------------------------------------------------- reports and their bookings

    function someReport(uint256 id, uint256 status, uint256 ran) private pure returns (StatusReport memory) {
        JobStatus next = JobStatus(status % 32 == 31 ? status / 32 % 9 : uint256(JobStatus.RUNNING) + status % 6);
        if (next > JobStatus.RUNNING && status % 6 == 0 && status % 32 != 31) next = JobStatus.RUNNING;
        uint64 ranMinutes = uint64(ran % 16 == 0 ? ran : ran % 600);
        return
            StatusReport(
                bytes32(id), next, ranMinutes, ran % 5 == 0 ? "text" : "", ran % 7 == 0 ? int64(768) : int64(0)
            );
    }

    /// Counts a panic that a provider reported after its claim.
    function bookPanic(uint256 id, bool wasHot) private {
        if (id >= jobs.length || !wasHot) return;
        Ghost storage job = jobs[id];
        if (job.status == JobStatus.PANICKED && job.before >= JobStatus.SCHEDULED) {
            ++providerOf[job.provider].record.panicked;
        }
    }

    function hot(uint256 id) private view returns (bool) {
        return jobs[id].status <= JobStatus.RUNNING;
    }
}
