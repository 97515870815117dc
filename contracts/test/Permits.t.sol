// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus, Permit} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// A job is requested with a signature instead of an allowance, even if another account used the signature first.
contract PermitsTest is Grid {
    bytes32 private constant PERMIT =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    uint256 private constant KEY = 0xA11CE;

    address private owner = vm.addr(KEY);

    function setUp() public override {
        super.setUp();
        credit.mint(owner, 1000 ether);
    }

    function test_a_signature_and_a_request_in_one_call() external {
        bytes32 id = ask(signed(200 ether, block.timestamp));
        checkStatus(id, JobStatus.PENDING);
        vm.assertEq(rare.get(id).customerAddr, owner, "customer");
        vm.assertEq(credit.balanceOf(address(grid)), 200 ether, "locked");
        vm.assertEq(credit.allowance(owner, address(grid)), 0, "allowance used");
    }

    function test_a_signature_used_first_by_another_account_blocks_nothing() external {
        Permit memory permit = signed(200 ether, block.timestamp);
        vm.prank(stranger);
        credit.permit(owner, address(grid), permit.value, permit.deadline, permit.v, permit.r, permit.s);
        checkStatus(ask(permit), JobStatus.PENDING);
    }

    function test_with_an_allowance_the_signature_does_not_matter() external {
        vm.prank(owner);
        credit.approve(address(grid), 200 ether);
        checkStatus(ask(signed(200 ether, block.timestamp - 1)), JobStatus.PENDING);
    }

    function test_expired_wrong_and_too_small_signatures_allow_nothing() external {
        Permit memory wrong = signed(200 ether, block.timestamp);
        wrong.value = 300 ether;
        checkRefused(signed(200 ether, block.timestamp - 1));
        checkRefused(wrong);
        checkRefused(signed(150 ether, block.timestamp));
        vm.assertEq(rare.jobIdCounter(), 0, "no job");
    }

    function checkRefused(Permit memory permit) private {
        vm.expectRevert(told("ERC20: insufficient allowance"));
        ask(permit);
        vm.assertEq(credit.allowance(owner, address(grid)), 0, "nothing stays allowed");
    }

    function ask(Permit memory permit) private returns (bytes32) {
        vm.prank(owner);
        return grid.requestNewJobWithPermit(definition(), 200 ether, "job", false, permit);
    }

    function signed(uint256 value, uint256 deadline) private view returns (Permit memory) {
        bytes32 message = keccak256(abi.encode(PERMIT, owner, address(grid), value, credit.nonces(owner), deadline));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(KEY, keccak256(abi.encodePacked(hex"1901", credit.DOMAIN_SEPARATOR(), message)));
        return Permit(value, deadline, v, r, s);
    }
}
