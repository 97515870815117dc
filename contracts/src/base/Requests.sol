// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {ArrayLengthMismatch, InsufficientFunds, InvalidJobDefinition, NewJobRequestDisabled} from "../Errors.sol";
import {NewJobRequestEvent} from "../Events.sol";
import {JobDefinition, JobRequest, Permit, Wishes} from "../Types.sol";
import {IUsualCalls} from "../interfaces/IUsualCalls.sol";
import {WishWord, WishWords} from "../libraries/WishWord.sol";
import {Endings} from "./Endings.sol";

/// @notice Requests of jobs, one by one and in batches, with and without wishes and permits.
abstract contract Requests is Endings, IUsualCalls {
    /// @inheritdoc IUsualCalls
    function requestNewJob(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority
    ) external returns (bytes32 jobId) {
        return _request(definition, lockedCredits, jobName, delegateSpendingAuthority, WishWord.wrap(0));
    }

    /// @inheritdoc IUsualCalls
    function requestNewJobWithPermit(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Permit calldata permit
    ) external returns (bytes32 jobId) {
        _usePermit(permit);
        return _request(definition, lockedCredits, jobName, delegateSpendingAuthority, WishWord.wrap(0));
    }

    /// @inheritdoc IUsualCalls
    function requestNewJobs(JobRequest[] calldata requests) external returns (bytes32[] memory jobIds) {
        return _requestMany(requests, new WishWord[](0));
    }

    /// @inheritdoc IUsualCalls
    function requestNewJobWithWishes(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Wishes calldata wishes
    ) external returns (bytes32 jobId) {
        return _request(
            definition, lockedCredits, jobName, delegateSpendingAuthority, WishWords.wordOf(wishes, _lastJob)
        );
    }

    /// @inheritdoc IUsualCalls
    function requestNewJobWithWishesAndPermit(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        Wishes calldata wishes,
        Permit calldata permit
    ) external returns (bytes32 jobId) {
        _usePermit(permit);
        return
            _request(definition, lockedCredits, jobName, delegateSpendingAuthority, WishWords.wordOf(wishes, _lastJob));
    }

    /// @inheritdoc IUsualCalls
    function requestNewJobsWithWishes(JobRequest[] calldata requests, Wishes[] calldata wishes)
        external
        returns (bytes32[] memory jobIds)
    {
        if (wishes.length != requests.length) revert ArrayLengthMismatch();
        WishWord[] memory words = new WishWord[](wishes.length);
        for (uint256 i; i < words.length; ++i) {
            words[i] = WishWords.wordOf(wishes[i], _lastJob);
        }
        return _requestMany(requests, words);
    }

    // ---------------------------------------------------------------- parts

    /// Requests one job of the caller.
    function _request(
        JobDefinition calldata definition,
        uint256 lockedCredits,
        bytes32 jobName,
        bool delegateSpendingAuthority,
        WishWord wishes
    ) private returns (bytes32 jobId) {
        _checkOpen();
        _checkRequest(definition, lockedCredits);
        _lock(msg.sender, lockedCredits);
        jobId = _createOne(definition, lockedCredits, jobName, delegateSpendingAuthority, wishes);
        emit NewJobRequestEvent(jobId, msg.sender);
    }

    /// Requests many jobs of the caller. `wishes` is empty for none at all.
    function _requestMany(JobRequest[] calldata requests, WishWord[] memory wishes)
        private
        returns (bytes32[] memory jobIds)
    {
        _checkOpen();
        uint256 locked;
        for (uint256 i; i < requests.length; ++i) {
            JobRequest calldata request = requests[i];
            uint256 lockedCredits = request.lockedCredits;
            _checkRequest(request.definition, lockedCredits);
            locked += lockedCredits;
        }
        _lock(msg.sender, locked);
        jobIds = _createMany(requests, wishes);
        for (uint256 i; i < jobIds.length; ++i) {
            emit NewJobRequestEvent(jobIds[i], msg.sender);
        }
    }

    function _checkOpen() private view {
        if (_closed) revert NewJobRequestDisabled();
    }

    function _checkRequest(JobDefinition calldata definition, uint256 lockedCredits) private view {
        if (lockedCredits < _minimumAmount) revert InsufficientFunds(lockedCredits, _minimumAmount);
        if (definition.ntasks == 0 || definition.cpusPerTask == 0 || definition.memPerCpu == 0) {
            revert InvalidJobDefinition();
        }
        _lockable(0, lockedCredits);
    }

    /// Uses the permit if it is still unused. If the allowance is missing, the transfer of the deposit fails later.
    function _usePermit(Permit calldata permit) private {
        (uint256 value, uint256 deadline) = (permit.value, permit.deadline);
        try IERC20Permit(address(credit))
            .permit(msg.sender, address(this), value, deadline, permit.v, permit.r, permit.s) {}
            catch {}
    }
}
