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
import {IMetaScheduler} from "./IMetaScheduler.sol";
import {HardwareTotals, Label, ProviderHardware, ProviderPrices} from "./Types.sol";
import {ProviderBook} from "./base/ProviderBook.sol";
import {IdList} from "./libraries/IdList.sol";

/// Who may run jobs, on which hardware, at which prices. A provider proposes itself and is approved; a later
/// proposal leaves the approved version in force until it is approved in turn.
contract ProviderManager is AccessControl, ProviderBook {
    using IdList for IdList.List;

    /// Approves, removes and bans providers.
    bytes32 public constant METASCHEDULER_ROLE = keccak256("METASCHEDULER_ROLE");
    /// The MetaScheduler contract, which is told of each change; of several, the one that got the role last.
    bytes32 public constant METASCHEDULER_CONTRACT_ROLE = keccak256("METASCHEDULER_CONTRACT_ROLE");
    /// Registration is free.
    uint256 public constant PROVIDER_REGISTRATION_TAX = 0;

    /// A proposal waits for approval.
    event ProviderWaitingForApproval(address addr);
    /// The proposal is in force.
    event ProviderApproved(address addr);
    /// The provider is off the list.
    event ProviderRemoved(address addr);
    /// The provider is banned, or no longer.
    event ProviderBanChanged(address addr, bool status);

    constructor() {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
    }

    /// The most nodes of a provider.
    uint256 public constant MAX_NODES = 1024;
    /// The most labels of a provider.
    uint256 public constant MAX_LABELS = 64;
    /// The most bytes of a label's key, and of its value.
    uint256 public constant MAX_LABEL_BYTES = 256;
    /// Seconds for which a proposal must have stood unchanged before `approve` takes it.
    uint256 public constant UNCHANGED_PERIOD = 10 minutes;

    /// Proposes the caller as a provider, or a change of what it offers. A newer proposal replaces an older one. Notes
    /// the time, unless the same proposal waits already.
    /// @param hardware One figure per node in each array, for at most MAX_NODES nodes.
    /// @param prices Wei of credit per minute, of a GPU, a CPU and a MB of memory.
    /// @param labels At most MAX_LABELS, of at most MAX_LABEL_BYTES in each key and value.
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

    /// Puts the provider's waiting proposal in force, provided that it is the one with this hash. Reverts with
    /// ProposalChanged when another one waits.
    /// @param provider Whose proposal.
    /// @param hash keccak256(abi.encode(hardware, prices, labels)) of the proposal that the caller has looked at. Compute
    /// it from what you have read: taking `proposalHash` unseen approves whatever waits.
    function approveProposal(address provider, bytes32 hash) external onlyRole(METASCHEDULER_ROLE) {
        bytes32 waiting = _waiting(provider).hash;
        if (waiting != hash) revert ProposalChanged(waiting, hash);
        _approve(provider);
    }

    /// Puts the provider's waiting proposal in force, for clients that know no hashes. Reverts with ProposalTooRecent
    /// unless the proposal stands unchanged for UNCHANGED_PERIOD: nobody can replace it just before this call.
    function approve(address provider) external onlyRole(METASCHEDULER_ROLE) {
        uint256 notBefore = _waiting(provider).changedAt + UNCHANGED_PERIOD;
        if (block.timestamp < notBefore) revert ProposalTooRecent(notBefore);
        _approve(provider);
    }

    /// Takes a provider off the list, proposal and approved version alike. Its running jobs are settled as usual.
    function remove(address provider) external onlyRole(METASCHEDULER_ROLE) {
        uint64 listId = _listIdOf[provider];
        if (listId == 0) revert NoProvider();
        _list.remove(listId);
        delete _addressOf[listId];
        delete _listIdOf[provider];
        Standing storage standing = _standing[provider];
        (standing.approved, standing.waiting) = (false, false); // its version goes on, should it come back
        emit ProviderRemoved(provider);
        _tell(provider);
    }

    /// Bars an address from registering, from new jobs and from claims. Its running jobs are settled as usual.
    function ban(address provider) external onlyRole(METASCHEDULER_ROLE) {
        _setBanned(provider, true);
    }

    /// Lifts a ban; what was approved before is in force again.
    function unban(address provider) external onlyRole(METASCHEDULER_ROLE) {
        _setBanned(provider, false);
    }

    /// Who gets the role of the MetaScheduler contract is told of changes from then on.
    function _grantRole(bytes32 role, address account) internal override returns (bool granted) {
        granted = super._grantRole(role, account);
        if (granted && role == METASCHEDULER_CONTRACT_ROLE) metaScheduler = IMetaScheduler(account);
    }

    /// Who loses it is told no longer.
    function _revokeRole(bytes32 role, address account) internal override returns (bool revoked) {
        revoked = super._revokeRole(role, account);
        if (role == METASCHEDULER_CONTRACT_ROLE && account == address(metaScheduler)) delete metaScheduler;
    }

    /// Notes the proposal's sums and hash, and when it changed: now, unless the same one waits already.
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

    /// The proposal that waits, of a provider that may be approved.
    function _waiting(address provider) private view returns (Proposal storage) {
        Standing storage standing = _standing[provider];
        if (standing.banned) revert Banned();
        if (!standing.waiting) revert WaitingApprovalOnly();
        return _proposals[provider];
    }

    function _approve(address provider) private {
        Proposal storage proposal = _proposals[provider];
        proposal.side = 1 - proposal.side; // what was proposed is approved now; the next proposal overwrites the other
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
