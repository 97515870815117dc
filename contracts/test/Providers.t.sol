// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    AlreadyDone,
    ArrayLengthMismatch,
    Banned,
    InvalidNodesCount,
    InvalidTotalCpus,
    InvalidTotalMem,
    NoProvider,
    ProviderNotJoined,
    WaitingApprovalOnly
} from "../src/Errors.sol";
import {MetaScheduler} from "../src/MetaScheduler.sol";
import {ProviderManager} from "../src/ProviderManager.sol";
import {RareCalls} from "../src/RareCalls.sol";
import {HardwareTotals, JobStatus, Label, ProviderHardware, ProviderPrices, ProviderRecord} from "../src/Types.sol";
import {Registry} from "./Registry.sol";
import {vm} from "./Vm.sol";

/// A contract that answers nothing.
contract Deaf {}

/// Proposal, approval, removal and ban.
contract ProvidersTest is Registry {
    /// The registry's role has moved to another MetaScheduler. The jobs of the first one continue.
    function test_a_ban_reaches_each_contract_that_has_the_role() external {
        MetaScheduler next = new MetaScheduler(credit, manager);
        bytes32 role = manager.METASCHEDULER_CONTRACT_ROLE();
        bytes32 id = request(200 ether);
        manager.grantRole(role, address(new Deaf()));
        manager.grantRole(role, address(next));
        vm.assertEq(address(manager.metaScheduler()), address(next), "the present one");
        setBanned(true);
        vm.expectRevert(ProviderNotJoined.selector);
        assign(id);
        setBanned(false);
        assign(id);
        manager.revokeRole(role, address(grid));
        setBanned(true);
        vm.prank(provider);
        grid.claimNextJob(); // without the role it hears nothing any more
        vm.assertTrue(!RareCalls(address(next)).hasNextClaimableJob(provider), "the other one does");
        rare.noteStanding(provider); // anyone may still tell it
        id = request(200 ether);
        vm.expectRevert(ProviderNotJoined.selector);
        assign(id);
    }

    function setBanned(bool banned) private {
        vm.prank(operator);
        if (banned) manager.ban(provider);
        else manager.unban(provider);
    }

    function test_a_proposal_waits_until_it_is_approved() external {
        vm.expectEmit(address(manager));
        emit ProviderManager.ProviderWaitingForApproval(rival);
        propose(rival, 1 ether);
        vm.assertTrue(manager.isWaitingForApproval(rival), "waiting");
        vm.assertTrue(!manager.isValidForScheduling(rival), "not yet");
        vm.assertEq(manager.getProvider(rival).addr, address(0), "nothing approved");
        checkVersion(manager.getWaitingForApprovalProvider(rival), 1 ether);
        vm.expectEmit(address(manager));
        emit ProviderManager.ProviderApproved(rival);
        approve(rival);
        vm.assertTrue(!manager.isWaitingForApproval(rival), "no longer waiting");
        vm.assertTrue(manager.isValidForScheduling(rival), "valid");
        vm.assertEq(manager.getWaitingForApprovalProvider(rival).addr, address(0), "nothing waits");
        checkVersion(manager.getProvider(rival), 1 ether);
        vm.assertEq(abi.encode(manager.getProviderHardware(rival)), abi.encode(hardware(2, 4, 16, 64_000)), "hardware");
        vm.assertEq(manager.getProviderPrices(rival).cpuPricePerMin, 1 ether, "prices");
        vm.assertEq(abi.encode(manager.getLabels(rival)), abi.encode(labels()), "labels");
    }

    function test_a_newer_proposal_leaves_the_approved_version_in_force() external {
        propose(provider, 2 ether);
        propose(provider, 3 ether);
        vm.assertTrue(manager.isValidForScheduling(provider), "still valid");
        checkVersion(manager.getProvider(provider), 1 ether);
        checkVersion(manager.getWaitingForApprovalProvider(provider), 3 ether);
        (ProviderPrices memory offered,) = manager.offer(provider);
        vm.assertEq(offered.cpuPricePerMin, 1 ether, "in force");
        approve(provider);
        checkVersion(manager.getProvider(provider), 3 ether);
    }

    function test_a_smaller_version_replaces_a_larger_one_without_remains() external {
        Label[] memory none;
        vm.prank(provider);
        manager.register(hardware(1, 0, 2, 500), prices(), none);
        approve(provider);
        vm.assertEq(manager.getProvider(provider).labels.length, 0, "labels");
        vm.assertEq(manager.getProvider(provider).providerHardware.cpusPerNode.length, 1, "nodes");
        (, HardwareTotals memory totals) = manager.offer(provider);
        vm.assertEq(totals.gpus, 0, "gpus");
        vm.assertEq(totals.cpus, 2, "cpus");
        vm.assertEq(totals.mem, 500, "mem");
    }

    function test_hardware_is_checked() external {
        checkRefused(hardware(0, 0, 0, 0), InvalidNodesCount.selector);
        checkRefused(hardware(2, 1, 0, 10), InvalidTotalCpus.selector);
        checkRefused(hardware(2, 1, 1, 0), InvalidTotalMem.selector);
        for (uint256 i; i < 3; ++i) {
            ProviderHardware memory odd = hardware(2, 1, 1, 1);
            uint64[] memory three = new uint64[](3);
            if (i == 0) odd.gpusPerNode = three;
            else if (i == 1) odd.cpusPerNode = three;
            else odd.memPerNode = three;
            checkRefused(odd, ArrayLengthMismatch.selector);
        }
    }

    function test_only_a_waiting_proposal_is_approved() external {
        checkUnapproved(rival, WaitingApprovalOnly.selector);
        checkUnapproved(provider, WaitingApprovalOnly.selector);
    }

    function test_a_removed_provider_is_gone_and_may_come_back() external {
        propose(provider, 2 ether);
        vm.expectEmit(address(manager));
        emit ProviderManager.ProviderRemoved(provider);
        remove(provider);
        vm.assertTrue(!manager.isValidForScheduling(provider), "not valid");
        vm.assertTrue(!manager.isWaitingForApproval(provider), "not waiting");
        vm.assertEq(manager.getProvider(provider).addr, address(0), "no version");
        vm.assertEq(manager.elementCount(), 0, "not listed");
        vm.expectRevert(NoProvider.selector);
        remove(provider);
        join(provider);
        vm.assertTrue(manager.isValidForScheduling(provider), "back");
    }

    function test_a_banned_provider_is_out_until_the_ban_is_lifted() external {
        propose(provider, 2 ether);
        vm.expectEmit(address(manager));
        emit ProviderManager.ProviderBanChanged(provider, true);
        ban(provider);
        vm.assertTrue(manager.isBanned(provider), "banned");
        vm.assertTrue(manager.getProvider(provider).isBanned, "shown as banned");
        vm.assertTrue(!manager.isValidForScheduling(provider), "not valid");
        vm.expectRevert(Banned.selector);
        propose(provider, 1 ether);
        checkUnapproved(provider, Banned.selector);
        vm.expectRevert(AlreadyDone.selector);
        ban(provider);
        remove(provider);
        vm.assertTrue(manager.isBanned(provider), "the ban survives a removal");
        vm.expectEmit(address(manager));
        emit ProviderManager.ProviderBanChanged(provider, false);
        unban(provider);
        vm.expectRevert(AlreadyDone.selector);
        unban(provider);
        join(provider);
    }

    function test_an_unbanned_provider_is_in_force_as_before() external {
        ban(provider);
        unban(provider);
        vm.assertTrue(manager.isValidForScheduling(provider), "valid");
        checkVersion(manager.getProvider(provider), 1 ether);
    }

    function test_roles() external {
        bytes memory refusal = missingRole(stranger, manager.METASCHEDULER_ROLE());
        bytes4[4] memory moves =
            [manager.approve.selector, manager.remove.selector, manager.ban.selector, manager.unban.selector];
        for (uint256 i; i < moves.length; ++i) {
            checkDenied(abi.encodeWithSelector(moves[i], provider), refusal);
        }
        checkDenied(abi.encodeCall(manager.approveProposal, (provider, bytes32(0))), refusal);
    }

    function test_counters() external {
        report(running(200 ether), JobStatus.FINISHED, 1);
        running(200 ether);
        for (uint256 i; i < 3; ++i) {
            bytes32 id = assigned(200 ether);
            vm.prank(provider);
            rare.refuseJob(id);
        }
        for (uint256 i; i < 4; ++i) {
            report(claimed(200 ether), JobStatus.PANICKED, 0);
        }
        for (uint256 i; i < 5; ++i) {
            bytes32 id = assigned(200 ether);
            skip(10 minutes);
            rare.timeoutJob(id);
        }
        remove(provider);
        vm.assertEq(abi.encode(manager.getRecord(provider)), abi.encode(ProviderRecord(2, 3, 4, 5)), "record");
        vm.assertEq(manager.getJobCount(provider), 2, "started");
        vm.assertEq(
            abi.encode(rare.recordOf(provider)),
            abi.encode(ProviderRecord(2, 3, 4, 5)),
            "the MetaScheduler keeps the record"
        );
    }

    function test_the_contract_with_the_role_gets_each_change_until_it_loses_the_role() external {
        bytes32 role = manager.METASCHEDULER_CONTRACT_ROLE();
        manager.revokeRole(role, address(grid));
        vm.assertEq(address(manager.metaScheduler()), address(0), "no contract has the role");
        vm.assertEq(manager.getJobCount(provider), 0, "no contract counts jobs");
        ban(provider);
        bytes32 id = assigned(200 ether); // the MetaScheduler does not know of the ban
        rare.noteStanding(provider);
        vm.expectRevert(ProviderNotJoined.selector);
        vm.prank(provider);
        grid.claimNextJob();
        manager.revokeRole(role, address(grid)); // a second revoke has no effect
        manager.grantRole(role, address(grid));
        vm.assertEq(address(manager.metaScheduler()), address(grid), "the grid has the role again");
        unban(provider);
        vm.prank(provider);
        grid.claimNextJob();
        checkStatus(id, JobStatus.SCHEDULED);
    }

    function test_the_newest_contract_gets_each_change_even_if_an_older_one_loses_the_role() external {
        bytes32 role = manager.METASCHEDULER_CONTRACT_ROLE();
        bytes memory parts = abi.encode(credit, manager);
        address newer = create("MetaScheduler", type(MetaScheduler).creationCode, parts);
        manager.grantRole(role, newer);
        manager.revokeRole(role, address(grid));
        vm.assertEq(address(manager.metaScheduler()), newer, "the newer contract");
    }

    function test_copying_a_standing_again_changes_nothing() external {
        bytes32 id = assigned(200 ether);
        vm.prank(stranger);
        rare.noteStanding(provider);
        vm.assertTrue(rare.hasNextClaimableJob(provider), "still claimable");
        vm.prank(stranger);
        rare.noteStanding(stranger);
        vm.expectRevert(ProviderNotJoined.selector);
        vm.prank(stranger);
        grid.claimNextJob();
        vm.assertEq(rare.jobTerms(id).ratePerMinute, RATE, "terms are unchanged");
    }

    function test_hardware_above_the_maximum_counts_as_the_maximum() external {
        vm.prank(provider);
        manager.register(hardware(1, type(uint64).max, type(uint64).max, type(uint64).max), prices(), labels());
        approve(provider);
        checkStatus(assigned(200 ether), JobStatus.META_SCHEDULED);
    }

    function checkRefused(ProviderHardware memory bad, bytes4 selector) private {
        vm.expectRevert(selector);
        vm.prank(rival);
        manager.register(bad, prices(), labels());
    }

    function checkUnapproved(address who, bytes4 selector) private {
        bytes32 hash = manager.proposalHash(who);
        vm.expectRevert(selector);
        vm.prank(operator);
        manager.approveProposal(who, hash);
        vm.expectRevert(selector);
        vm.prank(operator);
        manager.approve(who);
    }

    function checkDenied(bytes memory call, bytes memory refusal) private {
        vm.prank(stranger);
        (bool passed, bytes memory answer) = address(manager).call(call);
        vm.assertTrue(!passed, "denied");
        vm.assertEq(answer, refusal, "the role is missing");
    }
}
