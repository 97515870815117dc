// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {OutOfBounds} from "../Errors.sol";
import {Job, JobCost, JobStatus, JobTerms, JobTime, Wishes} from "../Types.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {Billing} from "../libraries/Billing.sol";
import {Blob} from "../libraries/Blob.sol";
import {IdRuns, IdRunsFields} from "../libraries/IdRuns.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {States} from "../libraries/States.sol";
import {Lines} from "./Lines.sol";

/// @notice Jobs as clients read them.
abstract contract JobViews is Lines, IRareCalls {
    /// @inheritdoc IRareCalls
    function get(bytes32 jobId) external view returns (Job memory job) {
        (job,) = _whole(jobId);
    }

    /// @inheritdoc IRareCalls
    function jobTerms(bytes32 jobId) external view returns (JobTerms memory terms) {
        (, terms) = _whole(jobId);
    }

    /// @inheritdoc IRareCalls
    function getMany(bytes32[] memory ids)
        public
        view
        returns (Job[] memory jobs_, JobTerms[] memory terms, Wishes[] memory wishes)
    {
        jobs_ = new Job[](ids.length);
        terms = new JobTerms[](ids.length);
        wishes = new Wishes[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            (jobs_[i], terms[i]) = _whole(ids[i]);
            wishes[i] = _wishesOf(_words[ids[i]]).asWishes();
        }
    }

    /// @inheritdoc IRareCalls
    function pendingJobs(uint256 first, uint256 howMany)
        external
        view
        returns (Job[] memory jobs_, JobTerms[] memory terms, Wishes[] memory wishes)
    {
        uint256 end = first > _lastJob ? first : first + Math.min(howMany, _lastJob + 1 - first);
        bytes32[] memory room = new bytes32[](end - first);
        uint256 found;
        for (; first < end; ++first) {
            JobWord word = _words[_toId(first)];
            if (word.exists() && word.status() == JobStatus.PENDING) room[found++] = _toId(first);
        }
        return getMany(_cut(room, found));
    }

    /// @inheritdoc IRareCalls
    function getByCustomer(address customer) external view returns (bytes32[] memory) {
        return _page(customer, 0, type(uint256).max);
    }

    /// @inheritdoc IRareCalls
    function getByCustomerPaged(address customer, uint256 from, uint256 howMany)
        external
        view
        returns (bytes32[] memory)
    {
        return _page(customer, from, howMany);
    }

    /// @inheritdoc IRareCalls
    function jobIdByCustomer(address customer, uint256 index) external view returns (bytes32) {
        bytes32[] memory ids = _page(customer, index, 1);
        if (ids.length == 0) revert OutOfBounds();
        return ids[0];
    }

    /// @inheritdoc IRareCalls
    function hotJobsOf(address provider, bytes32 cursor, uint256 howMany)
        external
        view
        returns (bytes32[] memory ids, bytes32 nextCursor)
    {
        LineWord line = _lines[provider];
        JobWord word = _words[cursor];
        if (cursor == 0) cursor = line.claimed() == 0 ? bytes32(0) : _toId(line.first());
        else if (!States.isClaimed(word.status()) || _providerOf(word) != provider) revert OutOfBounds();
        bytes32[] memory room = new bytes32[](Math.min(howMany, line.claimed()));
        uint256 found;
        for (; found < room.length && cursor != 0; ++found) {
            room[found] = cursor;
            cursor = _toId(_words[cursor].next());
            if (uint256(cursor) == line.nextToClaim()) cursor = 0;
        }
        return (_cut(room, found), cursor);
    }

    /// The first `count` ids.
    function _cut(bytes32[] memory room, uint256 count) private pure returns (bytes32[] memory ids) {
        ids = new bytes32[](count);
        for (uint256 i; i < count; ++i) {
            ids[i] = room[i];
        }
    }

    /// The job and its terms from all places where they are stored.
    function _whole(bytes32 jobId) private view returns (Job memory job, JobTerms memory terms) {
        JobWord word = _word(jobId);
        JobRecord.Core memory core = _coreOf(word);
        Deal memory deal = _dealOf(jobId, word);
        Extra memory extra = _extras[jobId];
        job.jobId = jobId;
        job.status = word.status();
        job.customerAddr = core.customer;
        job.providerAddr = deal.provider;
        job.definition = JobRecord.definitionOf(_blobOf(word), word.position());
        job.jobName = JobRecord.nameOf(_blobOf(word), word.position());
        bool cold = !States.isHot(job.status);
        uint256 cost = cold ? Billing.cost(word.billedMinutes(), deal.rate, deal.locked) : 0;
        job.cost = JobCost(deal.locked, cost, extra.pendingTopUp, word.delegateSpending());
        uint256 end = cold ? word.endedAt() : 0;
        job.time = JobTime({
            submit: core.submittedAt,
            start: word.started() ? word.startedAt() : end,
            end: end,
            cancelRequestTimestamp: _cancelTime(word, extra.cancelRequestedAt, end),
            blockNumberStateChange: word.changedInBlock(),
            panicTimestamp: job.status == JobStatus.PANICKED ? end : 0
        });
        job.hasCancelRequest = word.cancelRequested();
        job.lastError = extra.lastError;
        job.exitCode = extra.exitCode;
        terms.lastRefuser = extra.lastRefuser;
        terms.released = extra.released;
        if (deal.provider == address(0)) return (job, terms);
        terms.ratePerMinute = deal.rate;
        terms.limitMinutes = _limitMinutes(deal);
        terms.assignedAt = uint64(word.assignedAt());
        terms.claimedAt = uint64(word.claimedAt());
        terms.startedAt = uint64(word.startedAt());
        terms.cutPercent = uint8(deal.cutPercent);
        terms.feeMinutes = uint8(_feeOf(word));
    }

    /// Time of the cancel request; 0 for none. A cancel that took effect at once stored no time: the end has it.
    function _cancelTime(JobWord word, uint256 requested, uint256 end) private pure returns (uint256) {
        if (!word.cancelRequested()) return 0;
        return requested == 0 ? end : requested;
    }

    /// A page of a customer's ids. Goes back from the newest word of ids to the one with index `from`.
    function _page(address customer, uint256 from, uint256 howMany) private view returns (bytes32[] memory ids) {
        IdRuns word = _idsOf[customer];
        uint256 begin = word.jobs(); // index of the first id of the words read so far
        if (from >= begin) return ids;
        ids = new bytes32[](Math.min(howMany, begin - from));
        while (begin > from) {
            for (uint256 i; i < IdRunsFields.RUNS && begin > from; ++i) {
                (uint256 first, uint256 count) = word.run(i);
                begin -= count;
                _fill(ids, from, first, begin, count);
            }
            if (begin > from) word = JobRecord.olderIdsIn(Blob.addressOf(address(this), word.older()));
        }
    }

    /// Copies a run of ids that begins at index `begin` into a page that begins at index `from`.
    function _fill(bytes32[] memory ids, uint256 from, uint256 first, uint256 begin, uint256 count) private pure {
        uint256 end = Math.min(begin + count, from + ids.length);
        for (uint256 index = Math.max(begin, from); index < end; ++index) {
            ids[index - from] = _toId(first + index - begin);
        }
    }
}
