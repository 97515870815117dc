// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IProviderManager} from "../IProviderManager.sol";
import {JobStatus} from "../Types.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Texts} from "../libraries/Texts.sol";
import {Escrow} from "./Escrow.sol";
import {Lines} from "./Lines.sol";

/// What the usual calls and the rare ones share.
abstract contract Endings is Escrow {
    /// Assigns jobs, panics them, and tops up those that allow it.
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");

    // | percent 8 | notBefore 40 |   one slot; notBefore 0 when no notice is open
    struct CutNotice {
        uint8 percent;
        uint40 notBefore;
    }

    /// The change of the platform's cut of which notice was given.
    CutNotice internal _cutNotice;

    constructor(IERC20 credit_, IProviderManager providerManager_) Lines(providerManager_) Escrow(credit_) {}

    /// Keeps the beginning of a text for the customer; the caller stores the word.
    function _noteError(bytes32 jobId, JobWord word, bytes calldata lastError) internal returns (JobWord) {
        _extras[jobId].lastError = string(Texts.beginning(lastError));
        return word.withExtra();
    }

    /// Ends a job with a full refund, counted against the provider that has claimed it.
    function _panic(bytes32 jobId, JobWord word, Deal memory deal) internal {
        if (States.isClaimed(word.status())) ++_faults[deal.provider].panicked;
        _end(jobId, word, deal, JobStatus.PANICKED, 0);
    }
}
