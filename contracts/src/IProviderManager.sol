// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Fault, HardwareTotals, ProviderPrices} from "./Types.sol";

/// What the MetaScheduler asks of the provider registry.
interface IProviderManager {
    /// Whether jobs may be assigned to this provider and claimed by it: approved and not banned.
    function isValidForScheduling(address provider) external view returns (bool);

    /// The approved prices and the sums of the approved hardware.
    function offer(address provider) external view returns (ProviderPrices memory prices, HardwareTotals memory totals);

    /// Counts a job that the provider started.
    function incJobCount(address provider) external;

    /// Counts a fault of the provider.
    function incFaultCount(address provider, Fault fault) external;
}
