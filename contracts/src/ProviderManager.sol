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
    NoProvider,
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

    /// Proposes the caller as a provider, or a change of what it offers. A newer proposal replaces an older one.
    function register(ProviderHardware calldata hardware, ProviderPrices calldata prices, Label[] calldata labels)
        external
    {
        Standing storage standing = _standing[msg.sender];
        if (standing.banned) revert Banned();
        Offer storage proposal = _proposed[msg.sender];
        _totals(hardware);
        proposal.prices = prices;
        proposal.hardware = hardware;
        delete proposal.labels;
        for (uint256 i; i < labels.length; ++i) {
            proposal.labels.push(labels[i]);
        }
        standing.waiting = true;
        if (_listIdOf[msg.sender] == 0) {
            uint64 listId = ++idCounter;
            _listIdOf[msg.sender] = listId;
            _addressOf[listId] = msg.sender;
            _list.push(listId);
        }
        emit ProviderWaitingForApproval(msg.sender);
    }

    /// Puts the provider's waiting proposal in force.
    function approve(address provider) external onlyRole(METASCHEDULER_ROLE) {
        Standing storage standing = _standing[provider];
        if (standing.banned) revert Banned();
        if (!standing.waiting) revert WaitingApprovalOnly();
        _approved[provider] = _proposed[provider];
        delete _proposed[provider];
        HardwareTotals memory totals = _totals(_approved[provider].hardware);
        _standing[provider] = Standing({
            gpus: totals.gpus,
            cpus: totals.cpus,
            mem: totals.mem,
            version: standing.version + 1,
            approved: true,
            waiting: false,
            banned: false
        });
        emit ProviderApproved(provider);
        _tell(provider);
    }

    /// Takes a provider off the list, proposal and approved version alike. Its running jobs are settled as usual.
    function remove(address provider) external onlyRole(METASCHEDULER_ROLE) {
        uint64 listId = _listIdOf[provider];
        if (listId == 0) revert NoProvider();
        _list.remove(listId);
        delete _addressOf[listId];
        delete _listIdOf[provider];
        delete _approved[provider];
        delete _proposed[provider];
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

    function _totals(ProviderHardware memory hardware) private pure returns (HardwareTotals memory totals) {
        uint256 nodes = hardware.nodes;
        if (nodes == 0) revert InvalidNodesCount();
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
