// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {RareCalls} from "../../src/RareCalls.sol";
import {JobDefinition, JobStatus, Label, ProviderHardware, ProviderPrices} from "../../src/Types.sol";
import {Blob} from "../../src/libraries/Blob.sol";
import {vm} from "../Vm.sol";

/// The real contracts in halmos. The assertion of a check_ function holds for all values of its arguments, or halmos
/// names a counterexample. It must find one for each wrong_ function, which shows that it can.
/// This contract is operator, admin, owner and provider at once, so that no role prevents a proof.
abstract contract World {
    Credit internal credit = new Credit();
    ProviderManager internal manager = new ProviderManager();
    MetaScheduler internal grid = new MetaScheduler(credit, manager);
    RareCalls internal rare = RareCalls(address(grid));

    address internal constant CUSTOMER = address(0x3000);
    uint256 internal constant SUPPLY = 1e30;
    /// Wei per minute of the job, and the platform's cut in percent, chosen so that nothing divides evenly.
    uint256 internal constant RATE = 0.7 ether + 1;
    uint256 internal constant CUT = 33;

    /// Number of contracts that the grid made: RareCalls, then blobs.
    uint256 private made = 1;

    function setUp() public virtual {
        manager.grantRole(manager.METASCHEDULER_CONTRACT_ROLE(), address(grid));
        manager.grantRole(manager.METASCHEDULER_ROLE(), address(this));
        grid.grantRole(grid.METASCHEDULER_ROLE(), address(this));
        rare.setDeepsquareCut(CUT);
        vm.warp(block.timestamp + rare.CUT_NOTICE_PERIOD());
        rare.applyDeepsquareCut();
        manager.register(node(), ProviderPrices(0, RATE, 0), new Label[](0));
        manager.approveProposal(address(this), manager.proposalHash(address(this)));
        vm.warp(block.timestamp + 1); // the prices are in force before the first request
        credit.mint(CUSTOMER, SUPPLY);
        vm.prank(CUSTOMER);
        credit.approve(address(grid), type(uint256).max);
    }

    /// A new PENDING job with this deposit.
    function request(uint256 locked) internal returns (bytes32 id) {
        JobDefinition memory asked;
        (asked.ntasks, asked.cpusPerTask, asked.memPerCpu) = (1, 1, 1);
        vm.prank(CUSTOMER);
        id = grid.requestNewJob(asked, locked, "job", true);
        keepBlob();
    }

    function claim(bytes32 id) internal {
        grid.metaSchedule(id, address(this));
        grid.claimNextJob();
    }

    function report(bytes32 id, JobStatus status, uint64 minutesRan) internal {
        grid.providerSetJobStatus(id, status, minutesRan, "", 0);
    }

    function cancel(bytes32 id) internal {
        vm.prank(CUSTOMER);
        rare.cancelJob(id);
    }

    /// halmos numbers the addresses of new contracts; the grid computes them as the chain does. So the newest blob is
    /// copied to the computed address.
    function keepBlob() private {
        address blob = address(uint160(address(new Mark())) - 1);
        assert(blob.code.length != 0);
        vm.etch(Blob.addressOf(address(grid), ++made), blob.code);
    }

    function node() private pure returns (ProviderHardware memory hardware) {
        hardware.nodes = 1;
        hardware.gpusPerNode = new uint64[](1);
        hardware.cpusPerNode = new uint64[](1);
        hardware.memPerNode = new uint64[](1);
        (hardware.cpusPerNode[0], hardware.memPerNode[0]) = (8, 8);
    }
}

contract Mark {}
