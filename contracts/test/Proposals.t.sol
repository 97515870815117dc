// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LabelTooLong, ProposalChanged, ProposalTooRecent, TooManyLabels, TooManyNodes} from "../src/Errors.sol";
import {Label, ProviderHardware, ProviderPrices} from "../src/Types.sol";
import {Registry} from "./Registry.sol";
import {vm} from "./Vm.sol";

/// Only the proposal that was read is approved. The size of a proposal is bounded.
contract ProposalsTest is Registry {
    function test_the_hash_is_that_of_the_arguments_of_register() external {
        propose(rival, 2 ether);
        vm.assertEq(manager.proposalHash(rival), hashOf(2 ether), "as documented");
        vm.assertEq(manager.proposalChangedAt(rival), block.timestamp, "time of the proposal");
        approve(rival);
        vm.assertEq(manager.proposalHash(rival), bytes32(0), "nothing waits");
        vm.assertEq(manager.proposalChangedAt(rival), 0, "no time of change");
    }

    function test_a_proposal_with_another_hash_is_not_approved() external {
        propose(provider, 2 ether);
        bytes32 seen = manager.proposalHash(provider);
        propose(provider, 2000 ether);
        vm.expectRevert(abi.encodeWithSelector(ProposalChanged.selector, hashOf(2000 ether), seen));
        vm.prank(operator);
        manager.approveProposal(provider, seen);
        checkVersion(manager.getProvider(provider), 1 ether);
        propose(provider, 2 ether);
        vm.prank(operator);
        manager.approveProposal(provider, seen);
        checkVersion(manager.getProvider(provider), 2 ether);
    }

    function test_an_approval_by_address_needs_an_unchanged_proposal() external {
        vm.assertEq(manager.UNCHANGED_PERIOD(), 10 minutes, "period");
        propose(provider, 2 ether);
        skip(10 minutes - 1);
        checkTooRecent(1);
        propose(provider, 2 ether); // the same proposal counts as unchanged
        skip(1);
        vm.prank(operator);
        manager.approve(provider);
        checkVersion(manager.getProvider(provider), 2 ether);
        propose(provider, 3 ether);
        skip(10 minutes);
        propose(provider, 2000 ether);
        checkTooRecent(10 minutes);
        skip(10 minutes);
        vm.prank(operator);
        manager.approve(provider);
        checkVersion(manager.getProvider(provider), 2000 ether);
    }

    function test_the_unchanged_period_restarts_after_an_approval_or_a_removal() external {
        propose(provider, 2 ether);
        skip(10 minutes);
        approve(provider);
        propose(provider, 2 ether);
        checkTooRecent(10 minutes);
        skip(10 minutes);
        remove(provider);
        vm.assertEq(manager.proposalHash(provider), bytes32(0), "no proposal");
        propose(provider, 2 ether);
        checkTooRecent(10 minutes);
    }

    function test_a_removed_provider_leaves_nothing_to_read() external {
        propose(provider, 2 ether);
        remove(provider);
        vm.assertEq(manager.getProviderHardware(provider).nodes, 0, "hardware");
        vm.assertEq(manager.getProviderPrices(provider).cpuPricePerMin, 0, "prices");
        vm.assertEq(manager.getLabels(provider).length, 0, "labels");
        (ProviderPrices memory offered,) = manager.offer(provider);
        vm.assertEq(offered.cpuPricePerMin, 0, "offer");
    }

    function test_a_version_of_any_size_replaces_another_without_remains(uint8[6] calldata sizes) external {
        for (uint256 i; i < sizes.length; ++i) {
            Label[] memory few = new Label[](sizes[i] % 5);
            for (uint256 j; j < few.length; ++j) {
                few[j] = Label(string(new bytes(sizes[i])), "value");
            }
            ProviderHardware memory nodes = hardware(1 + sizes[i] % 7, 1, 2, 300);
            vm.prank(provider);
            manager.register(nodes, scaled(1 + uint256(sizes[i])), few);
            if (sizes[i] % 3 == 0) continue;
            approve(provider);
            vm.assertEq(abi.encode(manager.getProviderHardware(provider)), abi.encode(nodes), "hardware");
            vm.assertEq(abi.encode(manager.getLabels(provider)), abi.encode(few), "labels");
            vm.assertEq(
                abi.encode(manager.getProviderPrices(provider)), abi.encode(scaled(1 + uint256(sizes[i]))), "prices"
            );
        }
    }

    function test_the_gas_of_approving_and_removing_does_not_grow_with_the_proposal() external {
        uint256[2] memory small = costsOf(1, 0);
        uint256[2] memory large = costsOf(manager.MAX_NODES(), manager.MAX_LABELS());
        for (uint256 i; i < 2; ++i) {
            vm.assertTrue(large[i] < small[i] + 5_000, "does not grow");
        }
    }

    function test_the_size_of_a_proposal_is_bounded() external {
        Label[] memory many = new Label[](65);
        vm.expectRevert(abi.encodeWithSelector(TooManyLabels.selector, 65, 64));
        manager.register(hardware(1, 1, 1, 1), prices(), many);
        vm.expectRevert(abi.encodeWithSelector(TooManyNodes.selector, 1025, 1024));
        manager.register(hardware(1025, 1, 1, 1), prices(), labels());
        for (uint256 i; i < 2; ++i) {
            Label[] memory long = labels();
            vm.assertEq(manager.MAX_LABEL_BYTES(), 256, "bytes");
            if (i == 0) long[1].key = string(new bytes(257));
            else long[1].value = string(new bytes(257));
            vm.expectRevert(abi.encodeWithSelector(LabelTooLong.selector, 257, 256));
            manager.register(hardware(1, 1, 1, 1), prices(), long);
        }
    }

    function costsOf(uint256 nodes, uint256 count) private returns (uint256[2] memory costs) {
        Label[] memory made = new Label[](count);
        for (uint256 i; i < count; ++i) {
            made[i] = Label(string(new bytes(256)), string(new bytes(256)));
        }
        ProviderHardware memory offered = hardware(uint64(nodes), 1, 1, 1);
        vm.prank(rival);
        manager.register(offered, prices(), made);
        bytes32 hash = manager.proposalHash(rival);
        vm.prank(operator);
        costs[0] = gasleft();
        manager.approveProposal(rival, hash);
        costs[0] -= gasleft();
        vm.prank(operator);
        costs[1] = gasleft();
        manager.remove(rival);
        costs[1] -= gasleft();
    }

    function checkTooRecent(uint256 left) private {
        vm.expectRevert(abi.encodeWithSelector(ProposalTooRecent.selector, block.timestamp + left));
        vm.prank(operator);
        manager.approve(provider);
    }

    function hashOf(uint256 cpuPrice) private pure returns (bytes32) {
        ProviderPrices memory offered = ProviderPrices(8 ether, cpuPrice, 0.0001 ether);
        return keccak256(abi.encode(hardware(2, 4, 16, 64_000), offered, labels()));
    }
}
