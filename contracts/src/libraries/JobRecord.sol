// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlobTooLong, LocationTooLong, TooManyLabels} from "../Errors.sol";
import {Affinity, JobDefinition, Label, Sizes, StorageType} from "../Types.sol";
import {Blob, Pen, Pens} from "./Blob.sol";
import {IdRuns} from "./IdRuns.sol";
import {WishWord, WishWords} from "./WishWord.sol";

/// @notice The part of a job that never changes, as bytes. The jobs of one request follow each other in one blob:
///
/// * header    | customer 20 | submittedAt 5 |, in some blobs followed by | IdRuns 32 |
/// * record    numbers, then texts, then labels, then, in a record with wishes, | WishWord 22 or 27 |
/// * numbers   | length 2 | widths 3 | deposit | gpus | memPerCpu | cpusPerTask | ntasks |
/// * texts     | name | location | uses | affinities |
/// * labels    | key | value | for each use, then | key | value | op 2 | for each affinity
///
/// All widths are in bytes. The top bit of `length` says that the wishes are long. `widths` has one bit for wishes, three
/// bits for the storage type itself and four bits for the width of each of the five numbers. Name, location, key and value are | size | bytes |. Uses and affinities are the sizes of the two
/// lists. A size below 128 has one byte; a larger one has two, with the top bit set. Names lose their zeros at the end.
library JobRecord {
    /// Maximum number of uses and affinities of a definition. The provider pays gas for each when it claims the job.
    uint256 internal constant MAX_LABELS = 64;
    /// Maximum number of bytes of a record. All who read or claim the job pay for them.
    uint256 internal constant LONGEST = 4096;
    /// Maximum number of bytes of the name of the definition.
    uint256 internal constant LONGEST_LOCATION = 256;
    /// Bytes of a header.
    uint256 internal constant HEADER = 25;
    uint256 private constant FIXED = 5;
    uint256 private constant LONGEST_NUMBERS = 12 + 4 * 8;
    uint256 private constant LONG = 0x8000;
    uint256 private constant WISHED = 1 << 23;
    uint256 private constant LONG_WISHES = 1 << 39;
    uint256 private constant LENGTH = 0x7fff;

    /// The numbers of a record and the header of its blob.
    struct Core {
        address customer;
        uint256 submittedAt;
        uint256 deposit;
        Sizes sizes;
        WishWord wishes;
    }

    // ---------------------------------------------------------------- writing

    /// Writes the header of a blob whose jobs the caller requests now.
    function putHeader(Pen pen) internal view returns (Pen) {
        return pen.number(uint160(msg.sender), 20).number(block.timestamp, 5);
    }

    /// Writes a record.
    function put(Pen start, JobDefinition calldata definition, uint256 deposit, bytes32 name, WishWord wishes)
        internal
        pure
        returns (Pen pen)
    {
        uint256 widths = uint256(definition.storageType);
        pen = start.number(0, FIXED); // overwritten when its fields are known
        (pen, widths) = _putNumber(pen, widths, deposit);
        (pen, widths) = _putNumber(pen, widths, definition.gpus);
        (pen, widths) = _putNumber(pen, widths, definition.memPerCpu);
        (pen, widths) = _putNumber(pen, widths, definition.cpusPerTask);
        (pen, widths) = _putNumber(pen, widths, definition.ntasks);
        pen = _putName(pen, name);
        uint256 size = bytes(definition.batchLocationHash).length;
        if (size > LONGEST_LOCATION) revert LocationTooLong(size, LONGEST_LOCATION);
        pen = _putText(pen, definition.batchLocationHash);
        pen = _putLabels(pen, definition);
        if (WishWord.unwrap(wishes) != 0) {
            uint256 width = wishes.widthOf();
            pen = pen.number(WishWord.unwrap(wishes), width);
            widths |= width == WishWords.WIDTH ? WISHED : WISHED | LONG_WISHES;
        }
        uint256 length = start.lengthTo(pen);
        if (length > LONGEST) revert BlobTooLong(length, LONGEST);
        start.overwrite(0, length << 24 | widths, FIXED);
    }

    /// Writes a number without leading zeros, and appends its width to the others.
    function _putNumber(Pen pen, uint256 widths, uint256 number) private pure returns (Pen, uint256) {
        uint256 width = _width(number);
        return (pen.number(number, width), widths << 4 | width);
    }

    function _putName(Pen pen, bytes32 name) private pure returns (Pen) {
        uint256 length = _lengthOf(name);
        return _putSize(pen, length).number(uint256(name) >> 256 - 8 * length, length);
    }

    function _putLabels(Pen pen, JobDefinition calldata definition) private pure returns (Pen) {
        (uint256 uses, uint256 affinities) = (definition.uses.length, definition.affinity.length);
        if (uses + affinities > MAX_LABELS) revert TooManyLabels(uses + affinities, MAX_LABELS);
        pen = _putSize(_putSize(pen, uses), affinities);
        for (uint256 i; i < uses; ++i) {
            pen = _putLabel(pen, definition.uses[i]);
        }
        for (uint256 i; i < affinities; ++i) {
            pen = _putLabel(pen, definition.affinity[i].label);
            pen = pen.number(uint16(definition.affinity[i].op), 2);
        }
        return pen;
    }

    function _putLabel(Pen pen, Label calldata label) private pure returns (Pen) {
        return _putText(_putText(pen, label.key), label.value);
    }

    function _putText(Pen pen, string calldata text) private pure returns (Pen) {
        return _putSize(pen, bytes(text).length).data(bytes(text));
    }

    /// Writes a size. Rejects texts that are longer than a blob, so no size is cut.
    function _putSize(Pen pen, uint256 size) private pure returns (Pen) {
        if (size < 128) return pen.number(size, 1);
        if (size > Blob.LONGEST) revert BlobTooLong(size, Blob.LONGEST);
        return pen.number(LONG | size, 2);
    }

    /// Bytes that a number needs; 0 for the number 0.
    function _width(uint256 number) private pure returns (uint256 width) {
        for (; number > type(uint32).max; number >>= 32) {
            width += 4;
        }
        for (; number != 0; number >>= 8) {
            ++width;
        }
    }

    /// Bytes of a name without the zeros at its end.
    function _lengthOf(bytes32 name) private pure returns (uint256 length) {
        for (uint256 rest = uint256(name); rest != 0; rest <<= 8) {
            ++length;
        }
    }

    // ---------------------------------------------------------------- reading

    /// Customer and time of the request whose jobs this blob holds.
    function headerOf(address blob) internal view returns (address customer, uint256 submittedAt) {
        (uint256 word,) = Blob.peek(blob, 0);
        return (address(uint160(word >> 96)), uint40(word >> 56));
    }

    /// The word of older ids that this blob holds besides its jobs.
    function olderIdsIn(address blob) internal view returns (IdRuns) {
        (uint256 word,) = Blob.peek(blob, HEADER);
        return IdRuns.wrap(word);
    }

    /// The numbers of the record at that place.
    function core(address blob, uint256 place) internal view returns (Core memory found) {
        (found.customer, found.submittedAt) = headerOf(blob);
        Sizes memory sizes = found.sizes;
        uint256 source = Blob.read(blob, place, FIXED + LONGEST_NUMBERS);
        uint256 widths;
        (widths, source) = Pens.take(source, FIXED);
        if (widths & WISHED != 0) {
            uint256 width = widths & LONG_WISHES == 0 ? WishWords.WIDTH : WishWords.LONG_WIDTH;
            found.wishes = WishWords.read(blob, place + (widths >> 24 & LENGTH) - width, width);
        }
        (found.deposit, source) = Pens.take(source, widths >> 16 & 15);
        (sizes.gpus, source) = _take64(source, widths >> 12);
        (sizes.memPerCpu, source) = _take64(source, widths >> 8);
        (sizes.cpusPerTask, source) = _take64(source, widths >> 4);
        (sizes.ntasks,) = _take64(source, widths);
    }

    /// The name of the record at that place.
    function nameOf(address blob, uint256 place) internal view returns (bytes32) {
        (uint256 length, uint256 source) = _takeSize(_textsOf(_read(blob, place)));
        (uint256 name,) = Pens.take(source, length);
        return bytes32(name << 256 - 8 * length);
    }

    /// The definition in the record at that place.
    function definitionOf(address blob, uint256 place) internal view returns (JobDefinition memory definition) {
        uint256 source = _read(blob, place);
        (uint256 widths, uint256 number) = (0, 0);
        (widths, source) = Pens.take(source, FIXED);
        definition.storageType = StorageType(widths >> 20 & 7);
        (, source) = Pens.take(source, widths >> 16 & 15); // the deposit
        (definition.gpus, source) = _take64(source, widths >> 12);
        (definition.memPerCpu, source) = _take64(source, widths >> 8);
        (definition.cpusPerTask, source) = _take64(source, widths >> 4);
        (definition.ntasks, source) = _take64(source, widths);
        (number, source) = _takeSize(source);
        source += number; // the name
        (definition.batchLocationHash, source) = _takeText(source);
        (number, source) = _takeSize(source);
        definition.uses = new Label[](number);
        (number, source) = _takeSize(source);
        definition.affinity = new Affinity[](number);
        for (uint256 i; i < definition.uses.length; ++i) {
            (definition.uses[i], source) = _takeLabel(source);
        }
        for (uint256 i; i < definition.affinity.length; ++i) {
            (definition.affinity[i].label, source) = _takeLabel(source);
            (number, source) = Pens.take(source, 2);
            definition.affinity[i].op = bytes2(uint16(number));
        }
    }

    /// Logs an event with these fields, followed by the definition in the record at that place.
    function logDefinition(bytes32 selector, uint256[4] memory fields, address blob, uint256 place) internal {
        uint256 source = _read(blob, place);
        Pen start = Pens.begin();
        Pen pen = start;
        for (uint256 i; i < 4; ++i) {
            pen = pen.number(fields[i], 32);
        }
        start.log(_encode(pen.number(5 * 32, 32), source), selector);
    }

    /// Writes the definition in the record at `source` in its ABI encoding: eight words, then the data they point to.
    function _encode(Pen start, uint256 source) private pure returns (Pen pen) {
        (uint256 widths, uint256 number) = (0, 0);
        (widths, source) = Pens.take(source, FIXED);
        (, source) = Pens.take(source, widths >> 16 & 15); // the deposit
        pen = start;
        for (uint256 i; i < 4; ++i) {
            (number, source) = Pens.take(source, widths >> 12 - 4 * i & 15);
            pen = pen.number(number, 32);
        }
        pen = pen.number(8 * 32, 32).number(widths >> 20 & 7, 32).number(0, 32).number(0, 32);
        (number, source) = _takeSize(source);
        source += number; // the name
        (pen, source) = _encodeText(pen, source);
        uint256 uses;
        uint256 affinities;
        (uses, source) = _takeSize(source);
        (affinities, source) = _takeSize(source);
        start.overwrite(6 * 32, start.lengthTo(pen), 32);
        (pen, source) = _encodeLabels(pen, source, uses, false);
        start.overwrite(7 * 32, start.lengthTo(pen), 32);
        (pen,) = _encodeLabels(pen, source, affinities, true);
    }

    /// Writes an array: its length, the offset of each element, the elements.
    function _encodeLabels(Pen pen, uint256 source, uint256 count, bool withOp) private pure returns (Pen, uint256) {
        Pen start = pen.number(count, 32);
        pen = start;
        for (uint256 i; i < count; ++i) {
            pen = pen.number(0, 32);
        }
        for (uint256 i; i < count; ++i) {
            start.overwrite(32 * i, start.lengthTo(pen), 32);
            (pen, source) = withOp ? _encodeAffinity(pen, source) : _encodeLabel(pen, source);
        }
        return (pen, source);
    }

    /// Writes an affinity: the offset of its label, its operator, the label.
    function _encodeAffinity(Pen start, uint256 source) private pure returns (Pen pen, uint256 next) {
        (pen, next) = _encodeLabel(start.number(2 * 32, 32).number(0, 32), source);
        uint256 op;
        (op, next) = Pens.take(next, 2);
        start.overwrite(32, op << 240, 32);
    }

    /// Writes a label: the offsets of its key and its value, then both.
    function _encodeLabel(Pen start, uint256 source) private pure returns (Pen pen, uint256 next) {
        (pen, next) = _encodeText(start.number(2 * 32, 32).number(0, 32), source);
        start.overwrite(32, start.lengthTo(pen), 32);
        return _encodeText(pen, next);
    }

    /// Writes a text: its length, and its bytes padded to full words.
    function _encodeText(Pen pen, uint256 source) private pure returns (Pen, uint256 next) {
        (uint256 length, uint256 text) = _takeSize(source);
        return (pen.number(length, 32).padded(text, length), text + length);
    }

    function _read(address blob, uint256 place) private view returns (uint256 source) {
        (uint256 word,) = Blob.peek(blob, place);
        return Blob.read(blob, place, word >> 240 & LENGTH);
    }

    /// Address of the first text of a record.
    function _textsOf(uint256 source) private pure returns (uint256) {
        (uint256 widths, uint256 next) = Pens.take(source, FIXED);
        for (uint256 i; i < 5; ++i) {
            next += widths >> 4 * i & 15;
        }
        return next;
    }

    function _takeSize(uint256 source) private pure returns (uint256 size, uint256 next) {
        (size, next) = Pens.take(source, 1);
        if (size < 128) return (size, next);
        (size, next) = Pens.take(source, 2);
        return (size ^ LONG, next);
    }

    function _takeText(uint256 source) private pure returns (string memory text, uint256 next) {
        uint256 length;
        (length, next) = _takeSize(source);
        return (string(Pens.copy(next, length)), next + length);
    }

    function _takeLabel(uint256 source) private pure returns (Label memory label, uint256 next) {
        (label.key, next) = _takeText(source);
        (label.value, next) = _takeText(next);
    }

    /// Takes a number of at most 64 bits. The last four bits of `width` are its width.
    function _take64(uint256 source, uint256 width) private pure returns (uint64, uint256) {
        (uint256 number, uint256 next) = Pens.take(source, width & 15);
        return (uint64(number), next);
    }
}
