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

    /// Refuses to move more than the sender has, with the text of OpenZeppelin 4, which existing clients show.
    function _update(address from, address to, uint256 value) internal override {
        require(from == address(0) || balanceOf(from) >= value, "ERC20: transfer amount exceeds balance");
        super._update(from, to, value);
    }

    /// Refuses to spend more than was allowed, with the text of OpenZeppelin 4, which existing clients show.
    function _spendAllowance(address owner, address spender, uint256 value) internal override {
        uint256 allowed = allowance(owner, spender);
        if (allowed == type(uint256).max) return;
        require(allowed >= value, "ERC20: insufficient allowance");
        _approve(owner, spender, allowed - value, false);
    }
}
