// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

enum JobStatus {
    PENDING,
    META_SCHEDULED,
    SCHEDULED,
    RUNNING,
    CANCELLED,
    FINISHED,
    FAILED,
    OUT_OF_CREDITS,
    PANICKED
}

struct Label {
    string key;
    string value;
}

struct Affinity {
    Label label;
    bytes2 op;
}

bytes32 constant META_ROLE = keccak256("META_SCHEDULER");

error WrongState(JobStatus current, JobStatus wanted);
error NotProvider(address who);
error NotCustomer(address who);
error ProviderUnavailable(address provider);
error NothingToClaim();
error ZeroAmount();
error UnknownJob(bytes32 id);
error AmountTooBig();
error BadDefinition();
error CostAboveLock(uint256 cost, uint256 lock);
error TooEarly(uint256 notBefore);

/// The edges that the provider may take, as one 16-bit mask per source state.
function providerMayMove(JobStatus from, JobStatus to) pure returns (bool) {
    // bit n set in row s: s -> n is allowed for the provider
    uint256 rows = (_b(JobStatus.SCHEDULED) | _b(JobStatus.FAILED) | _b(JobStatus.PANICKED))
        << (16 * uint256(JobStatus.META_SCHEDULED))
        | (_b(JobStatus.RUNNING) | _b(JobStatus.CANCELLED) | _b(JobStatus.FAILED) | _b(JobStatus.PANICKED))
        << (16 * uint256(JobStatus.SCHEDULED))
        | (_b(JobStatus.CANCELLED)
            | _b(JobStatus.FINISHED)
            | _b(JobStatus.FAILED)
            | _b(JobStatus.OUT_OF_CREDITS)
            | _b(JobStatus.PANICKED)) << (16 * uint256(JobStatus.RUNNING));
    return (rows >> (16 * uint256(from) + uint256(to))) & 1 == 1;
}

function _b(JobStatus s) pure returns (uint256) {
    return 1 << uint256(s);
}

function isTerminal(JobStatus s) pure returns (bool) {
    return s >= JobStatus.CANCELLED;
}
