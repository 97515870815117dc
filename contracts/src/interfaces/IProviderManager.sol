// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {HardwareTotals, ProviderPrices} from "../Types.sol";

/// @title The part of the provider registry that the MetaScheduler reads
interface IProviderManager {
    /// @notice Whether jobs may be assigned to this provider and claimed by it.
    /// @param provider The provider's address.
    /// @return True if the provider is approved and not banned.
    function isValidForScheduling(address provider) external view returns (bool);

    /// @notice What an assignment needs to know about a provider.
    /// @param provider The provider's address.
    /// @return valid Whether jobs may be assigned to it.
    /// @return version Number of its approved version. It never repeats: the same number means the same prices.
    /// @return totals Sums of its approved hardware.
    function standingOf(address provider)
        external
        view
        returns (bool valid, uint32 version, HardwareTotals memory totals);

    /// @notice What a provider offers.
    /// @param provider The provider's address.
    /// @return prices Its approved prices.
    /// @return totals Sums of its approved hardware.
    function offer(address provider) external view returns (ProviderPrices memory prices, HardwareTotals memory totals);
}
