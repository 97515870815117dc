// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    CustomerMetaSchedulerProviderOnly,
    CustomerOnly,
    JobHotStatusOnly,
    NoSpendingAuthority,
    RemainingTimeAboveLimit,
    RunningScheduledStatusOnly
} from "../Errors.sol";
import {IdList} from "../libraries/IdList.sol";
import {States} from "../libraries/States.sol";
import {Constants} from "./Constants.sol";
import {Escrow} from "./Escrow.sol";

/// More credits for a claimed job, by hand or automatically. A top-up only ever raises the job's limit.
abstract contract TopUps is Escrow, Constants {
    using IdList for IdList.List;

    /// Assigns jobs, panics them, and tops up those that allow it.
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");

    /// Locks `amount` wei more on a job. Anyone may; the caller pays, the rest goes to the customer in the end.
    function topUpJob(bytes32 jobId, uint256 amount) external {
        Record storage record = _record(jobId);
        if (!States.isClaimed(record.status)) revert RunningScheduledStatusOnly(record.status);
        _topUp(jobId, record, msg.sender, amount);
    }

    /// Buys one slice of time from the customer's allowance, when the customer allowed it and time runs short.
    function topUpJobDelegate(bytes32 jobId) external {
        Record storage record = _record(jobId);
        if (msg.sender != record.customer && msg.sender != record.provider && !hasRole(METASCHEDULER_ROLE, msg.sender))
        {
            revert CustomerMetaSchedulerProviderOnly();
        }
        if (!record.delegateSpending) revert NoSpendingAuthority();
        if (!States.isClaimed(record.status)) revert RunningScheduledStatusOnly(record.status);
        uint256 slice = topUpSliceDurationMin;
        uint256 remaining = _remainingMinutes(record);
        if (remaining > slice) revert RemainingTimeAboveLimit(remaining, slice);
        _topUp(jobId, record, record.customer, slice * record.ratePerMinute);
    }

    /// Allows or forbids automatic top-ups of a job.
    function setDelegateSpendingAuthority(bytes32 jobId, bool delegateSpendingAuthority) external {
        Record storage record = _record(jobId);
        if (msg.sender != record.customer) revert CustomerOnly(msg.sender, record.customer);
        if (!States.isHot(record.status)) revert JobHotStatusOnly(record.status);
        record.delegateSpending = delegateSpendingAuthority;
    }

    function _topUp(bytes32 jobId, Record storage record, address payer, uint256 amount) private {
        uint128 added = _lock(payer, amount);
        record.locked += added;
        record.pendingTopUp += added;
        _toppedUp[record.provider].push(uint64(uint256(jobId)));
    }

    /// Minutes left of what the job bought; only full minutes since its start count as used.
    function _remainingMinutes(Record storage record) private view returns (uint256) {
        uint256 bought = _limitMinutes(record);
        if (record.startedAt == 0) return bought;
        uint256 used = (block.timestamp - record.startedAt) / 1 minutes;
        return used < bought ? bought - used : 0;
    }
}
