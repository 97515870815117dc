// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {OutOfBounds} from "../Errors.sol";

/// @notice An ordered list of ids, never 0, that holds each id once. A change costs the same for any length.
library IdList {
    // | next 64 | prev 64 | listed 8 |   one slot per listed id
    struct Link {
        uint64 next;
        uint64 prev;
        bool listed;
    }

    // | head 64 | tail 64 | size 64 |    one slot
    struct List {
        uint64 head;
        uint64 tail;
        uint64 size;
        mapping(uint64 id => Link) links;
    }

    /// Adds `id` at the end. A listed id stays where it is.
    function push(List storage list, uint64 id) internal {
        if (list.links[id].listed) return;
        uint64 last = list.tail;
        list.links[id] = Link({next: 0, prev: last, listed: true});
        if (last == 0) list.head = id;
        else list.links[last].next = id;
        list.tail = id;
        ++list.size;
    }

    /// Removes `id`. Does nothing if it is not listed.
    function remove(List storage list, uint64 id) internal {
        Link memory link = list.links[id];
        if (!link.listed) return;
        if (link.prev == 0) list.head = link.next;
        else list.links[link.prev].next = link.next;
        if (link.next == 0) list.tail = link.prev;
        else list.links[link.next].prev = link.prev;
        delete list.links[id];
        --list.size;
    }

    /// Up to `howMany` ids from `cursor` on (0: the first id), and the first id of the next page (0: none).
    function page(List storage list, uint256 cursor, uint256 howMany)
        internal
        view
        returns (uint64[] memory ids, uint64 next)
    {
        if (cursor > type(uint64).max || (cursor != 0 && !list.links[uint64(cursor)].listed)) revert OutOfBounds();
        next = cursor == 0 ? list.head : uint64(cursor);
        uint256 room = howMany < list.size ? howMany : list.size;
        ids = new uint64[](room);
        uint256 filled;
        for (; filled < room && next != 0; ++filled) {
            ids[filled] = next;
            next = list.links[next].next;
        }
        assembly ("memory-safe") {
            mstore(ids, filled) // the array has the length of the longest case
        }
    }
}
