// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobDefinition, JobStatus, ProviderPrices, ProviderRecord, Wishes} from "../../src/Types.sol";

/// The expected state of a job.
struct Ghost {
    JobDefinition sizes; // without texts
    bytes32 asked; // hash of the whole definition and the name
    Wishes wishes;
    JobStatus status;
    JobStatus before; // its last move
    address customer;
    address provider;
    address lastRefuser;
    bool delegateSpending;
    uint256 deposit;
    uint256 spendable; // by automatic top-ups, while they are allowed
    uint256 submittedAt;
    uint256 locked; // without what was released
    uint256 released;
    uint256 pendingTopUp;
    uint256 told; // minutes that its provider was told
    uint256 rate;
    uint256 cut;
    uint256 fee;
    uint256 cost;
    uint256 assignedAt;
    uint256 claimedAt;
    uint256 startedAt;
    uint256 cancelAt;
    uint256 endedAt;
    bytes32 coldHash; // of all that clients read, when it ended
}

/// The expected state of a provider.
struct GhostProvider {
    bool approved;
    bool waiting;
    bool banned;
    ProviderPrices proposed;
    bytes32 proposalHash;
    uint256 changedAt; // the proposal
    ProviderPrices inForce;
    ProviderPrices last; // of the last approval
    uint256 raisedAt;
    uint256[] claimable; // in the order of assignment
    uint256[] cancelling; // hints, in the order of the requests
    uint256[] toppedUp;
    uint256 claimedJobs;
    ProviderRecord record;
}
