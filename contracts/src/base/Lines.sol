// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProviderManager} from "../IProviderManager.sol";
import {HardwareTotals, JobDefinition, ProviderPrices} from "../Types.sol";
import {Billing} from "../libraries/Billing.sol";
import {IdList} from "../libraries/IdList.sol";
import {JobRecord} from "../libraries/JobRecord.sol";
import {JobWord} from "../libraries/JobWord.sol";
import {JobStore} from "./JobStore.sol";

/// The jobs of each provider, in the order of their assignment, and the terms that bind them.
///
///     first -> ... claimed jobs ... -> nextToClaim -> ... jobs to claim ... -> last
///
/// Jobs are claimed in that order, so one line with a mark holds both. Its links are in the words of its jobs: entering
/// and leaving cost the same however long the line is.
abstract contract Lines is JobStore {
    using IdList for IdList.List;

    // | first 32 | last 32 | nextToClaim 32 | claimable 32 | claimed 32 | terms 24 | offerVersion 32 | cutPercent 8 |
    struct Line {
        uint32 first;
        uint32 last;
        uint32 nextToClaim;
        uint32 claimable;
        uint32 claimed;
        uint24 terms; // those of the newest assignment, and what they were made from:
        uint32 offerVersion;
        uint8 cutPercent;
    }

    // What a job is bound to from its assignment on; written once for each version of a provider's offer.
    // slot 0 | provider 160 |
    // slot 1 | gpuPrice 80 | cpuPrice 80 | memPrice 80 | cutPercent 8 |     wei per minute
    struct Terms {
        address provider;
        Tariff tariff;
    }

    struct Tariff {
        uint80 gpuPrice;
        uint80 cpuPrice;
        uint80 memPrice;
        uint8 cutPercent;
    }

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
    mapping(uint256 number => Terms) private _terms;
    mapping(address provider => Line) internal _lines;
    /// Claimed jobs with a cancel request that the provider has not been told of.
    mapping(address provider => IdList.List) internal _cancelling;
    /// Claimed jobs with a top-up that the provider has not been told of.
    mapping(address provider => IdList.List) internal _toppedUp;

    constructor(IProviderManager providerManager_) {
        providerManager = providerManager_;
    }

    /// The provider that the job is bound to, 0 for none.
    function _providerOf(JobWord word) internal view returns (address) {
        return _terms[word.terms()].provider;
    }

    /// What the job stands for now; provider, rate and cut are 0 while it is bound to nobody.
    function _dealOf(bytes32 jobId, JobWord word) internal view returns (Deal memory deal) {
        JobRecord.Core memory core = _coreOf(word);
        deal.customer = core.customer;
        deal.locked = _lockedOf(jobId, word, core.deposit);
        if (word.terms() == 0) return deal;
        deal.provider = _providerOf(word);
        deal.cutPercent = _terms[word.terms()].tariff.cutPercent;
        deal.rate = _rateOf(word, core.sizes);
    }

    /// Wei per minute of a job that is bound to terms.
    function _rateOf(JobWord word, JobDefinition memory sizes) internal view returns (uint256) {
        return _rate(sizes, _terms[word.terms()].tariff);
    }

    /// Whole minutes that the job's credits buy.
    function _limitMinutes(Deal memory deal) internal pure returns (uint64) {
        return Billing.limitMinutes(deal.locked, deal.rate);
    }

    /// The number of the terms that the provider's offer and today's cut make, and the rate of a job under them.
    function _termsFor(address provider, uint32 version, JobDefinition memory sizes)
        internal
        returns (uint256 number, uint256 rate)
    {
        Line storage line = _lines[provider];
        uint8 cutPercent = deepsquareCut;
        number = line.terms;
        if (number == 0 || line.offerVersion != version || line.cutPercent != cutPercent) {
            (ProviderPrices memory prices,) = providerManager.offer(provider);
            number = ++_lastTerms;
            _terms[number].provider = provider;
            _terms[number].tariff = Tariff({
                gpuPrice: Billing.packed(prices.gpuPricePerMin),
                cpuPrice: Billing.packed(prices.cpuPricePerMin),
                memPrice: Billing.packed(prices.memPricePerMin),
                cutPercent: cutPercent
            });
            (line.terms, line.offerVersion, line.cutPercent) = (uint24(number), version, cutPercent);
        }
        rate = _rate(sizes, _terms[number].tariff);
    }

    /// The word at the end of the provider's line.
    function _enter(address provider, bytes32 jobId, JobWord word) internal returns (JobWord) {
        Line memory line = _lines[provider];
        uint32 id = uint32(uint256(jobId));
        uint32 last = line.last;
        if (last == 0) line.first = id;
        else _words[_toId(last)] = _words[_toId(last)].withNext(id);
        if (line.nextToClaim == 0) line.nextToClaim = id;
        line.last = id;
        ++line.claimable;
        _lines[provider] = line;
        return word.withPrevious(last);
    }

    /// Takes the job that was assigned first past the mark; its word is still to be stored.
    function _pass(address provider) internal returns (bytes32 jobId, JobWord word) {
        Line memory line = _lines[provider];
        jobId = _toId(line.nextToClaim);
        word = _words[jobId];
        line.nextToClaim = uint32(word.next());
        --line.claimable;
        ++line.claimed;
        _lines[provider] = line;
    }

    /// Takes the job out of the provider's line, and its hints off their queues.
    function _leave(address provider, bytes32 jobId, JobWord word) internal {
        Line memory line = _lines[provider];
        uint32 next = uint32(word.next());
        uint32 previous = uint32(word.previous());
        if (previous == 0) line.first = next;
        else _words[_toId(previous)] = _words[_toId(previous)].withNext(next);
        if (next == 0) line.last = previous;
        else _words[_toId(next)] = _words[_toId(next)].withPrevious(previous);
        if (line.nextToClaim == uint256(jobId)) line.nextToClaim = next;
        if (word.claimedAt() == 0) --line.claimable;
        else --line.claimed;
        _lines[provider] = line;
        if (!word.hasExtra()) return;
        _cancelling[provider].remove(uint64(uint256(jobId)));
        _toppedUp[provider].remove(uint64(uint256(jobId)));
    }

    function _toId(uint256 number) internal pure returns (bytes32) {
        return bytes32(number);
    }

    function _rate(JobDefinition memory sizes, Tariff memory tariff) private pure returns (uint256) {
        return Billing.ratePerMinute(
            sizes,
            ProviderPrices({
                gpuPricePerMin: Billing.unpacked(tariff.gpuPrice),
                cpuPricePerMin: Billing.unpacked(tariff.cpuPrice),
                memPricePerMin: Billing.unpacked(tariff.memPrice)
            })
        );
    }
}
