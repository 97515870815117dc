// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong} from "../Errors.sol";

// All inline assembly of the contracts, except one line of IdList: bytes written one after the other (Pen), and bytes
// stored as code (Blob).

// Address in memory of the next byte. The written bytes are at the end of memory. Nothing else may be allocated before
// the last byte is written; each write checks that.
type Pen is uint256;

using Pens for Pen global;

/// @notice Writes with a Pen, and reads bytes in memory.
library Pens {
    /// A pen at the end of memory.
    function begin() internal pure returns (Pen pen) {
        assembly ("memory-safe") {
            pen := mload(0x40)
        }
    }

    /// Writes `value` in `width` bytes (at most 32), the most significant first.
    function number(Pen pen, uint256 value, uint256 width) internal pure returns (Pen next) {
        next = _advance(pen, width);
        assembly ("memory-safe") {
            mstore(pen, shl(sub(256, mul(8, width)), value))
        }
    }

    /// Writes these bytes.
    function data(Pen pen, bytes calldata bytes_) internal pure returns (Pen next) {
        next = _advance(pen, bytes_.length);
        assembly ("memory-safe") {
            calldatacopy(pen, bytes_.offset, bytes_.length)
        }
    }

    /// Writes a copy of the `length` bytes at `source`, and zeros up to a full word.
    function padded(Pen pen, uint256 source, uint256 length) internal pure returns (Pen next) {
        next = _advance(pen, length + 31 & ~uint256(31));
        assembly ("memory-safe") {
            mcopy(pen, source, length)
            mstore(add(pen, length), 0)
        }
    }

    /// Overwrites the `width` bytes at `place`, counted from this pen.
    function overwrite(Pen pen, uint256 place, uint256 value, uint256 width) internal pure {
        assembly ("memory-safe") {
            let target := add(pen, place)
            let bits := mul(8, width)
            let rest := shr(bits, shl(bits, mload(target)))
            mstore(target, or(shl(sub(256, bits), value), rest))
        }
    }

    /// Number of bytes from this pen to `end`.
    function lengthTo(Pen pen, Pen end) internal pure returns (uint256) {
        return Pen.unwrap(end) - Pen.unwrap(pen);
    }

    /// Moves the bytes from `from` to `end` to the lower address of this pen. Returns the pen behind them.
    function moveHere(Pen pen, Pen from, Pen end) internal pure returns (Pen next) {
        next = Pen.wrap(Pen.unwrap(pen) + lengthTo(from, end));
        assembly ("memory-safe") {
            mcopy(pen, from, sub(end, from))
            mstore(0x40, next)
        }
    }

    /// Logs the bytes from this pen to `end` as an event without indexed fields, and frees their memory.
    function log(Pen pen, Pen end, bytes32 selector) internal {
        assembly ("memory-safe") {
            log1(pen, sub(end, pen), selector)
            mstore(0x40, pen)
        }
    }

    /// The number in the `width` bytes (at most 32) at `source`, and the address behind it.
    function take(uint256 source, uint256 width) internal pure returns (uint256 value, uint256 next) {
        assembly ("memory-safe") {
            value := shr(sub(256, mul(8, width)), mload(source))
            next := add(source, width)
        }
    }

    /// A copy of the `length` bytes at `source`.
    function copy(uint256 source, uint256 length) internal pure returns (bytes memory copied) {
        copied = new bytes(length);
        assembly ("memory-safe") {
            mcopy(add(copied, 32), source, length)
        }
    }

    /// Allocates `length` bytes of memory. Fails if something else was allocated since the last write.
    function _advance(Pen pen, uint256 length) private pure returns (Pen next) {
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
            next := add(pen, length)
            mstore(0x40, next)
        }
        assert(free == Pen.unwrap(pen));
    }
}

/// @notice Bytes that never change, stored as the code of a contract that does nothing. This costs a third of storage.
/// The bytes of one transaction share one such contract.
library Blob {
    /// Longest code of a contract (EIP-170), minus the STOP byte that ends each call of it.
    uint256 internal constant LONGEST = 24_575;

    // PUSH2 size, DUP1, PUSH1 10, RETURNDATASIZE (0), CODECOPY, RETURNDATASIZE, RETURN; then STOP and the data
    uint256 private constant MAKER = 0x61000080600a3d393df300;
    uint256 internal constant MAKER_LENGTH = 11;
    uint256 private constant PLACE_OF_SIZE = 1;

    /// Begins a blob. Its data must follow.
    function begin(Pen start) internal pure returns (Pen) {
        return start.number(MAKER, MAKER_LENGTH);
    }

    /// Length of the data up to `end` of a blob that begins at `start`.
    function lengthOf(Pen start, Pen end) internal pure returns (uint256) {
        return start.lengthTo(end) - MAKER_LENGTH;
    }

    /// Stores the bytes from `start` to `end` in the next blob of this contract.
    function keep(Pen start, Pen end) internal {
        uint256 length = lengthOf(start, end);
        if (length > LONGEST) revert BlobTooLong(length, LONGEST);
        start.overwrite(PLACE_OF_SIZE, length + 1, 2);
        address made;
        assembly ("memory-safe") {
            made := create(0, start, sub(end, start))
        }
        if (made == address(0)) revert BlobTooLong(length, LONGEST); // also when the gas runs out
    }

    /// Address of the `nonce`-th contract (from 1 to 2^32 - 1) that `creator` made with CREATE. It is the hash of both
    /// in RLP: | length of the list | 0x94 | creator 20 | nonce |.
    function addressOf(address creator, uint256 nonce) internal pure returns (address made) {
        uint256 width = nonce < 1 << 8 ? 1 : nonce < 1 << 16 ? 2 : nonce < 1 << 24 ? 3 : 4;
        uint256 mark = nonce < 0x80 ? 0 : 1; // RLP writes small numbers as they are, others behind their width
        uint256 list = 0xd594 + (width + mark << 8);
        assembly ("memory-safe") {
            mstore(0, shl(240, list))
            mstore(2, shl(96, creator))
            mstore8(22, add(0x80, width))
            mstore(add(22, mark), shl(sub(256, mul(8, width)), nonce))
            made := and(keccak256(0, add(add(22, mark), width)), 0xffffffffffffffffffffffffffffffffffffffff)
        }
    }

    /// The 64 bytes of a blob from `place` on; zeros beyond its end.
    function peek(address blob, uint256 place) internal view returns (uint256 first, uint256 second) {
        assembly ("memory-safe") {
            extcodecopy(blob, 0, add(place, 1), 64)
            first := mload(0)
            second := mload(32)
        }
    }

    /// Copies `length` bytes of a blob from `place` on. Returns the copy's address in memory.
    function read(address blob, uint256 place, uint256 length) internal view returns (uint256 source) {
        bytes memory copied = new bytes(length);
        assembly ("memory-safe") {
            source := add(copied, 32)
            extcodecopy(blob, source, add(place, 1), length)
        }
    }
}
