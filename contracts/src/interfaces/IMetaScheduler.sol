// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {IRareCalls} from "./IRareCalls.sol";
import {ISettings} from "./ISettings.sol";
import {ISharedCalls} from "./ISharedCalls.sol";
import {IUsualCalls} from "./IUsualCalls.sol";

/// @title All functions at the MetaScheduler's address
/// @notice The market of jobs, the job repository, the provider queues and the settings of the grid.
/// @dev Clients need not know which of the two contracts serves a function: the MetaScheduler serves IUsualCalls itself
/// and hands IRareCalls and ISettings to RareCalls, on its own storage. Both serve ISharedCalls. Events.sol declares the events
/// besides ClaimJobEvent, and Errors.sol the errors.
interface IMetaScheduler is IUsualCalls, IRareCalls, ISettings, ISharedCalls, IAccessControl, IERC165 {
    /// @notice The settings have another owner.
    /// @param previousOwner The owner before; 0 for none.
    /// @param newOwner The owner from now on; 0 for none.
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    /// @notice The caller is not the owner.
    /// @param account The caller.
    error OwnableUnauthorizedAccount(address account);

    /// @notice The address cannot be an owner.
    /// @param owner The address, which is 0.
    error OwnableInvalidOwner(address owner);

    /// @notice Role that grants and revokes all roles, and withdraws the platform's cut.
    /// @return The role's id, 0.
    function DEFAULT_ADMIN_ROLE() external view returns (bytes32);

    /// @notice Account that may change the settings.
    /// @return The owner's address; 0 for none.
    function owner() external view returns (address);

    /// @notice Makes another account the owner. Only the owner may.
    /// @param newOwner Address of the new owner, not 0.
    function transferOwnership(address newOwner) external;

    /// @notice Leaves the settings without an owner, which makes them final. Only the owner may.
    function renounceOwnership() external;
}
