// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ProviderRecord} from "./Types.sol";

/// What the provider registry tells the MetaScheduler, and asks of it.
interface IMetaScheduler {
    /// Copies from the ProviderManager whether this provider may take jobs, and its offer. The ProviderManager calls it
    /// at each change; anyone may, since it only brings what is true.
    function noteStanding(address provider) external;

    /// Jobs that the provider started, refused, panicked and let time out.
    function recordOf(address provider) external view returns (ProviderRecord memory);
}
