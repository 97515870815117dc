// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMetaScheduler} from "../interfaces/IMetaScheduler.sol";
import {IProviderManager} from "../interfaces/IProviderManager.sol";
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

/// @notice Stores the offers and the standing of providers. Serves the views of them.
abstract contract ProviderBook is IProviderManager {
    using IdList for IdList.List;

    // | gpus 64 | cpus 64 | mem 64 | version 32 | approved 8 | waiting 8 | banned 8 |   read by assignments, one slot
    struct Standing {
        uint64 gpus;
        uint64 cpus;
        uint64 mem;
        uint32 version;
        bool approved;
        bool waiting;
        bool banned;
    }

    // slot 0 | gpus 64 | cpus 64 | mem 64 | changedAt 40 | side 8 |   sums, time of the last change, index in `_offers`
    // slot 1   hash
    struct Proposal {
        uint64 gpus;
        uint64 cpus;
        uint64 mem;
        uint40 changedAt;
        uint8 side;
        bytes32 hash;
    }

    // prices: 3 slots; only clients read hardware and labels
    struct Offer {
        ProviderPrices prices;
        ProviderHardware hardware;
        Label[] labels;
    }

    /// @notice Contract that receives each change of a provider's standing and counts its jobs; 0 for none.
    IMetaScheduler public metaScheduler;
    /// @notice List number of the provider that was listed last; numbers count from 1.
    uint64 public idCounter;

    mapping(address provider => Standing) internal _standing;
    mapping(address provider => uint64) internal _listIdOf;
    /// Both versions of a provider. An approval swaps their roles, so it costs the same for any length of an offer.
    mapping(address provider => Offer[2]) private _offers;
    mapping(address provider => Proposal) internal _proposals;
    mapping(uint64 listId => address) internal _addressOf;
    IdList.List internal _list;
    /// Earlier contracts in that role, which receive each change too.
    IMetaScheduler[] internal _earlier;

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

    /// @notice Whether a proposal of this provider waits for approval.
    /// @param provider The provider's address.
    /// @return True if one waits.
    function isWaitingForApproval(address provider) external view returns (bool) {
        return _standing[provider].waiting;
    }

    /// @notice Whether the address is banned, listed or not.
    /// @param provider The provider's address.
    /// @return True if it is banned.
    function isBanned(address provider) external view returns (bool) {
        return _standing[provider].banned;
    }

    /// @notice Hash of the waiting proposal.
    /// @param provider The provider's address.
    /// @return keccak256(abi.encode(hardware, prices, labels)) of the arguments of `register`; 0 when none waits.
    function proposalHash(address provider) external view returns (bytes32) {
        return _standing[provider].waiting ? _proposals[provider].hash : bytes32(0);
    }

    /// @notice Time of the last change of the waiting proposal.
    /// @param provider The provider's address.
    /// @return Unix seconds; 0 when none waits.
    function proposalChangedAt(address provider) external view returns (uint256) {
        return _standing[provider].waiting ? _proposals[provider].changedAt : 0;
    }

    /// @notice The provider with its approved version.
    /// @param provider The provider's address.
    /// @return The provider; all fields but `isBanned` are empty when none is approved.
    function getProvider(address provider) public view returns (Provider memory) {
        return _view(provider, _standing[provider].approved, _approved(provider));
    }

    /// @notice The provider with its waiting proposal.
    /// @param provider The provider's address.
    /// @return The provider; all fields but `isBanned` are empty when none waits.
    function getWaitingForApprovalProvider(address provider) public view returns (Provider memory) {
        return _view(provider, _standing[provider].waiting, _proposed(provider));
    }

    /// @notice The approved hardware.
    /// @param provider The provider's address.
    /// @return hardware The hardware; empty when none is approved.
    function getProviderHardware(address provider) external view returns (ProviderHardware memory hardware) {
        if (_standing[provider].approved) hardware = _approved(provider).hardware;
    }

    /// @notice The approved prices.
    /// @param provider The provider's address.
    /// @return prices The prices; all 0 when none are approved.
    function getProviderPrices(address provider) public view returns (ProviderPrices memory prices) {
        if (_standing[provider].approved) prices = _approved(provider).prices;
    }

    /// @notice The approved labels.
    /// @param provider The provider's address.
    /// @return labels The labels; empty when none are approved.
    function getLabels(address provider) external view returns (Label[] memory labels) {
        if (_standing[provider].approved) labels = _approved(provider).labels;
    }

    /// @notice Number of jobs that the provider started.
    /// @param provider The provider's address.
    /// @return Number of jobs.
    function getJobCount(address provider) external view returns (uint64) {
        return getRecord(provider).started;
    }

    /// @notice Numbers of jobs that the provider started, refused, panicked and let time out.
    /// @dev The counters survive `remove` and `ban`.
    /// @param provider The provider's address.
    /// @return record The four counters.
    function getRecord(address provider) public view returns (ProviderRecord memory record) {
        if (address(metaScheduler) != address(0)) record = metaScheduler.recordOf(provider);
    }

    /// @notice Number of listed providers, approved or waiting.
    /// @return Number of providers.
    function elementCount() external view returns (uint256) {
        return _list.size;
    }

    /// @notice First provider of the list: the one that registered first.
    /// @return List number; 0 for none.
    function head() external view returns (uint256) {
        return _list.head;
    }

    /// @notice Last provider of the list: the one that registered last.
    /// @return List number; 0 for none.
    function tail() external view returns (uint256) {
        return _list.tail;
    }

    /// @notice Entry of the list. All results are 0 if the number is not listed.
    /// @param listId List number.
    /// @return id The same number.
    /// @return next Number of the next entry; 0 for none.
    /// @return prev Number of the previous entry; 0 for none.
    /// @return data The provider's address, right-aligned.
    function get(uint256 listId) external view returns (uint256 id, uint256 next, uint256 prev, bytes32 data) {
        return objects(listId);
    }

    /// @notice The same as `get`.
    /// @param listId List number.
    /// @return id The same number.
    /// @return next Number of the next entry; 0 for none.
    /// @return prev Number of the previous entry; 0 for none.
    /// @return data The provider's address, right-aligned.
    function objects(uint256 listId) public view returns (uint256 id, uint256 next, uint256 prev, bytes32 data) {
        IdList.Link memory link = _list.links[uint64(listId)];
        if (listId > type(uint64).max || !link.listed) return (0, 0, 0, 0);
        return (listId, link.next, link.prev, bytes32(uint256(uint160(_addressOf[uint64(listId)]))));
    }

    /// @notice A page of listed addresses. Reverts with OutOfBounds if the entry at `cursor` was removed.
    /// @param cursor List number of the first entry; 0 is the first of the list.
    /// @param howMany Maximum number of addresses.
    /// @return data Addresses, right-aligned.
    /// @return actualLength Number of addresses.
    /// @return newCursor First entry of the next page; 0 for none.
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

    /// @notice A page of whole providers, in the order of their first registration.
    /// @dev Reverts with OutOfBounds if the entry at `from` was removed.
    /// @param from List number of the first entry; 0 is the first of the list.
    /// @param howMany Maximum number of providers.
    /// @return page The providers.
    /// @return newCursor First entry of the next page; 0 for none.
    function fetchProviders(uint256 from, uint256 howMany)
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

    /// The approved version. It has no meaning if none is approved.
    function _approved(address provider) internal view returns (Offer storage) {
        return _offers[provider][1 - _proposals[provider].side];
    }

    /// The waiting version. It has no meaning if none waits.
    function _proposed(address provider) internal view returns (Offer storage) {
        return _offers[provider][_proposals[provider].side];
    }

    /// A provider as clients read it. Unless it is `known`, all fields but `isBanned` are empty.
    function _view(address addr, bool known, Offer storage version) private view returns (Provider memory provider) {
        provider.isBanned = _standing[addr].banned;
        if (!known) return provider;
        provider.addr = addr;
        provider.providerHardware = version.hardware;
        provider.providerPrices = version.prices;
        provider.labels = version.labels;
    }
}
