// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Provider, ProviderPrices} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Helpers for tests of the provider registry.
abstract contract Registry is Grid {
    function propose(address who, uint256 cpuPrice) internal {
        vm.prank(who);
        manager.register(hardware(2, 4, 16, 64_000), ProviderPrices(8 ether, cpuPrice, 0.0001 ether), labels());
    }

    function remove(address who) internal {
        vm.prank(operator);
        manager.remove(who);
    }

    function ban(address who) internal {
        vm.prank(operator);
        manager.ban(who);
    }

    function unban(address who) internal {
        vm.prank(operator);
        manager.unban(who);
    }

    function checkVersion(Provider memory shown, uint256 cpuPrice) internal pure {
        vm.assertTrue(shown.addr != address(0), "a provider exists");
        vm.assertEq(abi.encode(shown.providerHardware), abi.encode(hardware(2, 4, 16, 64_000)), "hardware");
        vm.assertEq(shown.providerPrices.cpuPricePerMin, cpuPrice, "price");
        vm.assertEq(abi.encode(shown.labels), abi.encode(labels()), "labels");
    }
}
