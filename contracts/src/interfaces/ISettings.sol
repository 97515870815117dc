// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The settings of the grid, its counters and the platform's cut
/// @notice RareCalls serves them through the MetaScheduler's fallback.
/// @dev A changed setting applies to jobs from then on. A job's rate and cut stay as they were assigned.
interface ISettings {
    // ---------------------------------------------------------------- the grid

    /// @notice Id of the last job.
    /// @return The id as a number; ids count from 1.
    function jobIdCounter() external view returns (uint256);

    /// @notice Whether the grid accepts new jobs.
    /// @return True while `requestNewJob` is open.
    function enableRequestNewJob() external view returns (bool);

    // ---------------------------------------------------------------- the platform's cut

    /// @notice Cut of the platform, which changes by notice only (see `setDeepsquareCut`).
    /// @return Percent of a job's cost.
    function deepsquareCut() external view returns (uint8);

    /// @notice Cut that was kept and not withdrawn yet.
    /// @return Amount in wei.
    function platformCut() external view returns (uint256);

    /// @notice Pays a part of the platform's cut to the caller, who must be an admin.
    /// @dev Deposits of jobs are out of reach. Reverts with InsufficientFunds if `amount` exceeds `platformCut`.
    /// @param amount Amount in wei.
    function withdrawAdmin(uint256 amount) external;

    // ---------------------------------------------------------------- settings

    /// @notice Minimum deposit of a job.
    /// @return Amount in wei.
    function minimumAmount() external view returns (uint256);

    /// @notice Minutes by which a report may exceed what can have run before BilledTooMuchEvent is emitted.
    /// @dev The excess is never billed.
    /// @return Duration in minutes.
    function billDurationDeltaMinute() external view returns (uint32);

    /// @notice Minimum bill of a RUNNING job that its customer cancelled.
    /// @return Duration in minutes.
    function cancellationFeeMinute() external view returns (uint32);

    /// @notice Time in which a provider has to claim a job, and to answer a cancel request.
    /// @return Duration in minutes.
    function claimJobTimeout() external view returns (uint32);

    /// @notice Time that one automatic top-up buys. It is allowed when at most that much time remains.
    /// @return Duration in minutes.
    function topUpSliceDurationMin() external view returns (uint32);

    /// @notice Sets the minimum deposit of a job. Only the owner may.
    /// @dev This setter and the next four revert with InvalidConstant outside of the value's range.
    /// @param amount Amount in wei, at most 2^96 - 1.
    function setMinimumAmount(uint256 amount) external;

    /// @notice Sets the excess of a report above which BilledTooMuchEvent is emitted. Only the owner may.
    /// @param durationMinute Duration in minutes, at most 1440.
    function setBillDurationDeltaMinute(uint256 durationMinute) external;

    /// @notice Sets the minimum bill of a RUNNING job that its customer cancelled. Only the owner may.
    /// @param durationMinute Duration in minutes, at most 60.
    function setCancellationFeeMinute(uint256 durationMinute) external;

    /// @notice Sets the time in which a provider has to claim a job and to answer a cancel request. Only the owner may.
    /// @param durationMinute Duration in minutes, from 1 to 10080.
    function setClaimJobTimeout(uint64 durationMinute) external;

    /// @notice Sets the time that one automatic top-up buys. Only the owner may.
    /// @param durationMinute Duration in minutes, from 1 to 1440.
    function setTopUpSliceDurationMin(uint64 durationMinute) external;
}
