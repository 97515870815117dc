// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IProviderManager} from "../IProviderManager.sol";
import {Fault, JobStatus} from "../Types.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Escrow} from "./Escrow.sol";
import {Lines} from "./Lines.sol";

/// What the usual calls and the rare ones share.
abstract contract Endings is Escrow {
    /// Assigns jobs, panics them, and tops up those that allow it.
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");

    constructor(IERC20 credit_, IProviderManager providerManager_) Lines(providerManager_) Escrow(credit_) {}

    function _noteError(bytes32 jobId, JobWord word, string memory lastError) internal returns (JobWord) {
        _extras[jobId].lastError = lastError;
        return word.withExtra();
    }

    function _panic(bytes32 jobId, JobWord word, Deal memory deal) internal {
        if (States.isClaimed(word.status())) providerManager.incFaultCount(deal.provider, Fault.PANICKED);
        _end(jobId, word, deal, JobStatus.PANICKED, 0);
    }
}
