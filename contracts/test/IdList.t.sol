// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IdList} from "../src/libraries/IdList.sol";
import {vm} from "./Vm.sol";

/// The list keeps order, holds an id once, and costs the same for any length.
contract IdListTest {
    using IdList for IdList.List;

    IdList.List private list;
    uint64[] private model;

    function testFuzz_it_behaves_as_a_plain_array_would(uint256[40] calldata moves) external {
        for (uint256 i; i < moves.length; ++i) {
            uint64 id = uint64(1 + moves[i] % 10);
            if (moves[i] & (1 << 128) == 0) pushBoth(id);
            else removeBoth(id);
            checkSame();
        }
    }

    function test_pages_of_any_size_join_to_the_whole() external {
        for (uint64 id = 1; id <= 7; ++id) {
            list.push(id);
        }
        list.remove(4);
        for (uint256 size = 1; size < 9; ++size) {
            uint64 cursor;
            uint256 seen;
            do {
                uint64[] memory ids;
                (ids, cursor) = list.page(cursor, size);
                vm.assertTrue(ids.length == size || cursor == 0, "only the last page is short");
                for (uint256 i; i < ids.length; ++i) {
                    seen = seen * 10 + ids[i];
                }
            } while (cursor != 0);
            vm.assertEq(seen, 123_567, "each once, in order");
        }
        (uint64[] memory none, uint64 next) = list.page(5, 0);
        vm.assertEq(none.length, 0, "an empty page");
        vm.assertEq(next, 5, "the cursor does not move");
    }

    function test_a_change_costs_the_same_at_10_and_at_10_000() external {
        uint256 few = costAt(10);
        uint256 many = costAt(10_000);
        vm.assertTrue(many < few + few / 20, "does not grow");
    }

    function costAt(uint64 size) private returns (uint256 cost) {
        for (uint64 id = uint64(list.size) + 1; id <= size; ++id) {
            list.push(id);
        }
        cost = gasleft();
        list.remove(size / 2);
        list.push(size / 2);
        cost -= gasleft();
    }

    function pushBoth(uint64 id) private {
        list.push(id);
        for (uint256 i; i < model.length; ++i) {
            if (model[i] == id) return;
        }
        model.push(id);
    }

    function removeBoth(uint64 id) private {
        list.remove(id);
        uint256 kept;
        for (uint256 i; i < model.length; ++i) {
            if (model[i] != id) model[kept++] = model[i];
        }
        if (kept < model.length) model.pop();
    }

    function checkSame() private view {
        (uint64[] memory ids, uint64 next) = list.page(0, type(uint256).max);
        vm.assertEq(next, 0, "no next page");
        vm.assertEq(abi.encode(ids), abi.encode(model), "same order");
        vm.assertEq(list.size, model.length, "size");
        vm.assertEq(list.tail, model.length == 0 ? 0 : model[model.length - 1], "tail");
    }
}
