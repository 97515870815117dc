// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong} from "../Errors.sol";
import {Affinity, JobDefinition, Label, StorageType} from "../Types.sol";
import {Blob} from "./Blob.sol";

/// What of a job never changes, as bytes. The jobs of one request lie behind each other in one blob:
///
/// header    | customer 20 | submittedAt 5 |
/// record    | length 2 | deposit 12 | gpus 8 | memPerCpu 8 | cpusPerTask 8 | ntasks 8 |           the fixed part
///           | storageType 1 | name | location | uses 2 | affinities 2 |
///           then each use as | key | value |, and each affinity as | key | value | op 2 |
///
/// all widths in bytes; name, location, key and value as | length 2 | text |. Names lose their zeros at the end.
library JobRecord {
    uint256 internal constant HEADER = 25;
    uint256 private constant FIXED = 46;

    /// The fixed part of a record, and its blob's header.
    struct Core {
        address customer;
        uint256 submittedAt;
        uint256 length;
        uint256 deposit;
        JobDefinition sizes; // without texts and labels
    }

    function header(address customer) internal view returns (bytes memory) {
        return abi.encodePacked(customer, uint40(block.timestamp));
    }

    function encode(JobDefinition calldata definition, uint96 deposit, bytes32 name)
        internal
        pure
        returns (bytes memory)
    {
        bytes memory rest = abi.encodePacked(
            definition.storageType,
            _text(_trimmed(name)),
            _text(bytes(definition.batchLocationHash)),
            uint16(definition.uses.length),
            uint16(definition.affinity.length)
        );
        for (uint256 i; i < definition.uses.length; ++i) {
            rest = bytes.concat(rest, _label(definition.uses[i]));
        }
        for (uint256 i; i < definition.affinity.length; ++i) {
            rest = bytes.concat(rest, _label(definition.affinity[i].label), definition.affinity[i].op);
        }
        if (rest.length + FIXED > Blob.LONGEST) revert BlobTooLong(rest.length + FIXED, Blob.LONGEST);
        return abi.encodePacked(
            uint16(rest.length + FIXED),
            deposit,
            definition.gpus,
            definition.memPerCpu,
            definition.cpusPerTask,
            definition.ntasks,
            rest
        );
    }

    /// The fixed part of the record at that place.
    function core(address blob, uint256 place) internal view returns (Core memory found) {
        uint256 part = Blob.uintAt(Blob.read(blob, 0, HEADER), 0, 25);
        found.customer = address(uint160(part >> 40));
        found.submittedAt = uint40(part);
        bytes memory data = Blob.read(blob, place, FIXED);
        part = Blob.uintAt(data, 0, 14);
        found.length = part >> 96;
        found.deposit = uint96(part);
        part = Blob.uintAt(data, 14, 32);
        JobDefinition memory sizes = found.sizes;
        sizes.gpus = uint64(part >> 192);
        sizes.memPerCpu = uint64(part >> 128);
        sizes.cpusPerTask = uint64(part >> 64);
        sizes.ntasks = uint64(part);
    }

    /// Who asked for the jobs in this blob.
    function customerOf(address blob) internal view returns (address) {
        return address(uint160(Blob.uintAt(Blob.read(blob, 0, 20), 0, 20)));
    }

    /// The whole definition and the name, of the record at that place whose fixed part is `found`.
    function definitionOf(address blob, uint256 place, Core memory found)
        internal
        view
        returns (JobDefinition memory definition, bytes32 name)
    {
        Reader memory reader = Reader(Blob.read(blob, place + FIXED, found.length - FIXED), 0);
        definition = found.sizes;
        definition.storageType = StorageType(_number(reader, 1));
        name = bytes32(bytes(_nextText(reader)));
        definition.batchLocationHash = _nextText(reader);
        definition.uses = new Label[](_number(reader, 2));
        definition.affinity = new Affinity[](_number(reader, 2));
        for (uint256 i; i < definition.uses.length; ++i) {
            definition.uses[i] = _nextLabel(reader);
        }
        for (uint256 i; i < definition.affinity.length; ++i) {
            definition.affinity[i] = Affinity(_nextLabel(reader), bytes2(uint16(_number(reader, 2))));
        }
    }

    struct Reader {
        bytes data;
        uint256 place;
    }

    function _number(Reader memory reader, uint256 width) private pure returns (uint256 value) {
        value = Blob.uintAt(reader.data, reader.place, width);
        reader.place += width;
    }

    function _nextText(Reader memory reader) private pure returns (string memory) {
        uint256 length = _number(reader, 2);
        bytes memory text = Blob.slice(reader.data, reader.place, length);
        reader.place += length;
        return string(text);
    }

    function _nextLabel(Reader memory reader) private pure returns (Label memory label) {
        label.key = _nextText(reader);
        label.value = _nextText(reader);
    }

    function _label(Label calldata label) private pure returns (bytes memory) {
        return bytes.concat(_text(bytes(label.key)), _text(bytes(label.value)));
    }

    /// Longer texts than a blob holds are refused here, so no length is cut.
    function _text(bytes memory text) private pure returns (bytes memory) {
        if (text.length > Blob.LONGEST) revert BlobTooLong(text.length, Blob.LONGEST);
        return abi.encodePacked(uint16(text.length), text);
    }

    /// The bytes of a name up to its zeros at the end, which most names have.
    function _trimmed(bytes32 name) private pure returns (bytes memory) {
        uint256 length = 32;
        uint256 left = uint256(name);
        for (uint256 half = 16; half > 0; half /= 2) {
            if (left & (1 << half * 8) - 1 != 0) continue;
            left >>= half * 8;
            length -= half;
        }
        return Blob.slice(bytes.concat(name), 0, left == 0 ? 0 : length);
    }
}
