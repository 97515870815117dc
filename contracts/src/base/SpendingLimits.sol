// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {CustomerOnly} from "../Errors.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {Billing} from "../libraries/Billing.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {JobStore} from "./JobStore.sol";

/// @notice What a customer allows automatic top-ups of a job to take.
abstract contract SpendingLimits is JobStore, IRareCalls {
    /// @inheritdoc IRareCalls
    uint256 public constant TOP_UP_WINDOW_MINUTES = TOP_UP_WINDOW;

    /// @inheritdoc IRareCalls
    function setDelegateSpendingAuthority(bytes32 jobId, bool delegateSpendingAuthority) external {
        JobWord word = _wordForCustomer(jobId);
        if (word.hasExtra()) _extras[jobId].limited = false;
        _words[jobId] = word.withDelegateSpending(delegateSpendingAuthority);
    }

    /// @inheritdoc IRareCalls
    function setSpendingLimit(bytes32 jobId, uint256 limit) external {
        JobWord word = _wordForCustomer(jobId);
        (_extras[jobId].spendable, _extras[jobId].limited) = (uint96(Math.min(limit, Billing.MAX_LOCKED)), true);
        _words[jobId] = word.withExtra().withDelegateSpending(limit != 0);
    }

    /// @inheritdoc IRareCalls
    function spendable(bytes32 jobId) external view returns (uint256) {
        JobWord word = _word(jobId);
        return word.delegateSpending() && States.isHot(word.status()) ? _spendable(jobId, word) : 0;
    }

    /// The word of a hot job of the caller.
    function _wordForCustomer(bytes32 jobId) private view returns (JobWord word) {
        word = _hotWord(jobId);
        address customer = _customerOf(word);
        if (msg.sender != customer) revert CustomerOnly(msg.sender, customer);
    }
}
