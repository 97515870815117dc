// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Refusals} from "../../src/libraries/Refusals.sol";
import {Grid} from "../Grid.sol";
import {vm} from "../Vm.sol";
import {Handler} from "./Handler.sol";

/// The invariants after any history of calls; contracts/README.md describes them. The handler checks much at each call:
/// callers of moves, division of locks, billed minutes. This contract checks the invariants between calls.
abstract contract Invariants is Grid {
    uint256 private constant ENDOWMENT = 1_000_000 ether;

    Handler internal handler;
    uint256[2] private customerKeys = [uint256(0xA11CE), 0xB0B];
    address[2] private customers = [vm.addr(0xA11CE), vm.addr(0xB0B)];
    address[2] private providers = [provider, rival];

    function setUp() public override {
        super.setUp();
        vm.prank(operator);
        manager.remove(provider); // the handler registers them itself
        endow(customers[0], ENDOWMENT);
        endow(customers[1], ENDOWMENT);
        handler = new Handler(credit, grid, manager, operator, customerKeys, providers, gifts());
    }

    function gifts() internal pure virtual returns (bool);

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariant_the_grid_is_its_model_and_its_books_balance() external view {
        checkAll();
    }

    /// Writes the counters of each random history to a file, for test_proof.py.
    function afterInvariant() external {
        string memory notes = vm.envOr("DEEPGRID_REACH", string(""));
        if (bytes(notes).length != 0) vm.writeLine(notes, handler.reach());
    }

    function checkAll() internal view {
        handler.checkBalance();
        for (uint256 id = 1; id <= handler.jobCount(); ++id) {
            handler.checkJob(id);
        }
        uint256 held = credit.balanceOf(address(grid)) + checkGained(address(this), 0);
        for (uint256 i; i < 2; ++i) {
            handler.checkProvider(providers[i]);
            handler.checkCustomer(customers[i]);
            held += checkGained(providers[i], 0) + checkGained(customers[i], ENDOWMENT);
        }
        vm.assertEq(held + credit.balanceOf(customer), credit.totalSupply(), "no wei is lost");
    }

    /// The account holds its initial balance plus the balance in the model.
    function checkGained(address who, uint256 before) private view returns (uint256 held) {
        held = credit.balanceOf(who);
        vm.assertEq(int256(held), int256(before) + handler.gained(who), "an account's balance");
    }
}

contract InvariantsTest is Invariants {
    /// A long deterministic history, so that a change that makes something unreachable is found at once.
    function test_a_long_history_reaches_every_function_and_every_cold_state() external {
        bytes4[36] memory all = moves();
        for (uint256 i; i < 2500; ++i) {
            bytes32 dice = keccak256(abi.encode(i));
            bytes4 move = all[uint256(dice) % all.length];
            bytes memory arguments;
            for (uint256 j; j < 4; ++j) {
                arguments = bytes.concat(arguments, keccak256(abi.encode(dice, j)));
            }
            Refusals.raise(refusalOf(bytes.concat(move, arguments)));
            if (i % 250 == 249) checkAll();
        }
        vm.assertEq(handler.missed(), "", "function or state not reached");
    }

    function moves() private view returns (bytes4[36] memory) {
        return [
            handler.request.selector,
            handler.requestMany.selector,
            handler.requestWithPermit.selector,
            handler.wish.selector,
            handler.wishMany.selector,
            handler.wishWithPermit.selector,
            handler.giveUp.selector,
            handler.cancel.selector,
            handler.topUp.selector,
            handler.topUpDelegate.selector,
            handler.allowSpending.selector,
            handler.limitSpending.selector,
            handler.assign.selector,
            handler.assignMany.selector,
            handler.panic.selector,
            handler.timeout.selector,
            handler.claim.selector,
            handler.claimMany.selector,
            handler.report.selector,
            handler.reportMany.selector,
            handler.refuse.selector,
            handler.hear.selector,
            handler.advance.selector,
            handler.carry.selector,
            handler.runToTopUp.selector,
            handler.look.selector,
            handler.register.selector,
            handler.remove.selector,
            handler.ban.selector,
            handler.changeConstant.selector,
            handler.applyCut.selector,
            handler.withdraw.selector,
            handler.approve.selector,
            handler.changeDoor.selector,
            handler.give.selector,
            handler.pass.selector
        ];
    }

    function refusalOf(bytes memory call) private returns (bytes memory answer) {
        bool passed;
        (passed, answer) = address(handler).call(call);
        if (passed) answer = "";
    }

    function gifts() internal pure override returns (bool) {
        return false;
    }
}

/// The same, with gifts of credits to the contract.
contract GiftsInvariantsTest is Invariants {
    function gifts() internal pure override returns (bool) {
        return true;
    }
}
