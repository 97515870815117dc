// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Credit} from "../src/Credit.sol";
import {RareCalls} from "../src/RareCalls.sol";
import {MetaScheduler} from "../src/MetaScheduler.sol";
import {ProviderManager} from "../src/ProviderManager.sol";
import {
    Affinity,
    Job,
    JobDefinition,
    JobStatus,
    Label,
    ProviderHardware,
    ProviderPrices,
    StorageType
} from "../src/Types.sol";
import {vm} from "./Vm.sol";

/// A cheat code that only this file uses.
interface Environment {
    function envOr(string calldata name, bool otherwise) external view returns (bool);
}

/// A grid as it is deployed: one operator, one approved provider, one customer with credits and full allowance.
/// The job is the one of the billing table: 14.6 credits per minute.
abstract contract Grid {
    Credit internal credit;
    ProviderManager internal manager;
    MetaScheduler internal grid;
    /// The rare calls at the same address.
    RareCalls internal rare;

    address internal operator = address(0x0001000);
    address internal provider = address(0x0002000);
    address internal rival = address(0x0002001);
    address internal customer = address(0x0003000);
    address internal stranger = address(0x0004000);

    uint256 internal constant RATE = 14.6 ether;

    function setUp() public virtual {
        vm.warp(1_799_999_999); // the approval takes a second
        credit = Credit(create("Credit", type(Credit).creationCode, ""));
        manager = ProviderManager(create("ProviderManager", type(ProviderManager).creationCode, ""));
        bytes memory parts = abi.encode(credit, manager);
        grid = MetaScheduler(create("MetaScheduler", type(MetaScheduler).creationCode, parts));
        rare = RareCalls(address(grid));
        manager.grantRole(manager.METASCHEDULER_CONTRACT_ROLE(), address(grid));
        manager.grantRole(manager.METASCHEDULER_ROLE(), operator);
        grid.grantRole(grid.METASCHEDULER_ROLE(), operator);
        join(provider);
        endow(customer, 1_000_000 ether);
    }

    /// Deploys a contract from the sources of these tests, or from the exported bytecode with `DEPLOYED=true`.
    function create(string memory name, bytes memory code, bytes memory arguments) internal returns (address made) {
        if (deployed()) code = exported(name);
        code = bytes.concat(code, arguments);
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
        vm.assertTrue(made != address(0), name);
    }

    function deployed() internal view virtual returns (bool) {
        return Environment(address(vm)).envOr("DEPLOYED", false);
    }

    function exported(string memory name) private view returns (bytes memory) {
        string memory built = vm.readFile(string.concat("../deepgrid/chain/compiled/", name, ".json"));
        return abi.decode(vm.parseJson(built, ".bytecode"), (bytes));
    }

    function join(address who) internal {
        vm.prank(who);
        manager.register(hardware(2, 4, 16, 64_000), prices(), labels());
        approve(who);
    }

    /// The operator reads the waiting proposal and approves exactly that.
    function approve(address who) internal {
        bytes32 hash = manager.proposalHash(who);
        vm.prank(operator);
        manager.approveProposal(who, hash);
        skip(1); // jobs without a ceiling go only to prices that were in force before their request
    }

    /// The owner announces a cut, waits, and applies it.
    function changeCut(uint256 percent) internal {
        rare.setDeepsquareCut(percent);
        skip(rare.CUT_NOTICE_PERIOD());
        rare.applyDeepsquareCut();
    }

    function endow(address who, uint256 amount) internal {
        credit.mint(who, amount);
        vm.prank(who);
        credit.approve(address(grid), type(uint256).max);
    }

    function request(uint256 locked) internal returns (bytes32) {
        vm.prank(customer);
        return grid.requestNewJob(definition(), locked, "job", false);
    }

    function assigned(uint256 locked) internal returns (bytes32 id) {
        id = request(locked);
        assign(id);
    }

    function assign(bytes32 id) internal {
        vm.prank(operator);
        grid.metaSchedule(id, provider);
    }

    function claimed(uint256 locked) internal returns (bytes32 id) {
        id = assigned(locked);
        vm.prank(provider);
        grid.claimNextJob();
    }

    function running(uint256 locked) internal returns (bytes32 id) {
        id = claimed(locked);
        report(id, JobStatus.RUNNING, 0);
    }

    /// A job with 1000 credits in the given state.
    function jobIn(JobStatus status) internal returns (bytes32 id) {
        if (status == JobStatus.PENDING) return request(1000 ether);
        if (status == JobStatus.META_SCHEDULED) return assigned(1000 ether);
        if (status == JobStatus.SCHEDULED) return claimed(1000 ether);
        id = running(1000 ether);
        if (status != JobStatus.RUNNING) report(id, status, 1);
    }

    function report(bytes32 id, JobStatus status, uint64 minutesRan) internal {
        vm.prank(provider);
        grid.providerSetJobStatus(id, status, minutesRan, "", 0);
    }

    function cancel(bytes32 id) internal {
        vm.prank(customer);
        rare.cancelJob(id);
    }

    function skip(uint256 time) internal {
        vm.warp(block.timestamp + time);
    }

    function statusOf(bytes32 id) internal view returns (JobStatus) {
        return rare.get(id).status;
    }

    function checkStatus(bytes32 id, JobStatus expected) internal view {
        vm.assertEq(uint256(statusOf(id)), uint256(expected), "status");
    }

    function hardware(uint64 nodes, uint64 gpus, uint64 cpus, uint64 mem)
        internal
        pure
        returns (ProviderHardware memory made)
    {
        made.nodes = nodes;
        made.gpusPerNode = new uint64[](nodes);
        made.cpusPerNode = new uint64[](nodes);
        made.memPerNode = new uint64[](nodes);
        for (uint256 i; i < nodes; ++i) {
            (made.gpusPerNode[i], made.cpusPerNode[i], made.memPerNode[i]) = (gpus, cpus, mem);
        }
    }

    function prices() internal pure returns (ProviderPrices memory) {
        return ProviderPrices(8 ether, 1 ether, 0.0001 ether);
    }

    /// The usual prices, times a factor.
    function scaled(uint256 factor) internal pure returns (ProviderPrices memory made) {
        made = prices();
        made.gpuPricePerMin *= factor;
        made.cpuPricePerMin *= factor;
        made.memPricePerMin *= factor;
    }

    function labels() internal pure returns (Label[] memory made) {
        made = new Label[](2);
        made[0] = Label("os", "linux");
        made[1] = Label("gpu", "none");
    }

    function definition() internal pure returns (JobDefinition memory made) {
        made.gpus = 1;
        made.ntasks = 3;
        made.cpusPerTask = 2;
        made.memPerCpu = 1000;
        made.batchLocationHash = "a location longer than one word of thirty-two bytes";
        made.storageType = StorageType.NONE;
        made.uses = labels();
        made.affinity = new Affinity[](1);
        made.affinity[0] = Affinity(Label("zone", "west"), "==");
    }

    /// An error with a text, as tokens of OpenZeppelin 4 have it.
    function told(string memory text) internal pure returns (bytes memory) {
        return abi.encodeWithSignature("Error(string)", text);
    }

    function missingRole(address who, bytes32 role) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, who, role);
    }
}
