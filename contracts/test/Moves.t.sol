// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobStatus, Wishes} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Every caller tries every call on a job in every state. The test compares all moves with the list in `matrix.json`,
/// in both directions.
contract MovesTest is Grid {
    uint256 private constant CALLS = 8;

    string[9] private states;
    string[6] private situations = ["now", "late", "requested", "unanswered", "overdue", "released"];
    string[6] private callerNames = ["customer", "provider", "rival", "role", "admin", "stranger"];
    address[6] private callers;

    function setUp() public override {
        super.setUp();
        join(rival);
        callers = [customer, provider, rival, operator, address(this), stranger];
        string[] memory names = vm.parseJsonStringArray(vm.readFile("matrix.json"), ".states");
        for (uint256 i; i < names.length; ++i) {
            states[i] = names[i];
        }
    }

    function test_exactly_the_listed_moves_are_made() external {
        string[] memory listed = vm.parseJsonStringArray(vm.readFile("matrix.json"), ".moves");
        uint256 found;
        uint256 base = vm.snapshotState();
        for (uint256 from; from < 9; ++from) {
            uint256[6] memory snapshots = situationsOf(from, base);
            for (uint256 call; call < CALLS; ++call) {
                for (uint256 who; who < 6; ++who) {
                    for (uint256 to; to < 9; ++to) {
                        string memory move = moveOf(from, to, call, who, snapshots);
                        if (bytes(move).length == 0) continue;
                        vm.assertTrue(found < listed.length, string.concat("not listed: ", move));
                        vm.assertEq(move, listed[found++], "in the order of states, calls and callers");
                    }
                }
            }
        }
        vm.assertEq(found, listed.length, "every listed move was made");
    }

    /// The situations of a job (1) in that state: just now, two days later, with a cancel request, two days after one, a
    /// day after its customer wished to give it up. Last comes an hour after a cancel request, when a part of the
    /// deposit came back. Only a claimed job can have a request, only a PENDING one is given up.
    function situationsOf(uint256 from, uint256 base) private returns (uint256[6] memory made) {
        for (uint256 i; i < 4; ++i) {
            vm.revertToState(base);
            bytes32 id = jobIn(JobStatus(from));
            if (i > 1 && from != 2 && from != 3) continue;
            if (i > 1) cancel(id);
            if (i % 2 == 1) skip(2 days);
            made[i] = vm.snapshotState();
        }
        if (from == 2 || from == 3) made[5] = released(made[2]);
        if (from != 0) return made;
        vm.revertToState(base);
        vm.prank(customer);
        grid.requestNewJobWithWishes(
            definition(), 1000 ether, "job", false, Wishes(0, 0, uint40(block.timestamp + 1 days), 0, 0, false)
        );
        skip(2 days);
        made[4] = vm.snapshotState();
    }

    function released(uint256 requested) private returns (uint256) {
        vm.revertToState(requested);
        skip(1 hours);
        cancel(bytes32(uint256(1)));
        vm.assertTrue(rare.jobTerms(bytes32(uint256(1))).released != 0, "released");
        return vm.snapshotState();
    }

    /// The list's line for such a move, with its situations; empty if there is none.
    function moveOf(uint256 from, uint256 to, uint256 call, uint256 who, uint256[6] memory snapshots)
        private
        returns (string memory move)
    {
        (string memory name, bytes memory data) = callOf(call, JobStatus(to));
        for (uint256 i; i < 6; ++i) {
            if (snapshots[i] == 0) continue;
            vm.revertToState(snapshots[i]);
            vm.prank(callers[who]);
            (bool passed,) = address(grid).call(data);
            if (!passed || from == to || uint256(statusOf(bytes32(uint256(1)))) != to) continue;
            if (bytes(move).length == 0) {
                move = string.concat(states[from], " > ", states[to], ": ", name, " by ", callerNames[who], ",");
            }
            move = string.concat(move, " ", situations[i]);
        }
    }

    function callOf(uint256 call, JobStatus to) private view returns (string memory, bytes memory) {
        bytes32 id = bytes32(uint256(1));
        if (call == 0) return ("metaSchedule", abi.encodeCall(grid.metaSchedule, (id, provider)));
        if (call == 1) return ("claimNextJob", abi.encodeCall(grid.claimNextJob, ()));
        if (call == 2) return ("refuseJob", abi.encodeCall(rare.refuseJob, (id)));
        if (call == 3) return ("timeoutJob", abi.encodeCall(rare.timeoutJob, (id)));
        if (call == 4) return ("cancelJob", abi.encodeCall(rare.cancelJob, (id)));
        if (call == 5) return ("giveUpJob", abi.encodeCall(rare.giveUpJob, (id)));
        if (call == 6) return ("panicJob", abi.encodeCall(rare.panicJob, (id, "")));
        return ("providerSetJobStatus", abi.encodeCall(grid.providerSetJobStatus, (id, to, 1, "", 0)));
    }
}
