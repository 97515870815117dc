// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {OutOfBounds} from "../src/Errors.sol";
import {ProviderEntry} from "../src/Types.sol";
import {Registry} from "./Registry.sol";
import {vm} from "./Vm.sol";

/// The list of providers, page by page and link by link.
contract ProviderListTest is Registry {
    function test_pages_show_every_provider_once_in_order() external {
        for (uint160 i = 1; i < 6; ++i) {
            propose(address(0x5000 + i), i);
        }
        remove(address(0x5002));
        (bytes32[] memory data, uint256 length, uint256 cursor) = manager.fetchPage(0, 3);
        vm.assertEq(length, 3, "full page");
        vm.assertEq(
            abi.encodePacked(data), abi.encodePacked([provider, address(0x5001), address(0x5003)]), "first page"
        );
        (data, length, cursor) = manager.fetchPage(cursor, 3);
        vm.assertEq(length, 2, "last page");
        vm.assertEq(cursor, 0, "no next page");
        (ProviderEntry[] memory page, uint256 next) = manager.fetchProviders(0, 100);
        vm.assertEq(page.length, manager.elementCount(), "all providers");
        vm.assertEq(next, 0, "no next page");
        vm.assertTrue(page[0].approved && !page[0].waitingForApproval, "approved");
        vm.assertTrue(!page[1].approved && page[1].waitingForApproval, "proposed");
        checkVersion(page[0].provider, 1 ether);
        checkVersion(page[1].provider, 1);
        vm.expectRevert(OutOfBounds.selector);
        manager.fetchPage(3, 3); // number 3 was removed
        vm.expectRevert(OutOfBounds.selector);
        manager.fetchProviders(uint256(type(uint64).max) + 2, 3);
    }

    function test_the_list_links_its_providers_in_both_directions() external {
        propose(address(0x5001), 1);
        propose(address(0x5002), 1);
        remove(address(0x5001));
        (uint256 first, uint256 last) = (manager.head(), manager.tail());
        checkPlace(first, last, 0, provider);
        checkPlace(last, 0, first, address(0x5002));
        (uint256 id,,, bytes32 data) = manager.get(2);
        vm.assertEq(id, 0, "removed");
        vm.assertEq(data, bytes32(0), "no address");
        (id,,,) = manager.objects(uint256(type(uint64).max) + 1 + first);
        vm.assertEq(id, 0, "no such number");
    }

    function checkPlace(uint256 place, uint256 next, uint256 prev, address who) private view {
        bytes memory expected = abi.encode(place, next, prev, who);
        (uint256 id, uint256 after_, uint256 before, bytes32 data) = manager.get(place);
        vm.assertEq(abi.encode(id, after_, before, data), expected, "get");
        (id, after_, before, data) = manager.objects(place);
        vm.assertEq(abi.encode(id, after_, before, data), expected, "objects");
    }
}
