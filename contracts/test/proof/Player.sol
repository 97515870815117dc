// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Credit} from "../../src/Credit.sol";
import {
    BatchItemSkippedEvent,
    CancelReleasedEvent,
    ClaimNextCancellingJobEvent,
    ClaimNextTopUpJobEvent,
    JobSettledEvent,
    JobTransitionEvent
} from "../../src/Events.sol";
import {MetaScheduler} from "../../src/MetaScheduler.sol";
import {IUsualCalls} from "../../src/interfaces/IUsualCalls.sol";
import {ProviderManager} from "../../src/ProviderManager.sol";
import {JobDefinition, JobStatus} from "../../src/Types.sol";
import {Vm, vm} from "../Vm.sol";
import {Ghost} from "./Ghosts.sol";
import {Model} from "./Model.sol";
import {Reference} from "./Reference.sol";

/// Makes calls as any account, and books the emitted events on the model. A refusal is fine if it is one of the grid's
/// errors: nothing may overflow, divide by zero or leave an array.
abstract contract Player is Model {
    bytes4 private constant PANIC = bytes4(keccak256("Panic(uint256)"));

    address internal operator;
    address internal owner;
    address[2] internal customers;
    uint256[2] internal customerKeys;
    address[2] internal providers;
    /// Accounts without a role.
    address internal nobody = address(0x0bad);

    // arguments of the current call, which its events lack
    address private wanted;
    uint256 private minutesRan;
    bool private isReport;
    bool private isGivenUp;

    /// Number of passed and refused calls per function.
    mapping(bytes4 => uint256[2]) internal reached;
    bytes4[] internal functions;
    /// Number of ended jobs per state.
    uint256[9] internal ended;
    uint256 internal skipped;
    uint256 internal releases;

    constructor(
        Credit credit_,
        MetaScheduler grid_,
        ProviderManager manager_,
        address operator_,
        uint256[2] memory customerKeys_,
        address[2] memory providers_
    ) Model(credit_, grid_, manager_) {
        (operator, owner, customerKeys, providers) = (operator_, grid_.owner(), customerKeys_, providers_);
        customers = [vm.addr(customerKeys_[0]), vm.addr(customerKeys_[1])];
    }

    /// Spreads the fuzzer's numbers evenly.
    function dice(uint256 seed) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed)));
    }

    /// The proper caller, or in one of eight cases any account. Address 0 makes no calls.
    function perhaps(address rightful, uint256 chance) internal view returns (address) {
        if (rightful == address(0)) return providers[chance % 2];
        if (chance % 8 != 0) return rightful;
        address[7] memory all = [customers[0], customers[1], providers[0], providers[1], operator, owner, nobody];
        return all[(chance / 8) % 7];
    }

    function assigning(address provider) internal {
        wanted = provider;
    }

    function reporting(uint256 minutes_) internal {
        (minutesRan, isReport) = (minutes_, true);
    }

    function givingUp() internal {
        isGivenUp = true;
    }

    /// Makes the call and books all its effects on the model.
    function play(address caller, address target, bytes memory call)
        internal
        returns (bool passed, bytes memory answer)
    {
        bytes4 selector = bytes4(call);
        if (reached[selector][0] + reached[selector][1] == 0) functions.push(selector);
        vm.recordLogs();
        vm.prank(caller);
        (passed, answer) = target.call(call);
        ++reached[selector][passed ? 0 : 1];
        Vm.Log[] memory logs = vm.getRecordedLogs();
        if (passed) {
            for (uint256 i; i < logs.length; ++i) {
                if (logs[i].emitter == address(grid)) book(caller, logs[i]);
            }
        } else {
            vm.assertTrue(answer.length >= 4 && bytes4(answer) != PANIC, "a refusal has an error of the grid");
        }
        (isReport, isGivenUp) = (false, false);
    }

    function playGrid(address caller, bytes memory call) internal returns (bool passed) {
        (passed,) = play(caller, address(grid), call);
    }

    function book(address caller, Vm.Log memory log) private {
        bytes32 topic = log.topics[0];
        if (topic == JobTransitionEvent.selector) {
            (uint256 id, JobStatus from, JobStatus to) = abi.decode(log.data, (uint256, JobStatus, JobStatus));
            vm.assertEq(uint256(from), uint256(jobs[id].status), "moved from the state in the model");
            moved(id, to, caller, wanted, minutesRan);
            bool byCustomer = to == JobStatus.CANCELLED && from < JobStatus.SCHEDULED && !isReport && !isGivenUp;
            if (byCustomer) jobs[id].cancelAt = vm.getBlockTimestamp();
        } else if (topic == JobSettledEvent.selector) {
            bookEnd(log.data);
        } else if (topic == IUsualCalls.ClaimJobEvent.selector) {
            bookClaim(caller, log.data);
        } else if (topic == ClaimNextCancellingJobEvent.selector) {
            (,, uint256 id) = abi.decode(log.data, (address, address, uint256));
            vm.assertEq(pop(providerOf[caller].cancelling, id), 0, "the oldest cancel request");
        } else if (topic == ClaimNextTopUpJobEvent.selector) {
            (uint256 id,, uint64 more) = abi.decode(log.data, (uint256, address, uint64));
            vm.assertEq(pop(providerOf[caller].toppedUp, id), 0, "the oldest top-up");
            vm.assertEq(jobs[id].told + more, Reference.limit(jobs[id].locked, jobs[id].rate), "the hints add up");
            jobs[id].told += more;
            jobs[id].pendingTopUp = 0;
        } else if (topic == CancelReleasedEvent.selector) {
            bookRelease(caller, log.data);
        } else if (topic == BatchItemSkippedEvent.selector) {
            ++skipped;
        }
    }

    function bookClaim(address caller, bytes memory data) private {
        (address customer, address provider, uint256 id, uint64 limit, JobDefinition memory definition) =
            abi.decode(data, (address, address, uint256, uint64, JobDefinition));
        Ghost storage job = jobs[id];
        vm.assertTrue(customer == job.customer && provider == caller, "customer and provider of the job");
        vm.assertEq(limit, Reference.limit(job.locked, job.rate), "limit");
        job.told = limit;
        vm.assertEq(keccak256(abi.encode(definition, rare.get(bytes32(id)).jobName)), job.asked, "definition");
    }

    function bookRelease(address caller, bytes memory data) private {
        (uint256 id, address customer, uint256 amount, uint256 held, uint256 heldUntil) =
            abi.decode(data, (uint256, address, uint256, uint256, uint256));
        vm.assertEq(caller, customer, "by its customer");
        released(id, customer, amount, held, heldUntil);
        ++releases;
    }

    function bookEnd(bytes memory data) private {
        (uint256 id, address provider, address customer, uint64 billed, uint256 paid, uint256 cut, uint256 refunded) =
            abi.decode(data, (uint256, address, address, uint64, uint256, uint256, uint256));
        Ghost storage job = jobs[id];
        vm.assertEq(provider, job.provider, "paid to its provider");
        vm.assertEq(customer, job.customer, "refunded to its customer");
        vm.assertEq(billed, isReport ? billable(job, minutesRan) : 0, "minutes billed");
        settled(id, billed, paid, cut, refunded);
        checkEnd(id);
        ++ended[uint256(job.status)];
    }
}
