// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMetaScheduler} from "../IMetaScheduler.sol";
import {HardwareTotals, ProviderPrices, ProviderRecord} from "../Types.sol";
import {LineWord} from "../libraries/LineWord.sol";
import {Terms, TermsFields} from "../libraries/Terms.sol";
import {Lines} from "./Lines.sol";

/// The providers as the jobs' side knows them: who may take jobs and on which terms, copied from the ProviderManager at
/// each change, so that no call of a job has to ask for it.
abstract contract Standings is Lines, IMetaScheduler {
    /// @inheritdoc IMetaScheduler
    function noteStanding(address provider) external {
        (bool valid, uint32 version, HardwareTotals memory totals) = providerManager.standingOf(provider);
        LineWord line = _lines[provider];
        if (valid && (line.terms() == 0 || line.version() != version)) {
            (ProviderPrices memory prices,) = providerManager.offer(provider);
            Terms memory terms =
                Terms(TermsFields.sellerOf(provider, totals), TermsFields.tariffOf(prices, deepsquareCut));
            line = line.withTerms(_newTerms(terms), version);
        }
        _lines[provider] = line.withValid(valid);
    }

    /// @inheritdoc IMetaScheduler
    function recordOf(address provider) external view returns (ProviderRecord memory record) {
        record = _faults[provider];
        record.started = uint64(_lines[provider].started());
    }
}
