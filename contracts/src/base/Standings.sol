// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices, ProviderRecord} from "../Types.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {Tariff, Terms, TermsFields} from "../libraries/Terms.sol";
import {Lines} from "./Lines.sol";

/// @notice Copies of each provider's standing and offer, made at each change in the ProviderManager. So no call of a
/// job has to read the ProviderManager.
abstract contract Standings is Lines, IRareCalls {
    /// @inheritdoc IRareCalls
    function noteStanding(address provider) external {
        (bool valid, uint32 version, HardwareTotals memory totals) = providerManager.standingOf(provider);
        LineWord line = _lines[provider];
        if (valid && _versions[provider] != version) {
            (ProviderPrices memory prices,) = providerManager.offer(provider);
            Tariff tariff = TermsFields.tariffOf(prices, _deepsquareCut, _cancellationFeeMinute);
            uint256 before = line.terms();
            if (before == 0 || tariff.isDearerThan(_terms[before].tariff)) line = line.withRaise();
            line = line.withTerms(_newTerms(Terms(TermsFields.sellerOf(provider, totals), tariff)));
            _versions[provider] = version;
        }
        _lines[provider] = line.withValid(valid);
    }

    /// @inheritdoc IRareCalls
    function raisedAt(address provider) external view returns (uint256) {
        return _lines[provider].raisedAt();
    }

    /// @inheritdoc IRareCalls
    function recordOf(address provider) external view returns (ProviderRecord memory record) {
        record = _faults[provider];
        record.started = uint64(_lines[provider].started());
    }
}
