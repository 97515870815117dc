// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Provider, ProviderHardware, ProviderPrices} from "../Types.sol";
import {ProviderBook} from "./ProviderBook.sol";

/// @notice The same values as in ProviderBook, under the names that existing clients know from public mappings.
abstract contract MappingGetters is ProviderBook {
    /// @notice The provider with its approved version, as fields without the labels.
    /// @param provider The provider's address.
    /// @return addr The same address; 0 when none is approved.
    /// @return providerHardware The hardware; empty when none is approved.
    /// @return providerPrices The prices; all 0 when none are approved.
    /// @return isBanned_ True if it is banned.
    function providers(address provider)
        external
        view
        returns (
            address addr,
            ProviderHardware memory providerHardware,
            ProviderPrices memory providerPrices,
            bool isBanned_
        )
    {
        return _fields(getProvider(provider));
    }

    /// @notice The provider with its waiting proposal, as fields without the labels.
    /// @param provider The provider's address.
    /// @return addr The same address; 0 when none waits.
    /// @return providerHardware The hardware; empty when none waits.
    /// @return providerPrices The prices; all 0 when none wait.
    /// @return isBanned_ True if it is banned.
    function waitingApprovalProviders(address provider)
        external
        view
        returns (
            address addr,
            ProviderHardware memory providerHardware,
            ProviderPrices memory providerPrices,
            bool isBanned_
        )
    {
        return _fields(getWaitingForApprovalProvider(provider));
    }

    /// @notice The same as `getJobCount`.
    /// @param provider The provider's address.
    /// @return Number of jobs.
    function jobCountByProvider(address provider) external view returns (uint64) {
        return getRecord(provider).started;
    }

    /// The fields of a provider without its labels.
    function _fields(Provider memory known)
        private
        pure
        returns (address, ProviderHardware memory, ProviderPrices memory, bool)
    {
        return (known.addr, known.providerHardware, known.providerPrices, known.isBanned);
    }
}
