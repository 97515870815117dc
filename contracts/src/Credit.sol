// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// @notice The credits that pay for jobs, with 18 decimals.
contract Credit is ERC20, ERC20Permit, AccessControl {
    /// @notice Role that creates credits.
    bytes32 public constant MINTER_ROLE = keccak256("MINTER_ROLE");

    /// @notice Makes the deployer admin and minter.
    constructor() ERC20("Credit", "Credit") ERC20Permit("Credit") {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
        _grantRole(MINTER_ROLE, msg.sender);
    }

    /// @notice Creates credits. Needs MINTER_ROLE.
    /// @param account Account that gets them.
    /// @param amount Amount in wei.
    function mint(address account, uint256 amount) external onlyRole(MINTER_ROLE) {
        _mint(account, amount);
    }
}
