// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobProviderOnly, ProviderNotJoined} from "../Errors.sol";
import {IProviderManager} from "../interfaces/IProviderManager.sol";
import {ISharedCalls} from "../interfaces/ISharedCalls.sol";
import {ProviderRecord} from "../Types.sol";
import {Billing} from "../libraries/Billing.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {Terms} from "../libraries/Terms.sol";
import {JobStore} from "./JobStore.sol";

/// @notice The jobs of each provider in the order of their assignment, and the terms of the assignments.
/// @dev The line of a provider:
///
///     first -> ... claimed jobs ... -> nextToClaim -> ... jobs to claim ... -> last
///
/// Jobs are claimed in that order, so one line with a mark holds both. The words of the jobs hold its links. So
/// entering and leaving cost the same for any length of the line.
abstract contract Lines is JobStore {
    using IdList for IdList.List;

    /// The parties and the money of a job.
    struct Deal {
        address customer;
        address provider;
        uint256 locked;
        uint256 rate;
        uint256 cutPercent;
    }

    /// @inheritdoc ISharedCalls
    IProviderManager public immutable providerManager;

    /// Number of the last terms; numbers count from 1.
    uint24 private _lastTerms;
    mapping(uint256 number => Terms) internal _terms;
    mapping(address provider => LineWord) internal _lines;
    /// Version of the offer that each provider's terms come from.
    mapping(address provider => uint32) internal _versions;
    /// Counters of each provider's faults. Its line counts the jobs that it started.
    mapping(address provider => ProviderRecord) internal _faults;
    /// Queue of claimed jobs with a cancel request, until the provider takes it.
    mapping(address provider => IdList.List) internal _cancelling;
    /// Queue of claimed jobs with a top-up, until the provider takes it.
    mapping(address provider => IdList.List) internal _toppedUp;

    /// @notice Sets the registry.
    /// @param providerManager_ Registry of the providers.
    constructor(IProviderManager providerManager_) {
        providerManager = providerManager_;
    }

    /// The job's provider; 0 for none.
    function _providerOf(JobWord word) internal view returns (address) {
        return _terms[word.terms()].seller.provider();
    }

    /// The error for a caller that is not the job's provider, in the order that existing clients know.
    function _refusalOfOther(address provider) internal view returns (bytes memory) {
        if (!_lines[msg.sender].valid()) return Refusals.plain(ProviderNotJoined.selector);
        return abi.encodeWithSelector(JobProviderOnly.selector, msg.sender, provider);
    }

    /// The job's parties and money now. Provider, rate and cut are 0 while the job has no provider.
    function _dealOf(bytes32 jobId, JobWord word) internal view returns (Deal memory deal) {
        JobRecord.Core memory core = _coreOf(word);
        deal.customer = core.customer;
        deal.locked = _lockedOf(jobId, word, core.deposit);
        if (word.terms() == 0) return deal;
        Terms memory terms = _terms[word.terms()];
        deal.provider = terms.seller.provider();
        deal.cutPercent = terms.tariff.cutPercent();
        deal.rate = terms.tariff.rateOf(core.sizes);
    }

    /// Minimum bill of a cancel while the job runs, in minutes.
    function _feeOf(JobWord word) internal view returns (uint256) {
        return _terms[word.terms()].tariff.feeMinutes();
    }

    /// Whole minutes that the job's credits buy.
    function _limitMinutes(Deal memory deal) internal pure returns (uint64) {
        return Billing.limitMinutes(deal.locked, deal.rate);
    }

    /// Stores terms under a new number.
    function _newTerms(Terms memory terms) internal returns (uint256 number) {
        number = ++_lastTerms;
        _terms[number] = terms;
    }

    /// Appends the job to the line. Returns the new line and the job's new word.
    function _enter(LineWord line, bytes32 jobId, JobWord word) internal returns (LineWord, JobWord) {
        uint256 id = uint256(jobId);
        uint256 last = line.last();
        if (last == 0) line = line.withFirst(id);
        else _words[_toId(last)] = _words[_toId(last)].withNext(id);
        if (line.nextToClaim() == 0) line = line.withNextToClaim(id);
        return (line.withLast(id).withClaimable(line.claimable() + 1), word.withPrevious(last));
    }

    /// Takes the job out of the provider's line and queues.
    function _leave(address provider, bytes32 jobId, JobWord word) internal {
        LineWord line = _lines[provider];
        (uint256 next, uint256 previous) = (word.next(), word.previous());
        if (previous == 0) line = line.withFirst(next);
        else _words[_toId(previous)] = _words[_toId(previous)].withNext(next);
        if (next == 0) line = line.withLast(previous);
        else _words[_toId(next)] = _words[_toId(next)].withPrevious(previous);
        if (line.nextToClaim() == uint256(jobId)) line = line.withNextToClaim(next);
        bool unclaimed = word.claimedAt() == 0;
        _lines[provider] = unclaimed ? line.withClaimable(line.claimable() - 1) : line.withClaimed(line.claimed() - 1);
        if (!word.hasExtra()) return;
        _cancelling[provider].remove(uint64(uint256(jobId)));
        _toppedUp[provider].remove(uint64(uint256(jobId)));
    }

    function _toId(uint256 number) internal pure returns (bytes32) {
        return bytes32(number);
    }
}
