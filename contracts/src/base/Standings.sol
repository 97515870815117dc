// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices, ProviderRecord} from "../Types.sol";
import {IRareCalls} from "../interfaces/IRareCalls.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {Terms, TermsFields} from "../libraries/Terms.sol";
import {Lines} from "./Lines.sol";

/// @notice Copies of each provider's standing and offer, made at each change in the ProviderManager. So no call of a
/// job has to read the ProviderManager.
abstract contract Standings is Lines, IRareCalls {
    /// @inheritdoc IRareCalls
    function noteStanding(address provider) external {
        (bool valid, uint32 version, HardwareTotals memory totals) = providerManager.standingOf(provider);
        LineWord line = _lines[provider];
        if (valid && (line.terms() == 0 || line.version() != version)) {
            (ProviderPrices memory prices,) = providerManager.offer(provider);
            Terms memory terms =
                Terms(TermsFields.sellerOf(provider, totals), TermsFields.tariffOf(prices, _deepsquareCut));
            line = line.withTerms(_newTerms(terms), version);
        }
        _lines[provider] = line.withValid(valid);
    }

    /// @inheritdoc IRareCalls
    function recordOf(address provider) external view returns (ProviderRecord memory record) {
        record = _faults[provider];
        record.started = uint64(_lines[provider].started());
    }
}
