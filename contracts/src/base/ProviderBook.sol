// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMetaScheduler} from "../IMetaScheduler.sol";
import {IProviderManager} from "../IProviderManager.sol";
import {
    HardwareTotals,
    Label,
    Provider,
    ProviderEntry,
    ProviderHardware,
    ProviderPrices,
    ProviderRecord
} from "../Types.sol";
import {IdList} from "../libraries/IdList.sol";

/// Keeps what providers offer and how they stand, and tells clients of it.
abstract contract ProviderBook is IProviderManager {
    using IdList for IdList.List;

    // | gpus 64 | cpus 64 | mem 64 | version 32 | approved 8 | waiting 8 | banned 8 |   what an assignment asks, one slot
    struct Standing {
        uint64 gpus;
        uint64 cpus;
        uint64 mem;
        uint32 version;
        bool approved;
        bool waiting;
        bool banned;
    }

    // slot 0 | gpus 64 | cpus 64 | mem 64 | changedAt 40 | side 8 |   sums, time of the last change, where it is kept
    // slot 1   hash
    struct Proposal {
        uint64 gpus;
        uint64 cpus;
        uint64 mem;
        uint40 changedAt;
        uint8 side;
        bytes32 hash;
    }

    // prices: 3 slots; hardware and labels: only read by clients
    struct Offer {
        ProviderPrices prices;
        ProviderHardware hardware;
        Label[] labels;
    }

    /// Who is told of each change of a provider's standing, and counts what providers do; 0 for nobody.
    IMetaScheduler public metaScheduler;
    /// Number of the last provider that entered the list; numbers start at 1.
    uint64 public idCounter;

    mapping(address provider => Standing) internal _standing;
    mapping(address provider => uint64) internal _listIdOf;
    /// Both versions of a provider. Approving one swaps their parts, so it costs the same however long they are.
    mapping(address provider => Offer[2]) private _offers;
    mapping(address provider => Proposal) internal _proposals;
    mapping(uint64 listId => address) internal _addressOf;
    IdList.List internal _list;

    /// @inheritdoc IProviderManager
    function isValidForScheduling(address provider) public view returns (bool) {
        Standing storage standing = _standing[provider];
        return standing.approved && !standing.banned;
    }

    /// @inheritdoc IProviderManager
    function standingOf(address provider)
        public
        view
        returns (bool valid, uint32 version, HardwareTotals memory totals)
    {
        Standing memory standing = _standing[provider];
        valid = standing.approved && !standing.banned;
        version = standing.version;
        totals = HardwareTotals(standing.gpus, standing.cpus, standing.mem);
    }

    /// @inheritdoc IProviderManager
    function offer(address provider) external view returns (ProviderPrices memory, HardwareTotals memory) {
        (,, HardwareTotals memory totals) = standingOf(provider);
        return (getProviderPrices(provider), totals);
    }

    /// Whether a proposal of this provider waits for approval.
    function isWaitingForApproval(address provider) external view returns (bool) {
        return _standing[provider].waiting;
    }

    /// Whether the provider is banned, listed or not.
    function isBanned(address provider) external view returns (bool) {
        return _standing[provider].banned;
    }

    /// The hash of the proposal that waits for approval: keccak256(abi.encode(hardware, prices, labels)), which are the
    /// arguments of `register`. 0 when nothing waits.
    function proposalHash(address provider) external view returns (bytes32) {
        return _standing[provider].waiting ? _proposals[provider].hash : bytes32(0);
    }

    /// When the proposal that waits for approval changed last, in unix seconds. 0 when nothing waits.
    function proposalChangedAt(address provider) external view returns (uint256) {
        return _standing[provider].waiting ? _proposals[provider].changedAt : 0;
    }

    /// The approved version; all empty when there is none.
    function getProvider(address provider) external view returns (Provider memory) {
        return _view(provider, _standing[provider].approved, _approved(provider));
    }

    /// The version that waits for approval; all empty when there is none.
    function getWaitingForApprovalProvider(address provider) external view returns (Provider memory) {
        return _view(provider, _standing[provider].waiting, _proposed(provider));
    }

    /// The approved hardware; empty when there are none.
    function getProviderHardware(address provider) external view returns (ProviderHardware memory hardware) {
        if (_standing[provider].approved) hardware = _approved(provider).hardware;
    }

    /// The approved prices; empty when there are none.
    function getProviderPrices(address provider) public view returns (ProviderPrices memory prices) {
        if (_standing[provider].approved) prices = _approved(provider).prices;
    }

    /// The approved labels; empty when there are none.
    function getProviderLabels(address provider) external view returns (Label[] memory labels) {
        if (_standing[provider].approved) labels = _approved(provider).labels;
    }

    /// Jobs that the provider started.
    function getJobCount(address provider) external view returns (uint64) {
        return getRecord(provider).started;
    }

    /// Jobs that the provider started, refused, panicked and let time out. Survives `remove` and `ban`.
    function getRecord(address provider) public view returns (ProviderRecord memory record) {
        if (address(metaScheduler) != address(0)) record = metaScheduler.recordOf(provider);
    }

    /// How many providers are listed, approved or waiting.
    function elementCount() external view returns (uint256) {
        return _list.size;
    }

    /// List number of the provider that registered first, 0 for none.
    function head() external view returns (uint256) {
        return _list.head;
    }

    /// List number of the provider that registered last, 0 for none.
    function tail() external view returns (uint256) {
        return _list.tail;
    }

    /// The place of list number `listId`: itself, the next and the previous number (0: none), and the provider's address
    /// (right-aligned); all 0 when it is not listed.
    function get(uint256 listId) external view returns (uint256 id, uint256 next, uint256 prev, bytes32 data) {
        return objects(listId);
    }

    /// The same as `get`.
    function objects(uint256 listId) public view returns (uint256 id, uint256 next, uint256 prev, bytes32 data) {
        IdList.Link memory link = _list.links[uint64(listId)];
        if (listId > type(uint64).max || !link.listed) return (0, 0, 0, 0);
        return (listId, link.next, link.prev, bytes32(uint256(uint160(_addressOf[uint64(listId)]))));
    }

    /// A page of listed addresses (right-aligned) from list number `cursor` (0: the first), how many they are, and
    /// where the next page starts (0: nowhere). Reverts with OutOfBounds when `cursor` was removed.
    function fetchPage(uint256 cursor, uint256 howMany)
        external
        view
        returns (bytes32[] memory data, uint256 actualLength, uint256 newCursor)
    {
        uint64[] memory ids;
        (ids, newCursor) = _list.page(cursor, howMany);
        actualLength = ids.length;
        data = new bytes32[](actualLength);
        for (uint256 i; i < actualLength; ++i) {
            data[i] = bytes32(uint256(uint160(_addressOf[ids[i]])));
        }
    }

    /// The same page as whole providers, in the order in which they first registered.
    function providers(uint256 from, uint256 howMany)
        external
        view
        returns (ProviderEntry[] memory page, uint256 newCursor)
    {
        uint64[] memory ids;
        (ids, newCursor) = _list.page(from, howMany);
        page = new ProviderEntry[](ids.length);
        for (uint256 i; i < ids.length; ++i) {
            address addr = _addressOf[ids[i]];
            Standing storage standing = _standing[addr];
            page[i].provider = _view(addr, true, standing.approved ? _approved(addr) : _proposed(addr));
            page[i].approved = standing.approved;
            page[i].waitingForApproval = standing.waiting;
            page[i].record = getRecord(addr);
        }
    }

    /// The version in force, if there is one; else of no meaning.
    function _approved(address provider) internal view returns (Offer storage) {
        return _offers[provider][1 - _proposals[provider].side];
    }

    /// The version that waits for approval, if there is one; else of no meaning.
    function _proposed(address provider) internal view returns (Offer storage) {
        return _offers[provider][_proposals[provider].side];
    }

    function _view(address addr, bool known, Offer storage version) private view returns (Provider memory provider) {
        provider.isBanned = _standing[addr].banned;
        if (!known) return provider;
        provider.addr = addr;
        provider.providerHardware = version.hardware;
        provider.providerPrices = version.prices;
        provider.labels = version.labels;
    }
}
