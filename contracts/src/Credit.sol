// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// The credits that pay for jobs: 18 decimals, minted by MINTER_ROLE.
contract Credit is ERC20, ERC20Permit, AccessControl {
    /// Creates credits.
    bytes32 public constant MINTER_ROLE = keccak256("MINTER_ROLE");

    /// The deployer is admin and minter.
    constructor() ERC20("Credit", "Credit") ERC20Permit("Credit") {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
        _grantRole(MINTER_ROLE, msg.sender);
    }

    /// Creates `amount` wei of credit for `account`.
    function mint(address account, uint256 amount) external onlyRole(MINTER_ROLE) {
        _mint(account, amount);
    }
}
