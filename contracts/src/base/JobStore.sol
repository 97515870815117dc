// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobCreated, JobTransitionEvent} from "../Events.sol";
import {InvalidJob, OutOfBounds} from "../Errors.sol";
import {Job, JobCost, JobDefinition, JobStatus, JobTerms, JobTime} from "../Types.sol";
import {Billing} from "../libraries/Billing.sol";
import {IdList} from "../libraries/IdList.sol";
import {States} from "../libraries/States.sol";

/// Keeps all jobs and the lists they are in, and is the only place where a job changes its state.
abstract contract JobStore {
    using IdList for IdList.List;

    // slot 0 | customer 160 | submittedAt 40 | status 8 | hasCancelRequest 8 | delegateSpending 8 | cutPercent 8 |
    // slot 1 | provider 160 | assignedAt 40 | claimedAt 40 |
    // slot 2 | lastRefuser 160 | startedAt 40 | endedAt 40 |
    // slot 3 | locked 128 | finalCost 128 |                    wei
    // slot 4 | ratePerMinute 128 | pendingTopUp 128 |          wei
    // slot 5 | cancelRequestedAt 40 | changedInBlock 64 | exitCode 64 |
    // slot 6 | name 256 |
    // slot 7   lastError
    // slot 8.. definition
    struct Record {
        address customer;
        uint40 submittedAt;
        JobStatus status;
        bool hasCancelRequest;
        bool delegateSpending;
        uint8 cutPercent;
        address provider;
        uint40 assignedAt;
        uint40 claimedAt;
        address lastRefuser;
        uint40 startedAt;
        uint40 endedAt;
        uint128 locked;
        uint128 finalCost;
        uint128 ratePerMinute;
        uint128 pendingTopUp;
        uint40 cancelRequestedAt;
        uint64 changedInBlock;
        int64 exitCode;
        bytes32 name;
        string lastError;
        JobDefinition definition;
    }

    /// Id of the last job; ids count from 1.
    uint256 public jobIdCounter;

    mapping(bytes32 jobId => Record) private _records;
    mapping(address customer => bytes32[]) private _idsOf;

    /// META_SCHEDULED jobs of a provider, oldest assignment first.
    mapping(address provider => IdList.List) internal _claimable;
    /// SCHEDULED and RUNNING jobs of a provider, in the order of their claims.
    mapping(address provider => IdList.List) internal _claimed;
    /// Claimed jobs with a cancel request that the provider has not been told of.
    mapping(address provider => IdList.List) internal _cancelling;
    /// Claimed jobs with a top-up that the provider has not been told of.
    mapping(address provider => IdList.List) internal _toppedUp;

    /// The whole job.
    function get(bytes32 jobId) public view returns (Job memory job) {
        Record storage record = _record(jobId);
        job.jobId = jobId;
        job.status = record.status;
        job.customerAddr = record.customer;
        job.providerAddr = record.provider;
        job.definition = record.definition;
        job.cost = JobCost(record.locked, record.finalCost, record.pendingTopUp, record.delegateSpending);
        job.time = JobTime({
            submit: record.submittedAt,
            start: record.startedAt,
            end: record.endedAt,
            cancelRequestTimestamp: record.cancelRequestedAt,
            blockNumberStateChange: record.changedInBlock,
            panicTimestamp: record.status == JobStatus.PANICKED ? record.endedAt : 0
        });
        job.jobName = record.name;
        job.hasCancelRequest = record.hasCancelRequest;
        job.lastError = record.lastError;
        job.exitCode = record.exitCode;
    }

    /// The terms fixed when the job was assigned.
    function jobTerms(bytes32 jobId) public view returns (JobTerms memory terms) {
        Record storage record = _record(jobId);
        terms.lastRefuser = record.lastRefuser;
        if (record.provider == address(0)) return terms;
        terms.ratePerMinute = record.ratePerMinute;
        terms.limitMinutes = _limitMinutes(record);
        terms.assignedAt = record.assignedAt;
        terms.claimedAt = record.claimedAt;
        terms.cutPercent = record.cutPercent;
    }

    /// Several jobs with their terms, in the order asked for.
    function getMany(bytes32[] calldata ids) external view returns (Job[] memory jobs_, JobTerms[] memory terms) {
        jobs_ = new Job[](ids.length);
        terms = new JobTerms[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            jobs_[i] = get(ids[i]);
            terms[i] = jobTerms(ids[i]);
        }
    }

    /// Ids of all jobs of a customer, oldest first. For customers of many jobs see `getByCustomerPaged`.
    function getByCustomer(address customer) external view returns (bytes32[] memory) {
        return _idsOf[customer];
    }

    /// Ids of up to `howMany` jobs of a customer from the `from`-th (0: the oldest).
    function getByCustomerPaged(address customer, uint256 from, uint256 howMany)
        external
        view
        returns (bytes32[] memory ids)
    {
        bytes32[] storage all = _idsOf[customer];
        uint256 left = from < all.length ? all.length - from : 0;
        ids = new bytes32[](howMany < left ? howMany : left);
        for (uint256 i; i < ids.length; ++i) {
            ids[i] = all[from + i];
        }
    }

    /// Ids of up to `howMany` jobs that the provider has claimed and not ended, from job `cursor` (0: the oldest
    /// claim), and where the next page starts (0: nowhere). Reverts with OutOfBounds when job `cursor` has ended.
    function hotJobsOf(address provider, bytes32 cursor, uint256 howMany)
        external
        view
        returns (bytes32[] memory ids, bytes32 nextCursor)
    {
        (uint64[] memory listed, uint64 next) = _claimed[provider].page(uint256(cursor), howMany);
        ids = new bytes32[](listed.length);
        for (uint256 i; i < listed.length; ++i) {
            ids[i] = _toId(listed[i]);
        }
        return (ids, _toId(next));
    }

    /// Makes the next job, PENDING.
    function _create(JobDefinition calldata definition, uint128 locked, bytes32 name, bool delegateSpending)
        internal
        returns (bytes32 jobId)
    {
        jobId = bytes32(++jobIdCounter);
        Record storage record = _records[jobId];
        record.customer = msg.sender;
        record.submittedAt = uint40(block.timestamp);
        record.delegateSpending = delegateSpending;
        record.locked = locked;
        record.changedInBlock = uint64(block.number);
        record.name = name;
        _copy(definition, record.definition);
        _idsOf[msg.sender].push(jobId);
        emit JobCreated(jobId);
    }

    /// Moves a job along an edge of the state machine and keeps the provider's lists in step.
    function _move(bytes32 jobId, Record storage record, JobStatus to) internal {
        JobStatus from = record.status;
        States.check(from, to);
        _relist(record.provider, uint64(uint256(jobId)), from, to);
        record.status = to;
        record.changedInBlock = uint64(block.number);
        emit JobTransitionEvent(jobId, from, to);
    }

    /// The stored job; reverts with InvalidJob when there is none.
    function _record(bytes32 jobId) internal view returns (Record storage record) {
        record = _records[jobId];
        if (record.customer == address(0)) revert InvalidJob();
    }

    function _limitMinutes(Record storage record) internal view returns (uint64) {
        return Billing.limitMinutes(record.locked, record.ratePerMinute);
    }

    function _toId(uint64 listed) internal pure returns (bytes32) {
        return bytes32(uint256(listed));
    }

    function _relist(address provider, uint64 id, JobStatus from, JobStatus to) private {
        if (to == JobStatus.META_SCHEDULED) _claimable[provider].push(id);
        if (from == JobStatus.META_SCHEDULED) _claimable[provider].remove(id);
        if (to == JobStatus.SCHEDULED) _claimed[provider].push(id);
        if (States.isClaimed(from) && !States.isClaimed(to)) {
            _claimed[provider].remove(id);
            _cancelling[provider].remove(id);
            _toppedUp[provider].remove(id);
        }
    }

    // The compiler does not copy arrays of structs from calldata to storage by itself.
    function _copy(JobDefinition calldata from, JobDefinition storage to) private {
        to.gpus = from.gpus;
        to.memPerCpu = from.memPerCpu;
        to.cpusPerTask = from.cpusPerTask;
        to.ntasks = from.ntasks;
        to.batchLocationHash = from.batchLocationHash;
        to.storageType = from.storageType;
        for (uint256 i; i < from.uses.length; ++i) {
            to.uses.push(from.uses[i]);
        }
        for (uint256 i; i < from.affinity.length; ++i) {
            to.affinity.push(from.affinity[i]);
        }
    }
}
