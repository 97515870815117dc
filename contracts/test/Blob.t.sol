// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong} from "../src/Errors.sol";
import {Blob} from "../src/libraries/Blob.sol";
import {vm} from "./Vm.sol";

/// What is written is read again, byte by byte, and where it stands is known without being stored.
contract BlobTest {
    uint256 private blobs;

    function testFuzz_what_was_written_is_read(bytes calldata data, uint16 from, uint16 length) external {
        Blob.write(data);
        address blob = Blob.addressOf(address(this), ++blobs);
        vm.assertEq(Blob.read(blob, 0, data.length), data, "whole");
        if (data.length == 0) return;
        uint256 start = from % data.length;
        uint256 size = length % (data.length - start + 1);
        vm.assertEq(Blob.read(blob, start, size), data[start:start + size], "part");
        vm.assertEq(Blob.slice(data, start, size), data[start:start + size], "slice");
        (bool called,) = blob.call("");
        vm.assertTrue(called, "calling it does nothing");
    }

    function test_addresses_are_those_of_create_at_any_number() external {
        for (uint256 number = 1; number < 300; ++number) {
            vm.assertEq(Blob.addressOf(address(this), number), address(new Empty()), "address");
        }
        vm.assertEq(
            Blob.addressOf(0x00000000219ab540356cBB839Cbe05303d7705Fa, 0x10000),
            vm.computeCreateAddress(0x00000000219ab540356cBB839Cbe05303d7705Fa, 0x10000),
            "three bytes"
        );
        vm.assertEq(
            Blob.addressOf(address(this), type(uint32).max),
            vm.computeCreateAddress(address(this), type(uint32).max),
            "four bytes"
        );
    }

    function test_the_longest_blob() external {
        Blob.write(new bytes(Blob.LONGEST));
        vm.assertEq(Blob.addressOf(address(this), 1).code.length, 24_576, "as long as code may be");
        vm.expectRevert(abi.encodeWithSelector(BlobTooLong.selector, 24_576, 24_575));
        this.writeLength(Blob.LONGEST + 1);
    }

    function writeLength(uint256 length) external {
        Blob.write(new bytes(length));
    }

    function testFuzz_numbers_and_joined_parts(uint256 number, bytes calldata head, bytes[] calldata parts)
        external
        pure
    {
        bytes memory all = head;
        for (uint256 i; i < parts.length; ++i) {
            all = bytes.concat(all, parts[i]);
        }
        bytes[] memory copies = parts;
        vm.assertEq(Blob.join(head, copies, 0, copies.length), all, "joined");
        for (uint256 width = 1; width <= 32; ++width) {
            uint256 expected = number >> (256 - 8 * width);
            vm.assertEq(Blob.uintAt(abi.encodePacked(uint8(7), number), 1, width), expected, "number");
        }
    }
}

contract Empty {}
