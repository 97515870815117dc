// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices} from "./Types.sol";

/// What the MetaScheduler asks of the provider registry.
interface IProviderManager {
    /// Whether jobs may be assigned to this provider and claimed by it: approved and not banned.
    function isValidForScheduling(address provider) external view returns (bool);

    /// Whether jobs may be assigned to this provider, the sums of its approved hardware, and the number of its approved
    /// version, which never comes back: the same number means the same prices.
    function standingOf(address provider)
        external
        view
        returns (bool valid, uint32 version, HardwareTotals memory totals);

    /// The approved prices and the sums of the approved hardware.
    function offer(address provider) external view returns (ProviderPrices memory prices, HardwareTotals memory totals);
}
