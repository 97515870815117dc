// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../src/Credit.sol";
import {RareCalls} from "../src/RareCalls.sol";
import {MetaScheduler} from "../src/MetaScheduler.sol";
import {ProviderManager} from "../src/ProviderManager.sol";
import {Job, JobDefinition, JobStatus} from "../src/Types.sol";
import {vm} from "./Vm.sol";

/// Does what customers, providers and the operator may do, in any order and at any time, with a few of each.
/// Calls that the contract refuses are part of the play.
contract Handler {
    MetaScheduler private immutable grid;
    RareCalls private immutable rare;
    ProviderManager private immutable manager;
    address private immutable operator;
    address[2] private customers;
    address[2] private providers;
    JobDefinition private definition;

    /// Everything that customers ever locked, in wei.
    uint256 public everLocked;
    /// How each job stood when it was first seen cold.
    mapping(bytes32 jobId => bytes32) public coldHash;

    constructor(
        MetaScheduler grid_,
        ProviderManager manager_,
        address operator_,
        address[2] memory customers_,
        address[2] memory providers_,
        JobDefinition memory definition_
    ) {
        (grid, manager, operator) = (grid_, manager_, operator_);
        rare = RareCalls(address(grid_));
        (customers, providers) = (customers_, providers_);
        definition.gpus = definition_.gpus;
        definition.ntasks = definition_.ntasks;
        definition.cpusPerTask = definition_.cpusPerTask;
        definition.memPerCpu = definition_.memPerCpu;
        request(0, 0, true); // there is always a job to pick
    }

    function request(uint256 who, uint256 amount, bool delegateSpending) public {
        amount = 100 ether + amount % 2000 ether;
        bytes memory call = abi.encodeCall(grid.requestNewJob, (definition, amount, "job", delegateSpending));
        if (play(customers[who % 2], call)) everLocked += amount;
    }

    function assign(uint256 job, uint256 who) public {
        play(operator, abi.encodeCall(grid.metaSchedule, (pick(job), providers[who % 2])));
    }

    function claim(uint256 who) public {
        play(providers[who % 2], abi.encodeCall(grid.claimNextJob, ()));
    }

    function report(uint256 job, uint256 status, uint64 ranMinutes) public {
        bytes32 id = pick(job);
        JobStatus next = JobStatus(uint256(JobStatus.RUNNING) + status % 6);
        play(providerOf(id), abi.encodeCall(grid.providerSetJobStatus, (id, next, ranMinutes % 600, "", 0)));
    }

    /// One step on the usual way of a job, so that many jobs come far.
    function advance(uint256 job, uint256 end, uint64 ranMinutes) public {
        bytes32 id = pick(job);
        JobStatus status = rare.get(id).status;
        if (status == JobStatus.PENDING) return assign(job, end);
        if (status == JobStatus.META_SCHEDULED) return claim(providerOf(id) == providers[0] ? 0 : 1);
        if (status == JobStatus.SCHEDULED) return report(job, 0, ranMinutes);
        report(job, 1 + end % 5, ranMinutes);
    }

    function advanceAgain(uint256 job, uint256 end, uint64 ranMinutes) external {
        advance(job, end, ranMinutes);
        advance(job, end, ranMinutes);
    }

    function refuse(uint256 job) external {
        bytes32 id = pick(job);
        play(providerOf(id), abi.encodeCall(rare.refuseJob, (id)));
    }

    function cancel(uint256 job) external {
        bytes32 id = pick(job);
        play(rare.get(id).customerAddr, abi.encodeCall(rare.cancelJob, (id)));
    }

    function panic(uint256 job) external {
        play(operator, abi.encodeCall(rare.panicJob, (pick(job), "")));
    }

    function timeout(uint256 job, bool byCustomer) external {
        bytes32 id = pick(job);
        play(byCustomer ? rare.get(id).customerAddr : operator, abi.encodeCall(rare.timeoutJob, (id)));
    }

    function topUp(uint256 job, uint256 amount, uint256 who) external {
        amount %= 500 ether;
        if (play(customers[who % 2], abi.encodeCall(rare.topUpJob, (pick(job), amount)))) everLocked += amount;
    }

    function topUpDelegate(uint256 job) external {
        bytes32 id = pick(job);
        uint256 slice = grid.topUpSliceDurationMin() * rare.jobTerms(id).ratePerMinute;
        if (play(operator, abi.encodeCall(rare.topUpJobDelegate, (id)))) everLocked += slice;
    }

    function hear(uint256 who, bool ofCancels) external {
        play(
            providers[who % 2],
            ofCancels ? abi.encodeCall(rare.claimNextCancellingJob, ()) : abi.encodeCall(rare.claimNextTopUpJob, ())
        );
    }

    function changeCut(uint256 percent) external {
        vm.prank(grid.owner());
        grid.setDeepsquareCut(percent % 101);
    }

    function withdraw(uint256 amount) external {
        play(grid.owner(), abi.encodeCall(grid.withdrawAdmin, (amount % (grid.platformCut() + 2))));
    }

    function toggleBan(uint256 who) external {
        address provider = providers[who % 2];
        bool banned = manager.isBanned(provider);
        vm.prank(operator);
        if (banned) manager.unban(provider);
        else manager.ban(provider);
    }

    function pass(uint256 time) external {
        vm.warp(block.timestamp + time % 30 minutes);
    }

    function passLong(uint256 time) external {
        if (time % 8 == 0) vm.warp(block.timestamp + time % 40 days);
    }

    function play(address caller, bytes memory call) private returns (bool passed) {
        vm.prank(caller);
        (passed,) = address(grid).call(call);
        for (uint256 i = 1; i <= grid.jobIdCounter(); ++i) {
            noteIfCold(bytes32(i));
        }
    }

    function noteIfCold(bytes32 id) private {
        if (coldHash[id] != 0) return;
        Job memory job = rare.get(id);
        if (job.status > JobStatus.RUNNING) coldHash[id] = keccak256(abi.encode(job));
    }

    function providerOf(bytes32 id) private view returns (address provider) {
        provider = rare.get(id).providerAddr;
        if (provider == address(0)) provider = providers[0];
    }

    function pick(uint256 job) private view returns (bytes32) {
        return bytes32(1 + job % grid.jobIdCounter());
    }
}
