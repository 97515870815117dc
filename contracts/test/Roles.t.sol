// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {HardwareTotals, JobStatus} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Transfers of roles and ownership at each contract, and calls that no other test covers.
contract RolesTest is Grid {
    function test_roles_are_granted_revoked_and_renounced_at_each_contract() external {
        address[3] memory contracts = [address(grid), address(manager), address(credit)];
        bytes32 role = keccak256("SOME_ROLE");
        for (uint256 i; i < 3; ++i) {
            IAccessControl access = IAccessControl(contracts[i]);
            vm.assertTrue(
                IERC165(contracts[i]).supportsInterface(type(IAccessControl).interfaceId), "declares the interface"
            );
            vm.assertEq(access.getRoleAdmin(role), bytes32(0), "the admin grants it");
            vm.expectEmit(contracts[i]);
            emit IAccessControl.RoleGranted(role, rival, address(this));
            access.grantRole(role, rival);
            vm.assertTrue(access.hasRole(role, rival), "granted");
            vm.expectEmit(contracts[i]);
            emit IAccessControl.RoleRevoked(role, rival, address(this));
            access.revokeRole(role, rival);
            vm.assertTrue(!access.hasRole(role, rival), "revoked");
            access.grantRole(role, rival);
            vm.prank(rival);
            access.renounceRole(role, rival);
            vm.assertTrue(!access.hasRole(role, rival), "renounced");
        }
    }

    function test_a_key_that_lost_the_role_assigns_and_approves_nothing() external {
        bytes32 id = request(1000 ether);
        grid.revokeRole(grid.METASCHEDULER_ROLE(), operator);
        manager.revokeRole(manager.METASCHEDULER_ROLE(), operator);
        bytes memory refusal = missingRole(operator, grid.METASCHEDULER_ROLE());
        vm.expectRevert(refusal);
        assign(id);
        vm.expectRevert(refusal);
        vm.prank(operator);
        manager.ban(provider);
        grid.grantRole(grid.METASCHEDULER_ROLE(), rival);
        vm.prank(rival);
        grid.metaSchedule(id, provider);
        checkStatus(id, JobStatus.META_SCHEDULED);
    }

    function test_assigning_and_approving_can_be_different_keys() external {
        bytes32 role = grid.METASCHEDULER_ROLE();
        grid.grantRole(role, rival);
        vm.expectRevert(missingRole(rival, role));
        vm.prank(rival);
        manager.ban(provider);
    }

    function test_ownership_of_the_constants_is_transferred_and_renounced() external {
        vm.expectEmit(address(grid));
        emit Ownable.OwnershipTransferred(address(this), rival);
        grid.transferOwnership(rival);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, address(this)));
        rare.setDeepsquareCut(1);
        vm.prank(rival);
        rare.setDeepsquareCut(1);
        vm.prank(rival);
        grid.renounceOwnership();
        vm.assertEq(grid.owner(), address(0), "no owner");
    }

    function test_credits_are_transferred_with_an_allowance() external {
        uint256 before = credit.totalSupply();
        credit.mint(address(this), 5 ether);
        vm.assertEq(credit.totalSupply() - before, 5 ether, "minted");
        credit.approve(rival, 3 ether);
        vm.prank(rival);
        credit.transferFrom(address(this), stranger, 2 ether);
        credit.transfer(stranger, 1 ether);
        vm.assertEq(credit.balanceOf(stranger), 3 ether, "received");
        vm.assertEq(credit.allowance(address(this), rival), 1 ether, "allowance left");
        (, string memory name,,, address verifier,,) = credit.eip712Domain();
        vm.assertEq(name, "Credit", "name in the signed domain");
        vm.assertEq(verifier, address(credit), "contract in the signed domain");
    }

    function test_constants_and_counters_that_clients_read() external view {
        vm.assertEq(rare.TIMEOUT_GRACE(), 1 days, "grace");
        vm.assertEq(manager.PROVIDER_REGISTRATION_TAX(), 0, "registering is free");
        vm.assertEq(manager.idCounter(), 1, "one provider registered");
        vm.assertEq(rare.recordOf(provider).started, manager.getRecord(provider).started, "one record");
        (bool valid,, HardwareTotals memory totals) = manager.standingOf(provider);
        vm.assertTrue(valid, "approved");
        vm.assertEq(abi.encode(totals), abi.encode(HardwareTotals(8, 32, 128_000)), "two nodes");
    }
}
