// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong} from "../src/Errors.sol";
import {Blob, Pen, Pens} from "../src/libraries/Blob.sol";
import {vm} from "./Vm.sol";

/// Written bytes are read back unchanged, and a blob's address follows without being stored.
contract BlobTest {
    uint256 private blobs;

    event Written(bytes32 first, bytes32 second);

    function testFuzz_what_was_written_is_read(bytes calldata data, uint16 from, uint16 length) external {
        address blob = keep(data);
        vm.assertEq(read(blob, 0, data.length), data, "whole");
        (bool called,) = blob.call("");
        vm.assertTrue(called, "calling it does nothing");
        if (data.length == 0) return;
        uint256 start = from % data.length;
        uint256 size = length % (data.length - start + 1);
        vm.assertEq(read(blob, start, size), data[start:start + size], "part");
        (uint256 first, uint256 second) = Blob.peek(blob, start);
        bytes memory expected = bytes.concat(data[start:], bytes32(0), bytes32(0));
        vm.assertEq(bytes32(first), bytes32(expected), "peeked");
        (uint256 later,) = Pens.take(placeOf(expected) + 32, 32);
        vm.assertEq(second, later, "peeked further");
    }

    function test_addresses_are_those_of_create_at_any_number() external {
        for (uint256 number = 1; number < 300; ++number) {
            vm.assertEq(Blob.addressOf(address(this), number), address(new Empty()), "address");
        }
    }

    function testFuzz_addresses_are_those_of_create(address creator, uint32 nonce, uint8 width) external pure {
        uint256 number = uint256(nonce) >> width % 32;
        if (number == 0) number = type(uint32).max;
        vm.assertEq(Blob.addressOf(creator, number), vm.computeCreateAddress(creator, number), "address");
    }

    function test_the_longest_blob() external {
        vm.assertEq(this.keep(new bytes(Blob.LONGEST)).code.length, 24_576, "the longest code");
        vm.expectRevert(abi.encodeWithSelector(BlobTooLong.selector, 24_576, 24_575));
        this.keep(new bytes(Blob.LONGEST + 1));
    }

    function testFuzz_numbers_are_written_and_taken(uint256[4] memory numbers, uint8[4] memory widths) external pure {
        bytes memory expected;
        Pen start = Pens.begin();
        Pen pen = start.number(0, 32);
        for (uint256 i; i < 4; ++i) {
            pen = pen.number(numbers[i], widths[i] % 33);
        }
        start.overwrite(0, start.lengthTo(pen) - 32, 32);
        bytes memory written = asBytes(start);
        uint256 source = placeOf(written);
        for (uint256 i; i < 4; ++i) {
            uint256 width = widths[i] % 33;
            uint256 cut = width == 32 ? numbers[i] : numbers[i] & (1 << 8 * width) - 1;
            (numbers[i], source) = Pens.take(source, width);
            vm.assertEq(numbers[i], cut, "number");
            expected = bytes.concat(expected, part(bytes32(cut), width));
        }
        vm.assertEq(written, expected, "bytes");
    }

    function testFuzz_overwriting_changes_nothing_else(bytes calldata data, uint256 value, uint8 width, uint16 place)
        external
        pure
    {
        uint256 wide = data.length < 32 ? width % (data.length + 1) : width % 33;
        uint256 from = place % (data.length - wide + 1);
        Pen start = Pens.begin();
        Pen pen = start.number(data.length, 32).data(data);
        start.overwrite(32 + from, value, wide);
        bytes memory written = asBytes(start);
        vm.assertEq(start.lengthTo(pen), 32 + data.length, "same length");
        bytes memory expected = bytes.concat(data[:from], part(bytes32(value), wide), data[from + wide:]);
        vm.assertEq(written, expected, "other bytes are unchanged");
    }

    function testFuzz_copies_are_padded_and_moved(bytes memory source, bytes calldata gone) external pure {
        Pen start = Pens.begin();
        Pen first = start.data(gone);
        Pen end = first.number(source.length, 32).padded(placeOf(source), source.length);
        vm.assertEq(start.moveHere(first, end).lengthTo(end), gone.length, "moved by the removed length");
        bytes memory moved = asBytes(start);
        vm.assertEq(moved, source, "moved");
        uint256 rest = (32 - source.length % 32) % 32;
        (uint256 zeros,) = Pens.take(placeOf(moved) + source.length, rest);
        vm.assertEq(zeros, 0, "padded");
        vm.assertEq(new bytes(40), abi.encodePacked(bytes32(0), bytes8(0)), "memory after it is usable");
    }

    function test_an_event_is_logged_and_forgotten() external {
        Pen start = Pens.begin();
        vm.expectEmit(address(this));
        emit Written("first", "second");
        start = Pens.begin();
        Pen end = start.number(uint256(bytes32("first")), 32).number(uint256(bytes32("second")), 32);
        start.log(end, Written.selector);
        vm.assertEq(Pen.unwrap(Pens.begin()), Pen.unwrap(start), "its memory is free again");
    }

    function test_a_pen_that_is_not_at_the_end_of_memory_writes_nothing() external {
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 1));
        this.writeLate();
    }

    function writeLate() external pure {
        Pen pen = Pens.begin();
        bytes memory between = new bytes(1);
        pen.number(between.length, 1);
    }

    function keep(bytes calldata data) public returns (address) {
        Pen start = Pens.begin();
        Pen pen = Blob.begin(start).data(data);
        vm.assertEq(Blob.lengthOf(start, pen), data.length, "length");
        Blob.keep(start, pen);
        return Blob.addressOf(address(this), ++blobs);
    }

    function read(address blob, uint256 place, uint256 length) private view returns (bytes memory data) {
        uint256 source = Blob.read(blob, place, length);
        assembly ("memory-safe") {
            data := sub(source, 32)
        }
    }

    /// The bytes from a pen on, as a length and as that many bytes.
    function asBytes(Pen pen) private pure returns (bytes memory written) {
        assembly ("memory-safe") {
            written := pen
        }
    }

    /// Address of the bytes in memory.
    function placeOf(bytes memory data) private pure returns (uint256 source) {
        assembly ("memory-safe") {
            source := add(data, 32)
        }
    }

    /// The last `width` bytes of a word.
    function part(bytes32 word, uint256 width) private pure returns (bytes memory last) {
        last = new bytes(width);
        for (uint256 i; i < width; ++i) {
            last[i] = word[32 - width + i];
        }
    }
}

contract Empty {}
