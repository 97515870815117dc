// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "./Vm.sol";

/// The deployed contracts are within the size limit of chains (EIP-170).
contract SizesTest {
    uint256 private constant LONGEST = 24_576;

    function test_each_contract_can_be_deployed_anywhere() external {
        address credit = deploy("Credit", "");
        address manager = deploy("ProviderManager", "");
        address grid = deploy("MetaScheduler", abi.encode(credit, manager));
        check(credit, "Credit");
        check(manager, "ProviderManager");
        check(grid, "MetaScheduler");
        check(vm.computeCreateAddress(grid, 1), "RareCalls");
    }

    function check(address made, string memory name) private view {
        uint256 size = made.code.length;
        vm.assertTrue(size > 1000, string.concat(name, " is deployed"));
        vm.assertTrue(size <= LONGEST, string.concat(name, " is longer than 24,576 bytes"));
    }

    /// The exported bytecode.
    function deploy(string memory name, bytes memory arguments) private returns (address made) {
        string memory built = vm.readFile(string.concat("../deepgrid/chain/compiled/", name, ".json"));
        bytes memory code = bytes.concat(abi.decode(vm.parseJson(built, ".bytecode"), (bytes)), arguments);
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
    }
}
