// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {
    AlreadyDone,
    ArrayLengthMismatch,
    Banned,
    InvalidNodesCount,
    InvalidTotalCpus,
    InvalidTotalMem,
    LabelTooLong,
    NoProvider,
    ProposalChanged,
    ProposalTooRecent,
    TooManyLabels,
    TooManyNodes,
    WaitingApprovalOnly
} from "./Errors.sol";
import {IMetaScheduler} from "./interfaces/IMetaScheduler.sol";
import {HardwareTotals, Label, ProviderHardware, ProviderPrices} from "./Types.sol";
import {MappingGetters} from "./base/MappingGetters.sol";
import {IdList} from "./libraries/IdList.sol";

/// @notice The registry of providers, with their hardware, prices and labels. A provider proposes its offer and the
/// meta-scheduler approves it. A later proposal leaves the approved version in force until it is approved itself.
contract ProviderManager is AccessControl, MappingGetters {
    using IdList for IdList.List;

    /// @notice Role that approves, removes and bans providers.
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");
    /// @notice Role of a MetaScheduler contract. Each holder receives each change. The one that got the role last counts the
    /// jobs of providers.
    bytes32 public constant METASCHEDULER_CONTRACT_ROLE = keccak256("METASCHEDULER_CONTRACT_ROLE");
    /// @notice Price of a registration, which is free.
    uint256 public constant PROVIDER_REGISTRATION_TAX = 0;

    /// @notice A proposal waits for approval.
    /// @param addr Address of the provider.
    event ProviderWaitingForApproval(address addr);
    /// @notice The proposal is approved and in force.
    /// @param addr Address of the provider.
    event ProviderApproved(address addr);
    /// @notice The provider was removed from the list.
    /// @param addr Address of the provider.
    event ProviderRemoved(address addr);
    /// @notice The provider was banned, or its ban was lifted.
    /// @param addr Address of the provider.
    /// @param status True if it is banned now.
    event ProviderBanChanged(address addr, bool status);

    /// @notice Makes the deployer admin.
    constructor() {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
    }

    /// @notice Maximum number of nodes of a provider.
    uint256 public constant MAX_NODES = 1024;
    /// @notice Maximum number of labels of a provider.
    uint256 public constant MAX_LABELS = 64;
    /// @notice Maximum number of bytes of a label's key, and of its value.
    uint256 public constant MAX_LABEL_BYTES = 256;
    /// @notice Seconds for which a proposal must stay unchanged before `approve` takes it.
    uint256 public constant UNCHANGED_PERIOD = 10 minutes;

    /// @notice Proposes the caller as a provider, or a change of its offer. A newer proposal replaces an older one.
    /// @dev Records the time of the change, unless the same proposal already waits.
    /// @param hardware One number per node in each array, for at most MAX_NODES nodes.
    /// @param prices Wei of credit per minute: of a GPU, of a CPU, of a MB of memory.
    /// @param labels At most MAX_LABELS, each key and value of at most MAX_LABEL_BYTES.
    function register(ProviderHardware calldata hardware, ProviderPrices calldata prices, Label[] calldata labels)
        external
    {
        Standing storage standing = _standing[msg.sender];
        if (standing.banned) revert Banned();
        _note(hardware, keccak256(abi.encode(hardware, prices, labels)), standing.waiting);
        Offer storage proposed = _proposed(msg.sender);
        proposed.prices = prices;
        proposed.hardware = hardware;
        _keepLabels(proposed, labels);
        standing.waiting = true;
        if (_listIdOf[msg.sender] == 0) {
            uint64 listId = ++idCounter;
            _listIdOf[msg.sender] = listId;
            _addressOf[listId] = msg.sender;
            _list.push(listId);
        }
        emit ProviderWaitingForApproval(msg.sender);
    }

    /// @notice Approves the provider's waiting proposal if it has this hash. Needs METASCHEDULER_ROLE.
    /// @dev Reverts with ProposalChanged if another proposal waits.
    /// @param provider Address of the provider.
    /// @param hash keccak256(abi.encode(hardware, prices, labels)) of the proposal that the caller has read. Compute it
    /// from what you read: a hash taken from `proposalHash` approves any proposal that waits.
    function approveProposal(address provider, bytes32 hash) external onlyRole(METASCHEDULER_ROLE) {
        bytes32 waiting = _waiting(provider).hash;
        if (waiting != hash) revert ProposalChanged(waiting, hash);
        _approve(provider);
    }

    /// @notice Approves the provider's waiting proposal, for clients that know no hashes. Needs METASCHEDULER_ROLE.
    /// @dev Reverts with ProposalTooRecent unless the proposal is unchanged for UNCHANGED_PERIOD. So a provider cannot
    /// replace it just before this call.
    /// @param provider Address of the provider.
    function approve(address provider) external onlyRole(METASCHEDULER_ROLE) {
        uint256 notBefore = _waiting(provider).changedAt + UNCHANGED_PERIOD;
        if (block.timestamp < notBefore) revert ProposalTooRecent(notBefore);
        _approve(provider);
    }

    /// @notice Removes a provider with its proposal and its approved version. Needs METASCHEDULER_ROLE.
    /// @dev Its running jobs are settled as usual.
    /// @param provider Address of the provider.
    function remove(address provider) external onlyRole(METASCHEDULER_ROLE) {
        uint64 listId = _listIdOf[provider];
        if (listId == 0) revert NoProvider();
        _list.remove(listId);
        delete _addressOf[listId];
        delete _listIdOf[provider];
        Standing storage standing = _standing[provider];
        (standing.approved, standing.waiting) = (false, false); // the version counts on if the provider comes back
        emit ProviderRemoved(provider);
        _tell(provider);
    }

    /// @notice Bars an address from registration, from new jobs and from claims. Needs METASCHEDULER_ROLE.
    /// @dev Its running jobs are settled as usual.
    /// @param provider Address of the provider.
    function ban(address provider) external onlyRole(METASCHEDULER_ROLE) {
        _setBanned(provider, true);
    }

    /// @notice Lifts a ban. The version that was approved before is in force again. Needs METASCHEDULER_ROLE.
    /// @param provider Address of the provider.
    function unban(address provider) external onlyRole(METASCHEDULER_ROLE) {
        _setBanned(provider, false);
    }

    /// The account that gets the role of a MetaScheduler contract receives changes from then on. The one before it, which
    /// may still have jobs, receives them too.
    function _grantRole(bytes32 role, address account) internal override returns (bool granted) {
        granted = super._grantRole(role, account);
        if (!granted || role != METASCHEDULER_CONTRACT_ROLE) return granted;
        if (address(metaScheduler) != address(0)) _earlier.push(metaScheduler);
        metaScheduler = IMetaScheduler(account);
    }

    /// The account that loses the role receives no more changes.
    function _revokeRole(bytes32 role, address account) internal override returns (bool revoked) {
        revoked = super._revokeRole(role, account);
        if (role != METASCHEDULER_CONTRACT_ROLE) return revoked;
        if (account == address(metaScheduler)) delete metaScheduler;
        for (uint256 i = _earlier.length; i != 0; --i) {
            if (address(_earlier[i - 1]) != account) continue;
            _earlier[i - 1] = _earlier[_earlier.length - 1];
            _earlier.pop();
        }
    }

    /// Stores the proposal's sums, hash and time of change. The time stays if the same proposal already waits.
    function _note(ProviderHardware calldata hardware, bytes32 hash, bool waiting) private {
        Proposal storage proposal = _proposals[msg.sender];
        HardwareTotals memory totals = _totals(hardware);
        (proposal.gpus, proposal.cpus, proposal.mem) = (totals.gpus, totals.cpus, totals.mem);
        if (waiting && proposal.hash == hash) return;
        (proposal.hash, proposal.changedAt) = (hash, uint40(block.timestamp));
    }

    function _keepLabels(Offer storage proposed, Label[] calldata labels) private {
        if (labels.length > MAX_LABELS) revert TooManyLabels(labels.length, MAX_LABELS);
        delete proposed.labels;
        for (uint256 i; i < labels.length; ++i) {
            _checkLength(labels[i].key);
            _checkLength(labels[i].value);
            proposed.labels.push(labels[i]);
        }
    }

    function _checkLength(string calldata text) private pure {
        uint256 length = bytes(text).length;
        if (length > MAX_LABEL_BYTES) revert LabelTooLong(length, MAX_LABEL_BYTES);
    }

    /// The waiting proposal. Reverts if the provider is banned or has none.
    function _waiting(address provider) private view returns (Proposal storage) {
        Standing storage standing = _standing[provider];
        if (standing.banned) revert Banned();
        if (!standing.waiting) revert WaitingApprovalOnly();
        return _proposals[provider];
    }

    function _approve(address provider) private {
        Proposal storage proposal = _proposals[provider];
        proposal.side = 1 - proposal.side; // the proposed side is approved now; the next proposal overwrites the other
        _standing[provider] = Standing({
            gpus: proposal.gpus,
            cpus: proposal.cpus,
            mem: proposal.mem,
            version: _standing[provider].version + 1,
            approved: true,
            waiting: false,
            banned: false
        });
        emit ProviderApproved(provider);
        _tell(provider);
    }

    function _tell(address provider) private {
        if (address(metaScheduler) != address(0)) metaScheduler.noteStanding(provider);
        for (uint256 i; i < _earlier.length; ++i) {
            // an earlier contract that fails must not stop a ban in the present one
            try _earlier[i].noteStanding(provider) {} catch {}
        }
    }

    function _setBanned(address provider, bool banned) private {
        Standing storage standing = _standing[provider];
        if (standing.banned == banned) revert AlreadyDone();
        standing.banned = banned;
        emit ProviderBanChanged(provider, banned);
        _tell(provider);
    }

    function _totals(ProviderHardware calldata hardware) private pure returns (HardwareTotals memory totals) {
        uint256 nodes = hardware.nodes;
        if (nodes == 0) revert InvalidNodesCount();
        if (nodes > MAX_NODES) revert TooManyNodes(nodes, MAX_NODES);
        if (
            hardware.gpusPerNode.length != nodes || hardware.cpusPerNode.length != nodes
                || hardware.memPerNode.length != nodes
        ) revert ArrayLengthMismatch();
        for (uint256 i; i < nodes; ++i) {
            totals.gpus += hardware.gpusPerNode[i];
            totals.cpus += hardware.cpusPerNode[i];
            totals.mem += hardware.memPerNode[i];
        }
        if (totals.cpus == 0) revert InvalidTotalCpus();
        if (totals.mem == 0) revert InvalidTotalMem();
    }
}
