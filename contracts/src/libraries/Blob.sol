// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong} from "../Errors.sol";

/// Bytes that never change, kept as the code of a contract that does nothing: a third of the price of storage, and
/// what is written in one transaction shares one such contract. All inline assembly of the grid is here.
library Blob {
    /// The longest code of a contract (EIP-170), less the byte that stops whoever calls it.
    uint256 internal constant LONGEST = 24_575;

    /// Keeps `data` in the next blob of this contract.
    function write(bytes memory data) internal {
        if (data.length > LONGEST) revert BlobTooLong(data.length, LONGEST);
        // PUSH2 size, DUP1, PUSH1 10, RETURNDATASIZE (0), CODECOPY, RETURNDATASIZE, RETURN; then STOP and the data
        bytes memory code = abi.encodePacked(hex"61", uint16(data.length + 1), hex"80600a3d393df300", data);
        address made;
        assembly ("memory-safe") {
            made := create(0, add(code, 32), mload(code))
        }
        if (made == address(0)) revert BlobTooLong(data.length, LONGEST); // also when the gas ran out
    }

    /// Where the `number`-th contract stands that `creator` made with CREATE (1: the first).
    function addressOf(address creator, uint256 number) internal pure returns (address) {
        bytes memory rlp;
        if (number < 0x80) rlp = abi.encodePacked(hex"d694", creator, uint8(number));
        else if (number < 1 << 8) rlp = abi.encodePacked(hex"d794", creator, hex"81", uint8(number));
        else if (number < 1 << 16) rlp = abi.encodePacked(hex"d894", creator, hex"82", uint16(number));
        else if (number < 1 << 24) rlp = abi.encodePacked(hex"d994", creator, hex"83", uint24(number));
        else rlp = abi.encodePacked(hex"da94", creator, hex"84", uint32(number));
        return address(uint160(uint256(keccak256(rlp))));
    }

    /// `length` bytes of a blob from there.
    function read(address blob, uint256 place, uint256 length) internal view returns (bytes memory data) {
        data = new bytes(length);
        assembly ("memory-safe") {
            extcodecopy(blob, add(data, 32), add(place, 1), length)
        }
    }

    /// The number that `width` bytes (at most 32) hold from there, the most significant first.
    function uintAt(bytes memory data, uint256 place, uint256 width) internal pure returns (uint256 value) {
        assert(place + width <= data.length);
        assembly ("memory-safe") {
            value := shr(sub(256, mul(8, width)), mload(add(add(data, 32), place)))
        }
    }

    /// A copy of `length` bytes from there.
    function slice(bytes memory data, uint256 place, uint256 length) internal pure returns (bytes memory part) {
        assert(place + length <= data.length);
        part = new bytes(length);
        assembly ("memory-safe") {
            mcopy(add(part, 32), add(add(data, 32), place), length)
        }
    }

    /// `head` and then the parts from the `first` until before the `end`-th, as one.
    function join(bytes memory head, bytes[] memory parts, uint256 first, uint256 end)
        internal
        pure
        returns (bytes memory joined)
    {
        uint256 length = head.length;
        for (uint256 i = first; i < end; ++i) {
            length += parts[i].length;
        }
        joined = new bytes(length);
        uint256 place = _put(joined, 0, head);
        for (uint256 i = first; i < end; ++i) {
            place = _put(joined, place, parts[i]);
        }
    }

    function _put(bytes memory target, uint256 place, bytes memory part) private pure returns (uint256) {
        uint256 length = part.length;
        assembly ("memory-safe") {
            mcopy(add(add(target, 32), place), add(part, 32), length)
        }
        return place + length;
    }
}
