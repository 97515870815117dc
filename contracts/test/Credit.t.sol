// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// The token: its name, its minters, and allowances by signature.
contract CreditTest is Grid {
    bytes32 private constant PERMIT =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    function test_name_and_unit() external view {
        vm.assertEq(credit.name(), "Credit", "name");
        vm.assertEq(credit.symbol(), "Credit", "symbol");
        vm.assertEq(credit.decimals(), 18, "decimals");
    }

    function test_only_minters_mint() external {
        bytes32 role = credit.MINTER_ROLE();
        vm.expectRevert(missingRole(stranger, role));
        vm.prank(stranger);
        credit.mint(stranger, 1);
        credit.grantRole(role, stranger);
        vm.prank(stranger);
        credit.mint(stranger, 7);
        vm.assertEq(credit.balanceOf(stranger), 7, "minted");
    }

    function test_a_signature_gives_an_allowance_once() external {
        uint256 key = 0xA11CE;
        address owner = vm.addr(key);
        uint256 deadline = block.timestamp + 1 hours;
        bytes32 message = keccak256(abi.encode(PERMIT, owner, address(grid), 5 ether, 0, deadline));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", credit.DOMAIN_SEPARATOR(), message)));
        credit.permit(owner, address(grid), 5 ether, deadline, v, r, s);
        vm.assertEq(credit.allowance(owner, address(grid)), 5 ether, "allowed");
        vm.assertEq(credit.nonces(owner), 1, "nonce used");
        (bool again,) =
            address(credit).call(abi.encodeCall(ERC20Permit.permit, (owner, address(grid), 5 ether, deadline, v, r, s)));
        vm.assertTrue(!again, "a signature works once");
    }
}
