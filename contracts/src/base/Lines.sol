// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProviderManager} from "../IProviderManager.sol";
import {ProviderRecord} from "../Types.sol";
import {Billing} from "../libraries/Billing.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {Terms} from "../libraries/Terms.sol";
import {JobStore} from "./JobStore.sol";

/// The jobs of each provider, in the order of their assignment, and the terms that bind them.
///
///     first -> ... claimed jobs ... -> nextToClaim -> ... jobs to claim ... -> last
///
/// Jobs are claimed in that order, so one line with a mark holds both. Its links are in the words of its jobs: entering
/// and leaving cost the same however long the line is.
abstract contract Lines is JobStore {
    using IdList for IdList.List;

    /// What a job stands for in money.
    struct Deal {
        address customer;
        address provider;
        uint256 locked;
        uint256 rate;
        uint256 cutPercent;
    }

    /// Who may run jobs, at which prices. It tells of each change (see `noteStanding`).
    IProviderManager public immutable providerManager;

    uint24 private _lastTerms;
    mapping(uint256 number => Terms) internal _terms;
    mapping(address provider => LineWord) internal _lines;
    /// What each provider did not do; what it started is in its line.
    mapping(address provider => ProviderRecord) internal _faults;
    /// Claimed jobs with a cancel request that the provider has not been told of.
    mapping(address provider => IdList.List) internal _cancelling;
    /// Claimed jobs with a top-up that the provider has not been told of.
    mapping(address provider => IdList.List) internal _toppedUp;

    constructor(IProviderManager providerManager_) {
        providerManager = providerManager_;
    }

    /// The provider that the job is bound to, 0 for none.
    function _providerOf(JobWord word) internal view returns (address) {
        return _terms[word.terms()].seller.provider();
    }

    /// What the job stands for now; provider, rate and cut are 0 while it is bound to nobody.
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

    /// Whole minutes that the job's credits buy.
    function _limitMinutes(Deal memory deal) internal pure returns (uint64) {
        return Billing.limitMinutes(deal.locked, deal.rate);
    }

    /// Keeps terms under a number of their own.
    function _newTerms(Terms memory terms) internal returns (uint256 number) {
        number = ++_lastTerms;
        _terms[number] = terms;
    }

    /// The line with its newest job at the end, and that job's word in it.
    function _enter(LineWord line, bytes32 jobId, JobWord word) internal returns (LineWord, JobWord) {
        uint256 id = uint256(jobId);
        uint256 last = line.last();
        if (last == 0) line = line.withFirst(id);
        else _words[_toId(last)] = _words[_toId(last)].withNext(id);
        if (line.nextToClaim() == 0) line = line.withNextToClaim(id);
        return (line.withLast(id).withClaimable(line.claimable() + 1), word.withPrevious(last));
    }

    /// Takes the job out of the provider's line, and its hints off their queues.
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
