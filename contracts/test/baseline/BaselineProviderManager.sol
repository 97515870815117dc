// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {Label} from "./BaselineCommon.sol";

struct Hardware {
    uint64 nodes;
    uint64 gpus;
    uint64 cpus;
    uint64 memMiB;
}

struct Prices {
    uint64 perGpuMin; // credit micro-units per minute
    uint64 perCpuMin;
    uint64 perMiBMin;
}

contract BaselineProviderManager is AccessControl {
    enum State {
        NONE,
        PROPOSED,
        APPROVED,
        BANNED
    }

    struct Entry {
        Hardware hw; // 2 slots: prices(24 B) + state(1 B) share the second
        Prices prices;
        State state;
    }
    mapping(address => Entry) private _entries;
    mapping(address => Label[]) private _labels;

    event Registered(address indexed provider, Hardware hw, Prices prices, Label[] labels);
    event StateChanged(address indexed provider, State state);
    error Banned(address provider);
    error NotProposed(address provider);

    constructor(address admin) {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    function register(Hardware calldata hw, Prices calldata prices, Label[] calldata labels) external {
        Entry storage e = _entries[msg.sender];
        if (e.state == State.BANNED) revert Banned(msg.sender);
        e.hw = hw;
        e.prices = prices;
        e.state = State.PROPOSED;
        delete _labels[msg.sender];
        for (uint256 i; i < labels.length; ++i) {
            _labels[msg.sender].push(labels[i]);
        }
        emit Registered(msg.sender, hw, prices, labels);
    }

    function approve(address p) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (_entries[p].state != State.PROPOSED) revert NotProposed(p);
        _entries[p].state = State.APPROVED;
        emit StateChanged(p, State.APPROVED);
    }

    function ban(address p) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _entries[p].state = State.BANNED;
        emit StateChanged(p, State.BANNED);
    }

    function isApproved(address p) external view returns (bool) {
        return _entries[p].state == State.APPROVED;
    }

    function pricesOf(address p) external view returns (Prices memory) {
        return _entries[p].prices;
    }

    function entry(address p) external view returns (Entry memory, Label[] memory) {
        return (_entries[p], _labels[p]);
    }
}
