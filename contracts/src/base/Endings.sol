// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {BatchItemSkippedEvent} from "../Events.sol";
import {IProviderManager} from "../interfaces/IProviderManager.sol";
import {ISharedCalls} from "../interfaces/ISharedCalls.sol";
import {JobStatus} from "../Types.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {States} from "../libraries/States.sol";
import {Texts} from "../libraries/Texts.sol";
import {Escrow} from "./Escrow.sol";
import {Lines} from "./Lines.sol";

/// @notice What MetaScheduler and RareCalls share above the escrow.
abstract contract Endings is Escrow {
    /// @inheritdoc ISharedCalls
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");

    // | percent 8 | notBefore 40 |   one slot; notBefore is 0 when no notice is open
    struct CutNotice {
        uint8 percent;
        uint40 notBefore;
    }

    /// The announced change of the platform's cut.
    CutNotice internal _cutNotice;

    /// @notice Passes both addresses on.
    /// @param credit_ Token that pays for jobs.
    /// @param providerManager_ Registry of the providers.
    constructor(IERC20 credit_, IProviderManager providerManager_) Lines(providerManager_) Escrow(credit_) {}

    /// Emits the event of a skipped item of a batch if there is an error.
    function _skipIf(bytes memory refusal, uint256 index, bytes32 jobId) internal {
        if (refusal.length != 0) emit BatchItemSkippedEvent(index, jobId, refusal);
    }

    /// Stores the beginning of an error text for the customer. An empty text keeps an earlier one. The caller stores
    /// the word.
    function _noteError(bytes32 jobId, JobWord word, bytes calldata lastError) internal returns (JobWord) {
        if (lastError.length == 0) return word;
        _extras[jobId].lastError = string(Texts.beginning(lastError));
        return word.withExtra();
    }

    /// Ends a job with a full refund. If a provider has claimed it, counts a fault of the provider.
    function _panic(bytes32 jobId, JobWord word, Deal memory deal) internal {
        if (States.isClaimed(word.status())) ++_faults[deal.provider].panicked;
        _end(jobId, word, deal, JobStatus.PANICKED, 0);
    }
}
