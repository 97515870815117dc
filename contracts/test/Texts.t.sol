// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong, LocationTooLong, TooManyLabels} from "../src/Errors.sol";
import {Affinity, JobDefinition, JobRequest, JobStatus, Label} from "../src/Types.sol";
import {Grid} from "./Grid.sol";
import {vm} from "./Vm.sol";

/// Limits of number and length for labels and texts of jobs. Other accounts pay for them or read them.
contract TextsTest is Grid {
    function test_a_definition_has_at_most_64_labels_of_both_kinds_together() external {
        ask(labelled(64, 0));
        ask(labelled(0, 64));
        bytes32 id = ask(labelled(30, 34));
        vm.assertEq(rare.get(id).definition.affinity.length, 34, "kept");
        checkRefused(labelled(65, 0), 65);
        checkRefused(labelled(0, 65), 65);
        checkRefused(labelled(64, 1), 65);
        checkRefused(labelled(40, 40), 80);
    }

    function test_the_name_of_a_definition_has_at_most_256_bytes() external {
        JobDefinition memory asked = labelled(0, 0);
        asked.batchLocationHash = string(filled(256, "x"));
        vm.assertEq(rare.get(ask(asked)).definition.batchLocationHash, asked.batchLocationHash, "kept");
        asked.batchLocationHash = string(filled(257, "x"));
        vm.expectRevert(abi.encodeWithSelector(LocationTooLong.selector, 257, 256));
        vm.prank(customer);
        grid.requestNewJob(asked, 100 ether, "", false);
    }

    /// So a claim and a page of jobs cost at most a few times the usual gas, whatever was asked for.
    function test_all_texts_of_a_job_have_at_most_4096_bytes() external {
        JobDefinition memory asked = labelled(1, 0);
        asked.batchLocationHash = "";
        uint256 rest = 4096 - lengthWithout(asked);
        asked.uses[0].value = string(filled(rest, "x"));
        bytes32 id = ask(asked);
        vm.assertEq(bytes(rare.get(id).definition.uses[0].value).length, rest, "kept");
        assign(id);
        vm.prank(provider);
        uint256 before = gasleft();
        grid.claimNextJob();
        vm.assertTrue(before - gasleft() < 130_000, "gas of the claim");
        asked.uses[0].value = string(filled(rest + 1, "x"));
        vm.expectRevert(abi.encodeWithSelector(BlobTooLong.selector, 4097, 4096));
        vm.prank(customer);
        grid.requestNewJob(asked, 100 ether, "job", false);
    }

    /// Bytes of a record with one use, without the bytes of its value. There are 5 for length and widths, 9 for 100 credits,
    /// and a byte for each other number. Name, location, both lists and the key have one size byte each, the value has two,
    /// and the name itself has three bytes.
    function lengthWithout(JobDefinition memory asked) private pure returns (uint256) {
        uint256 numbers = (asked.gpus == 0 ? 0 : 1) + (asked.memPerCpu > 255 ? 2 : 1) + 1 + 1;
        return 5 + 9 + numbers + 5 + bytes(asked.uses[0].key).length + 2 + 3;
    }

    function test_a_batch_is_refused_as_a_whole() external {
        JobRequest[] memory requests = new JobRequest[](2);
        requests[0] = JobRequest(labelled(1, 0), 100 ether, "", false);
        requests[1] = JobRequest(labelled(65, 0), 100 ether, "", false);
        vm.expectRevert(abi.encodeWithSelector(TooManyLabels.selector, 65, 64));
        vm.prank(customer);
        grid.requestNewJobs(requests);
    }

    function test_only_the_beginning_of_an_error_is_kept() external {
        checkKept("", "");
        checkKept(filled(1024, "x"), filled(1024, "x"));
        checkKept(filled(1025, "x"), filled(1024, "x"));
        checkKept(filled(20_000, "x"), filled(1024, "x"));
    }

    function test_no_character_is_cut_in_two() external {
        bytes[3] memory characters = [bytes(hex"c3a4"), hex"e282ac", hex"f09f9880"];
        for (uint256 i; i < 3; ++i) {
            bytes memory character = characters[i];
            for (uint256 before = 1024 - character.length + 1; before < 1024; ++before) {
                bytes memory text = bytes.concat(filled(before, "x"), character, "and more");
                checkKept(text, filled(before, "x"));
            }
            bytes memory fits = bytes.concat(filled(1024 - character.length, "x"), character);
            checkKept(bytes.concat(fits, "and more"), fits);
        }
        checkKept(filled(2000, hex"80"), filled(1021, hex"80")); // not valid UTF-8
    }

    function checkKept(bytes memory told, bytes memory kept) private {
        bytes32 id = running(1000 ether);
        vm.prank(provider);
        grid.providerSetJobStatus(id, JobStatus.FAILED, 1, string(told), 1);
        vm.assertEq(bytes(rare.get(id).lastError), kept, "by the provider");
        id = request(1000 ether);
        vm.prank(operator);
        rare.panicJob(id, string(told));
        vm.assertEq(bytes(rare.get(id).lastError), kept, "by the role");
    }

    function ask(JobDefinition memory wanted) private returns (bytes32) {
        vm.prank(customer);
        return grid.requestNewJob(wanted, 100 ether, "job", false);
    }

    function checkRefused(JobDefinition memory wanted, uint256 count) private {
        vm.expectRevert(abi.encodeWithSelector(TooManyLabels.selector, count, 64));
        ask(wanted);
    }

    function labelled(uint256 uses, uint256 affinities) private pure returns (JobDefinition memory made) {
        made = definition();
        made.uses = new Label[](uses);
        made.affinity = new Affinity[](affinities);
        for (uint256 i; i < affinities; ++i) {
            made.affinity[i] = Affinity(Label("k", "v"), "==");
        }
    }

    function filled(uint256 length, bytes1 with) private pure returns (bytes memory made) {
        made = new bytes(length);
        for (uint256 i; i < length; ++i) {
            made[i] = with;
        }
    }
}
