// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IProviderManager} from "./IProviderManager.sol";

/// @title The part of the surface that MetaScheduler and RareCalls both have
/// @notice The token, the provider registry and the meta-scheduler's role.
interface ISharedCalls {
    /// @notice Role that assigns jobs, panics them, and tops up jobs with spending authority.
    /// @return The role's id, keccak256("METASCHEDULER_ROLE").
    function METASCHEDULER_ROLE() external view returns (bytes32);

    /// @notice Token that pays for jobs.
    /// @return The ERC-20 contract.
    function credit() external view returns (IERC20);

    /// @notice Registry of the providers: which of them may run jobs, and at which prices.
    /// @return The registry, which reports each change with `noteStanding`.
    function providerManager() external view returns (IProviderManager);
}
