// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {TooMuchLocked} from "../src/Errors.sol";
import {JobRequest, JobStatus} from "../src/Types.sol";
import {Billing} from "../src/libraries/Billing.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// A customer or provider that is a contract. It obeys its owner and refuses all other calls.
contract Stubborn {
    address private immutable _owner = msg.sender;

    fallback() external {
        revert("no");
    }

    function act(address target, bytes calldata call) external {
        require(msg.sender == _owner, "no");
        (bool passed, bytes memory answer) = target.call(call);
        require(passed, string(answer));
    }
}

/// A payee cannot block a payment, an observer cannot block a submission, and the largest deposit is held.
contract ReceiversTest is Grid {
    function test_a_customer_contract_that_reverts_blocks_no_settlement() external {
        Stubborn stubborn = new Stubborn();
        credit.mint(address(stubborn), 3000 ether);
        stubborn.act(address(credit), abi.encodeCall(credit.approve, (address(grid), type(uint256).max)));
        for (uint256 end = uint256(JobStatus.CANCELLED); end <= uint256(JobStatus.PANICKED); ++end) {
            stubborn.act(address(grid), abi.encodeCall(grid.requestNewJob, (definition(), 500 ether, "job", false)));
            bytes32 id = bytes32(rare.jobIdCounter());
            assign(id);
            vm.prank(provider);
            grid.claimNextJob();
            report(id, JobStatus.RUNNING, 0);
            skip(2 minutes);
            report(id, JobStatus(end), 2);
            checkStatus(id, JobStatus(end));
        }
        vm.assertEq(credit.balanceOf(address(stubborn)), 3000 ether - 4 * 2 * RATE, "refunds; the panic was free");
    }

    function test_a_provider_contract_that_reverts_blocks_no_settlement() external {
        Stubborn stubborn = new Stubborn();
        address who = address(stubborn);
        stubborn.act(
            address(manager), abi.encodeCall(manager.register, (hardware(1, 4, 16, 64_000), prices(), labels()))
        );
        approve(who);
        bytes32 id = request(500 ether);
        vm.prank(operator);
        grid.metaSchedule(id, who);
        stubborn.act(address(grid), abi.encodeCall(grid.claimNextJob, ()));
        stubborn.act(address(grid), abi.encodeCall(grid.providerSetJobStatus, (id, JobStatus.RUNNING, 0, "", 0)));
        skip(2 minutes);
        stubborn.act(address(grid), abi.encodeCall(grid.providerSetJobStatus, (id, JobStatus.FINISHED, 2, "", 0)));
        vm.assertEq(credit.balanceOf(who), 2 * RATE * 80 / 100, "paid");
        checkStatus(id, JobStatus.FINISHED);
    }

    function test_a_permit_used_first_by_another_account_blocks_no_submission() external {
        uint256 key = 0xB0B;
        address owner = vm.addr(key);
        credit.mint(owner, 500 ether);
        bytes32 kind = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        uint256 deadline = block.timestamp + 1 hours;
        bytes32 message = keccak256(abi.encode(kind, owner, address(grid), 500 ether, 0, deadline));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", credit.DOMAIN_SEPARATOR(), message)));
        vm.prank(stranger);
        credit.permit(owner, address(grid), 500 ether, deadline, v, r, s);
        (bool passed,) = address(credit)
            .call(abi.encodeCall(ERC20Permit.permit, (owner, address(grid), 500 ether, deadline, v, r, s)));
        vm.assertTrue(!passed, "the signature was already used");
        vm.prank(owner);
        bytes32 id = grid.requestNewJob(definition(), 500 ether, "job", false);
        checkStatus(id, JobStatus.PENDING);
    }

    function test_a_job_locks_at_most_the_maximum() external {
        uint256 most = Billing.MAX_LOCKED;
        endow(customer, 4 * most);
        vm.expectRevert(abi.encodeWithSelector(TooMuchLocked.selector, most + 1, most));
        request(most + 1);
        vm.expectRevert(abi.encodeWithSelector(TooMuchLocked.selector, type(uint256).max, most));
        request(type(uint256).max);
        JobRequest[] memory requests = new JobRequest[](1);
        requests[0] = JobRequest(definition(), most + 1, "job", false);
        vm.expectRevert(abi.encodeWithSelector(TooMuchLocked.selector, most + 1, most));
        vm.prank(customer);
        grid.requestNewJobs(requests);

        bytes32 id = running(most - 1);
        vm.expectRevert(abi.encodeWithSelector(TooMuchLocked.selector, 2, most));
        topUp(id, 2);
        vm.expectRevert(abi.encodeWithSelector(TooMuchLocked.selector, type(uint256).max, most));
        topUp(id, type(uint256).max);
        topUp(id, 1);
        vm.assertEq(rare.get(id).cost.maxCost, most, "the maximum is locked");
        report(id, JobStatus.PANICKED, 0);
        vm.assertEq(credit.balanceOf(address(grid)), 0, "refunded to the last wei");
    }

    function topUp(bytes32 id, uint256 amount) private {
        vm.prank(customer);
        grid.topUpJob(id, amount);
    }
}
