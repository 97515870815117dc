// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices} from "../Types.sol";

/// @title The part of the provider registry that the MetaScheduler reads
interface IProviderManager {
    /// @notice Whether jobs may be assigned to this provider and claimed by it.
    /// @param provider The provider's address.
    /// @return True if the provider is approved and not banned.
    function isValidForScheduling(address provider) external view returns (bool);

    /// @notice Whether a provider is valid, with the version number and hardware totals of its approved offer.
    /// @param provider The provider's address.
    /// @return valid True if the provider is approved and not banned.
    /// @return version Version number of its approved offer. Numbers never repeat, so equal numbers mean equal prices.
    /// @return totals Totals over its approved nodes: GPUs, CPUs and memory.
    function standingOf(address provider)
        external
        view
        returns (bool valid, uint32 version, HardwareTotals memory totals);

    /// @notice The approved prices and hardware totals of a provider.
    /// @param provider The provider's address.
    /// @return prices Its approved prices.
    /// @return totals Totals over its approved nodes: GPUs, CPUs and memory.
    function offer(address provider) external view returns (ProviderPrices memory prices, HardwareTotals memory totals);
}
